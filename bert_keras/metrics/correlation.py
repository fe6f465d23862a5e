"""Correlation of predicted and true scores: Pearson and Spearman.

GLUE scores STS-B by both. The numbers equal `scipy.stats.pearsonr` and `spearmanr`.
"""

import math

import numpy as np


def _check_pair(true, predicted):
    true = np.asarray(true, dtype=np.float64)
    predicted = np.asarray(predicted, dtype=np.float64)
    if true.ndim != 1 or true.shape != predicted.shape:
        raise ValueError(
            "A correlation needs two 1-D arrays of the same length. "
            f"Received: true {true.shape}, predicted {predicted.shape}. "
            "Squeeze predictions of shape (num_examples, 1) first."
        )
    if len(true) < 2:
        raise ValueError(f"A correlation needs at least two examples. Received: {len(true)}.")
    return true, predicted


def pearson(true, predicted):
    """Pearson's r: how close the points lie to a straight line.

    `r = Σ (x - x̄)(y - ȳ) / sqrt(Σ (x - x̄)² Σ (y - ȳ)²)`.

    Args:
        true: float array `(num_examples,)`.
        predicted: float array `(num_examples,)`.

    Returns:
        A float from -1 to 1; nan where either array is constant (the formula is 0/0, and scipy
        gives nan with a warning) or holds a value that is not finite.

    Raises:
        ValueError: on unequal lengths or fewer than two examples.

    Example:
        >>> pearson([1.0, 2.0, 3.0], [2.0, 4.0, 6.0])
        1.0
    """
    true, predicted = _check_pair(true, predicted)
    finite = np.isfinite(true).all() and np.isfinite(predicted).all()
    if not finite or np.ptp(true) == 0 or np.ptp(predicted) == 0:
        return math.nan
    # Centred, then scaled by the largest value: squares of huge or tiny scores stay in range.
    true, predicted = true - true.mean(), predicted - predicted.mean()
    true, predicted = true / np.abs(true).max(), predicted / np.abs(predicted).max()
    covariance = true @ predicted
    r = covariance / np.sqrt((true @ true) * (predicted @ predicted))
    return float(np.clip(r, -1.0, 1.0))


def average_ranks(values):
    """Ranks from 1 to n, where equal values share the mean of their ranks.

    Args:
        values: array `(num_values,)`.

    Returns:
        A float64 array `(num_values,)`.

    Example:
        >>> average_ranks([10, 20, 20, 30]).tolist()
        [1.0, 2.5, 2.5, 4.0]
    """
    _, group, counts = np.unique(values, return_inverse=True, return_counts=True)
    last_rank = np.cumsum(counts)
    return (last_rank - (counts - 1) / 2)[group]


def spearman(true, predicted):
    """Spearman's rho: Pearson's r of the ranks, so only the order of the scores counts.

    Equal values get the average of their ranks.

    Args:
        true: float array `(num_examples,)`.
        predicted: float array `(num_examples,)`.

    Returns:
        A float from -1 to 1; nan where either array is constant or holds nan.

    Raises:
        ValueError: on unequal lengths or fewer than two examples.

    Example:
        >>> spearman([1.0, 2.0, 3.0], [1.0, 10.0, 100.0])
        1.0
    """
    true, predicted = _check_pair(true, predicted)
    if np.isnan(true).any() or np.isnan(predicted).any():
        return math.nan
    return pearson(average_ranks(true), average_ranks(predicted))
