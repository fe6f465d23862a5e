"""Logits of entailment as zero-shot classes: which labels a text entails, as a hypothesis each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .answerer import Answerer, Option
from .classes import THRESHOLD, check_labels, check_threshold, class_answers


def check_hypotheses(labels: Sequence[str], hypothesis: str) -> list[str]:
    """Returns the hypotheses of labels.

    Args:
        labels: list of different str.
        hypothesis: str, the template, with `{}` in the place of a label.

    Raises:
        TypeError, ValueError: see `check_labels`; or the template has no `{}`.
    """
    labels = check_labels(labels)
    if not isinstance(hypothesis, str) or "{}" not in hypothesis:
        raise ValueError(
            "`hypothesis` must be a text with {} in the place of the label, such as 'This example "
            f"is {{}}.'. Received: {hypothesis!r:.60}."
        )
    return [hypothesis.replace("{}", label) for label in labels]


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


def entailment_answers(
    logits: ArrayLike,
    names: Sequence[Any] | None,
    labels: Sequence[str],
    multi_label: bool = False,
    threshold: float | NDArray[np.float64] = 0.5,
) -> list[dict[str, Any]]:
    """Returns what texts are about.

    One label is right: the softmax of the labels' entailment logits. Several may be, or there is
    only one: the softmax of contradiction and entailment of each, without neutral, which is the
    sigmoid of their difference.

    Args:
        logits: float `(num_texts * num_labels, num_classes)`, of each text with each hypothesis.
        names: the names of the columns of `logits`.
        labels: list of str.
        multi_label: bool.
        threshold: see `class_answers`.

    Returns:
        For each text a dict, see `class_answers`.
    """
    contradicted, entailed = entailment_columns(names)
    logits = np.asarray(logits, "float32")
    problem_type = "multi_label" if multi_label or len(labels) == 1 else "single_label"
    scores = logits[:, entailed]
    if problem_type == "multi_label":
        scores = scores - logits[:, contradicted]
    return class_answers(scores.reshape(-1, len(labels)), problem_type, labels, threshold)


class ZeroShotAnswerer(Answerer):
    """Which labels texts entail; its settings are those of a classifier of pairs."""

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
        self.hypotheses = check_hypotheses(self.labels, self.hypothesis)
        self.threshold = check_threshold(self.threshold, self.labels)
        entailment_columns(settings["label_names"])

    def texts(self, *columns):
        (texts,) = columns
        return [text for text in texts for _ in self.labels], self.hypotheses * len(texts)

    def answers(self, arrays):
        names = self.settings["label_names"]
        return entailment_answers(arrays, names, self.labels, self.multi_label, self.threshold)
