"""How far probabilities are from frequencies, and the temperature that brings them closer."""

import warnings
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bert_keras.answers.classes import class_probabilities
from bert_keras.checks import check_int, check_not_empty, check_shape, raise_at_first

# Limits of a temperature, and when the best one lies beyond them.
_LIMITS = {
    0.05: "lower, since the classifier is right about each of them",
    20.0: "higher, since the classifier is no better than chance",
}


def expected_calibration_error(
    probabilities: ArrayLike, labels: ArrayLike, num_bins: int = 15
) -> float:
    """Returns the mean distance between how sure predictions are and how often they are right.

    Predictions are sorted into bins of equal width by their probability; the error is
    `sum over bins of (size / total) * |share that is right - mean probability|`. With a class for
    each example a prediction is its most probable class, with several labels each label is one.

    Args:
        probabilities: float array `(num_examples, num_classes)`.
        labels: int array `(num_examples,)`, classes; or `(num_examples, num_classes)` of 0 and 1.
        num_bins: int.

    Returns:
        A float from 0 to 1; 0 is calibrated.

    Raises:
        ValueError: the shapes do not fit, there are no examples, or a value is not allowed.

    Example:
        >>> expected_calibration_error([[0.75, 0.25], [0.75, 0.25]], [0, 1])
        0.25

    Reference:
        [Guo et al., 2017](https://arxiv.org/abs/1706.04599).
    """
    probabilities, labels = _checked("Probabilities", probabilities, labels)
    wrong = (probabilities < 0) | (probabilities > 1)
    raise_at_first(wrong, probabilities, "Probabilities must be from 0 to 1")
    check_int("num_bins", num_bins)
    if labels.ndim == 1:
        right = probabilities.argmax(axis=1) == labels
        confidence = probabilities.max(axis=1)
    else:
        right, confidence = labels.ravel(), probabilities.ravel()
    bins = np.clip(np.ceil(confidence * num_bins).astype(int) - 1, 0, num_bins - 1)
    gaps = np.bincount(bins, weights=right - confidence, minlength=num_bins)
    return float(np.abs(gaps).sum() / len(confidence))


def best_temperature(logits: ArrayLike, labels: ArrayLike) -> float:
    """Returns the temperature T for which `logits / T` have the lowest cross-entropy.

    The cross-entropy is convex in 1 / T, so its derivative, the mean of
    `sum((probabilities - labels) * logits)`, is 0 once. Bisection finds where.

    Args:
        logits: float array `(num_examples, num_classes)`.
        labels: see `expected_calibration_error`.

    Returns:
        A float from 0.05 to 20. A warning says when it is one of these limits.

    Raises:
        ValueError: see `expected_calibration_error`.
    """
    logits, labels = _checked("Logits", logits, labels)
    problem_type = "single_label" if labels.ndim == 1 else "multi_label"
    targets = np.eye(logits.shape[1])[labels] if labels.ndim == 1 else labels
    low, high = map(np.log, _LIMITS)
    for _ in range(50):
        middle = (low + high) / 2
        predicted = class_probabilities(logits / np.exp(middle), problem_type)
        is_too_sure = ((predicted - targets) * logits).sum() > 0
        low, high = (middle, high) if is_too_sure else (low, middle)
    temperature = float(np.exp((low + high) / 2))
    for limit, reason in _LIMITS.items():
        if np.isclose(temperature, limit, rtol=1e-3):
            warnings.warn(
                f"The temperature stopped at its limit, {limit:g}. For these texts the best one is "
                f"{reason}. Pass more texts, which `fit` has not seen.",
                stacklevel=3,
            )
    return temperature


def _checked(name: str, values: ArrayLike, labels: ArrayLike) -> tuple[NDArray[Any], NDArray[Any]]:
    values, labels = np.asarray(values, "float64"), np.asarray(labels)
    check_shape(name, values, ("num_examples", "num_classes"))
    check_not_empty(values, f"{name} must be of at least one example")
    raise_at_first(~np.isfinite(values), values, f"{name} must be finite")
    shape = values.shape[:1] if labels.ndim == 1 else values.shape
    check_shape("Labels", labels, shape, "iufb" if labels.ndim == 2 else "iu")
    most = values.shape[1] - 1 if labels.ndim == 1 else 1
    wrong = (labels < 0) | (labels > most) | (labels != np.round(labels))
    raise_at_first(wrong, labels, f"Labels must be ints from 0 to {most}")
    return values, labels
