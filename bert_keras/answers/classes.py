"""Logits of whole texts as answers: classes, scores, choices, next sentences."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .probabilities import sigmoid, softmax


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
        ValueError: a label has no threshold, or a threshold is not a finite number.
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
    if values.dtype.kind not in "iuf" or not np.isfinite(values).all():
        raise ValueError(f"`threshold` must be finite numbers. Received: {threshold!r}.")
    return values.astype("float64")


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


def choice_answer(choices: Sequence[str], logits: NDArray[Any]) -> dict[str, Any]:
    """Returns the best of some choices: its text, its index, and all probabilities.

    Args:
        choices: sequence of str.
        logits: float `(num_choices,)`.
    """
    best = int(logits.argmax())
    return {"choice": choices[best], "index": best, "probabilities": softmax(logits).tolist()}


def next_sentence_answers(logits: NDArray[Any]) -> list[dict[str, Any]]:
    """Returns for each pair of texts whether the second follows the first, and how likely.

    Args:
        logits: float `(num_pairs, 2)`, of "is next" and of "is random".
    """
    probabilities = softmax(logits)[:, 0].tolist()
    return [{"is_next": p > 0.5, "probability": p} for p in probabilities]
