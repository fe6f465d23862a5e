"""Logits of entailment as zero-shot classes: which labels a text entails, as a hypothesis each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .answerer import Answerer, Option
from .classes import THRESHOLD, check_labels, check_threshold, class_answers


def entailment_columns(names: Sequence[Any] | None) -> tuple[int, int]:
    """Returns the columns of a classifier's logits that mean contradiction and entailment.

    Entailment is the label whose name begins with "entail". Contradiction is the one whose name
    begins with "contradict" or "not"; where there is none, the first label, or if that means
    entailment the last, as in transformers.

    Args:
        names: the classifier's `label_names`, or `None`.

    Raises:
        ValueError: no label means entailment, or it is the only one.
    """
    lower = [str(name).lower() for name in names or ()]
    entails = [column for column, name in enumerate(lower) if name.startswith("entail")]
    if not entails or len(lower) < 2:
        raise ValueError(
            "Zero-shot classification needs a classifier of pairs with a label named 'entailment' "
            f"and another. Received the labels: {', '.join(lower) or 'none'}. Load a model that "
            "was trained on entailment, such as 'hf://cross-encoder/nli-MiniLM2-L6-H768', with "
            "label_names=[...] if its config lacks the names."
        )
    entailed = entails[0]
    against = [i for i, name in enumerate(lower) if name.startswith(("contradict", "not"))]
    return (against or [len(lower) - 1 if entailed == 0 else 0])[0], entailed


class ZeroShotAnswerer(Answerer):
    """Which labels texts entail; its settings are those of a classifier of pairs.

    One label is right: the softmax of the labels' entailment logits. Several may be, or there is
    only one: the softmax of contradiction and entailment of each, without neutral, which is the
    sigmoid of their difference.
    """

    method, command = "zero_shot", "classify"
    options = (
        Option(
            "labels",
            list,
            (),
            "Labels by which a model of entailment classifies texts.",
            is_checked=False,
        ),
        Option(
            "hypothesis",
            str,
            "This example is {}.",
            "What a label says of a text, such as 'This example is {}.'.",
            is_checked=False,
        ),
        Option("multi_label", bool, False, "Whether several of the labels may be right."),
        THRESHOLD,
    )

    def __init__(self, settings, packer, **options):
        super().__init__(settings, packer, **options)
        self.labels = check_labels(self.labels)
        if not isinstance(self.hypothesis, str) or self.hypothesis.count("{}") != 1:
            raise ValueError(
                "`hypothesis` must be a text with one {} in the place of the label, such as 'This "
                f"example is {{}}.'. Received: {self.hypothesis!r:.60}."
            )
        self.threshold = check_threshold(self.threshold, self.labels)
        self.contradicted, self.entailed = entailment_columns(settings["label_names"])

    def texts(self, *columns):
        (texts,) = columns
        hypotheses = [self.hypothesis.replace("{}", label) for label in self.labels]
        return [text for text in texts for _ in self.labels], hypotheses * len(texts)

    def answers(self, arrays):
        logits = np.asarray(arrays, "float32")
        scores, problem_type = logits[:, self.entailed], "single_label"
        if self.multi_label or len(self.labels) == 1:
            scores, problem_type = scores - logits[:, self.contradicted], "multi_label"
        scores = scores.reshape(-1, len(self.labels))
        return class_answers(scores, problem_type, self.labels, self.threshold)
