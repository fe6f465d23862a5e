"""Logits as probabilities, and as answers about whole texts: classes, choices, next sentences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..checks import (
    as_column,
    as_texts,
    check_not_empty,
    check_number,
    check_same_length,
    is_column,
    raise_at_first,
)
from ..preprocessing.collate import GroupRows, TextPacker
from ..preprocessing.ragged import Ragged
from ..preprocessing.windows import document_windows
from .answerer import Answerer, Field, Option


def log_sum_exp(values: NDArray[Any]) -> NDArray[Any]:
    """Returns `log(sum(exp(values)))` over the last axis, which is kept with the size 1."""
    highest = values.max(axis=-1, keepdims=True)
    return highest + np.log(np.exp(values - highest).sum(axis=-1, keepdims=True))


def log_softmax(logits: NDArray[Any]) -> NDArray[Any]:
    """Returns the logarithms of `softmax(logits)`."""
    return logits - log_sum_exp(logits)


def softmax(logits: NDArray[Any]) -> NDArray[Any]:
    """Returns probabilities that sum to 1 over the last axis, in the dtype of the logits."""
    return np.exp(logits - log_sum_exp(logits))


def sigmoid(logits: NDArray[Any]) -> NDArray[Any]:
    """Returns the probability of each logit on its own, in the dtype of the logits."""
    return 0.5 * (1 + np.tanh(0.5 * logits))


# Activation -> its function, from logits to scores.
SCORES = {"sigmoid": sigmoid, "linear": np.asarray, "tanh": np.tanh}

# Those who take one check it by `check_threshold`, since it may also be one for each label.
THRESHOLD = Option(
    "threshold",
    float,
    0.5,
    "The least probability of a label that counts, for several labels.",
    0.0,
    1.0,
    is_checked=False,
)


def check_threshold(
    threshold: float | Sequence[float] | Mapping[Any, float], names: Sequence[Any]
) -> NDArray[np.float64]:
    """Returns thresholds of labels as an array.

    Args:
        threshold: float, or one for each label: a sequence, or a dict with the labels' names.
        names: sequence of str or int, the labels' names.

    Returns:
        float64 `()` or `(num_labels,)`.

    Raises:
        ValueError: a label has no threshold, or a threshold is not a number from 0 to 1.
    """
    if isinstance(threshold, Mapping):
        if set(threshold) != set(names):
            wrong = sorted(map(str, set(threshold) ^ set(names)))
            raise ValueError(
                f"`threshold` must have each label's name, {list(names)[:20]}. Missing or unknown: "
                f"{wrong[:20]}."
            )
        threshold = [threshold[name] for name in names]
    values = np.asarray(threshold)
    if values.shape not in ((), (len(names),)):
        raise ValueError(
            f"`threshold` must be one number, or one for each of the {len(names)} labels. Received "
            f"the shape {values.shape}."
        )
    for value in np.ravel(values).tolist():
        check_number("threshold", value, most=1.0)
    return values.astype("float64")


def check_labels(labels: Sequence[str], may_repeat: bool = False) -> list[str]:
    """Returns labels that a user chooses as a list of str.

    Raises:
        TypeError: `labels` is something else than a list, a tuple or an array of str.
        ValueError: there is no label, or one is blank, or repeated unless `may_repeat`.
    """
    labels = labels.tolist() if hasattr(labels, "tolist") else labels
    is_list = isinstance(labels, (list, tuple))
    if not is_list or not all(isinstance(label, str) for label in labels):
        raise TypeError(f"`labels` must be a list of str. Received: {labels!r:.100}.")
    are_different = may_repeat or len({*labels}) == len(labels)
    if not labels or not are_different or not all(map(str.strip, labels)):
        names = "names" if may_repeat else "different names"
        raise ValueError(f"`labels` must be {names}, at least one. Received: {labels!r:.200}.")
    return list(labels)


def class_probabilities(logits: NDArray[Any], problem_type: str) -> NDArray[Any]:
    """Returns the sigmoid of logits for `"multi_label"`, their softmax for `"single_label"`."""
    return sigmoid(logits) if problem_type == "multi_label" else softmax(logits)


def class_answers(
    logits: NDArray[Any],
    problem_type: str,
    names: Sequence[Any],
    threshold: float | NDArray[np.float64] = 0.5,
) -> list[dict[str, Any]]:
    """Returns what a classifier says of each text.

    Args:
        logits: float `(num_texts, num_classes)`.
        problem_type: `"single_label"`, `"multi_label"` or `"regression"`.
        names: sequence of str or int, the classes' names.
        threshold: float64 `()` or `(num_classes,)`, the least probability of a label that counts,
            for `"multi_label"`.

    Returns:
        For each text a dict: `label` and `probabilities`; `labels` and `probabilities`; or for a
        regression `score`, where there are several `scores`.
    """
    if problem_type == "regression":
        return [{"score": row[0]} if len(row) == 1 else {"scores": row} for row in logits.tolist()]
    answers = []
    for probabilities in class_probabilities(logits, problem_type):
        named = dict(zip(names, probabilities.tolist(), strict=True))
        if problem_type == "single_label":
            answer = {"label": names[probabilities.argmax()]}
        else:
            answer = {"labels": [names[n] for n in np.flatnonzero(probabilities >= threshold)]}
        answers.append({**answer, "probabilities": named})
    return answers


def check_are_pairs(texts: Any) -> None:
    """Raises `ValueError` unless texts are pairs: a tuple of two columns."""
    if not isinstance(texts, tuple) or not all(map(is_column, texts)):
        raise ValueError(
            "Next sentence prediction takes pairs, a tuple of two columns: (first texts, second "
            f"texts). Received: {type(texts).__name__}."
        )


class ClassAnswerer(Answerer):
    """Classes, labels or scores of texts or pairs.

    Its settings are those of `TextClassifier`.
    """

    method = "classify"
    setting_names = ("problem_type", "num_classes", "label_names", "temperature")
    fields = (Field("text"), Field("pair", "optional"))
    options = (THRESHOLD,)
    about = (
        "Give each text, or pair of texts, its class, its labels or its score. For the folder of a "
        "run with several labels per text, the thresholds are those that `train` tuned."
    )
    example = '"What a film!" "Never again."'
    tag, does = "text-classification", "classifies texts"
    call = "classify(['A text.'])"

    def __init__(self, settings, packer, **options):
        super().__init__(settings, packer, **options)
        self.names = list(settings["label_names"] or range(settings["num_classes"]))
        self.threshold = check_threshold(self.threshold, self.names)
        if settings["problem_type"] != "multi_label" and np.any(
            self.threshold != THRESHOLD.default
        ):
            raise ValueError(
                "`threshold` is for models with several labels per text. Received: one for a "
                f"model of the problem type {settings['problem_type']!r}. Leave it out."
            )

    def columns(self, *columns):
        """Returns columns of texts, one or two; a tuple of two str is one pair."""
        if len(columns) == 1 and isinstance(columns[0], tuple) and len(columns[0]) == 2:
            [pair] = columns
            if all(isinstance(text, str) for text in pair) or all(map(is_column, pair)):
                columns = pair
        return super().columns(*columns)

    def answers(self, arrays):
        logits = arrays / self.settings["temperature"]
        return class_answers(logits, self.settings["problem_type"], self.names, self.threshold)


class DocumentRows(GroupRows):
    """Documents as rows of windows.

    A document's length stands for both the number and the length of its windows, so that batches of
    similar documents have few different shapes: up to `max_length` it is the length of the
    document's only window, and beyond that `max_length` times the number of its windows.

    Args:
        packer: a `TextPacker`; its `max_length` is that of a window.
        ids: `Ragged` of token ids, one row per document.
        num_windows, stride: see `LongTextClassifier`.
    """

    def __init__(
        self, packer: TextPacker, ids: Ragged, num_windows: int, stride: int | None
    ) -> None:
        max_length, room = packer.max_length, packer.room()
        windows = document_windows(
            ids.lengths, room, stride or room, num_windows, packer.truncation
        )
        counts = np.bincount(windows.documents, minlength=len(ids))
        super().__init__(packer, ids.windows(windows), None, counts)
        self.sequences_per_row = 1  # Lengths count the tokens of all windows.
        self.lengths = np.where(counts == 1, self.lengths, counts * max_length)
        self.further_lengths = tuple(
            range(2 * max_length, num_windows * max_length + 1, max_length)
        )

    def inputs(self, indices, length):
        max_length = self.packer.max_length
        inputs = super().inputs(indices, min(length, max_length))
        return {key: x[:, : max(1, length // max_length)] for key, x in inputs.items()}


class DocumentAnswerer(ClassAnswerer):
    """Classes of documents, which are read in windows.

    Its settings are those of `LongTextClassifier`.
    """

    setting_names = (*ClassAnswerer.setting_names, "num_windows", "stride")
    fields = (Field("text"),)

    def encode(self, texts):
        if isinstance(texts, tuple):
            raise ValueError(
                f"A document is a single text. Received: a tuple of {len(texts)} columns. Join the "
                "texts of a row, or use a task for pairs."
            )
        ids, _ = self.packer.tokenize(texts)
        return DocumentRows(self.packer, ids, self.settings["num_windows"], self.settings["stride"])


class ChoiceAnswerer(Answerer):
    """The best of several choices for each context."""

    method = "choose"
    fields = (Field("context"), Field("choices", "texts"))
    about = "Pick the likeliest choice for each context."
    example = '"She was tired." "She slept." "She ran."'
    tag, does = "multiple-choice", "picks the choice that fits a text best"
    call = "choose('A text.', ['One.', 'Two.'])"

    def encode(self, texts):
        if not isinstance(texts, (list, tuple)) or len(texts) != 2:
            raise ValueError(
                "Multiple choice takes a tuple of contexts and of their choices, (list of str, "
                f"list of lists of str). Received: {type(texts).__name__} of length {len(texts)}."
            )
        contexts, choices = as_texts(texts[0], "contexts"), texts[1]
        choices = choices.tolist() if isinstance(choices, np.ndarray) else choices
        choices = as_column(choices, "choices")
        check_not_empty(contexts, "There must be at least one context")
        rule = "There must be one list of choices for each context"
        check_same_length(rule, contexts=contexts, choices=choices)
        choices = [as_texts(row, f"choices[{index}]") for index, row in enumerate(choices)]
        is_empty = [not row for row in choices]
        raise_at_first(is_empty, choices, "Each context needs at least one choice")
        return GroupRows.of_lists(self.packer, contexts, choices)

    def answer(self, rows, batches, contexts, choices):
        answers = []
        for row, logits in zip(choices, rows.collect(batches), strict=True):
            row = as_column(row, "choices")
            logits = logits[: len(row)]
            best, probabilities = int(logits.argmax()), softmax(logits).tolist()
            answers.append({"choice": row[best], "index": best, "probabilities": probabilities})
        return answers


class NextSentenceAnswerer(Answerer):
    """Whether the second text of a pair follows the first."""

    method = "is_next"
    fields = (Field("first"), Field("second"))
    about = "Say whether the second text follows the first."
    example = '"She opened the door." "The room was empty."'
    tag, does = "text-classification", "predicts whether a text follows another"
    call = "is_next('One.', 'Two.')"

    def encode(self, texts):
        check_are_pairs(texts)
        return super().encode(texts)

    def answers(self, arrays):
        logits = arrays["next_sentence"] if isinstance(arrays, dict) else arrays
        return [{"is_next": p > 0.5, "probability": p} for p in softmax(logits)[:, 0].tolist()]
