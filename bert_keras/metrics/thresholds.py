"""The probability above which a label is predicted, tuned for each label's F1."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bert_keras.checks import check_not_empty, check_shape, raise_at_first


def tune_thresholds(
    true: ArrayLike, scores: ArrayLike, default: float = 0.5
) -> NDArray[np.float64]:
    """Finds each label's threshold with the best F1, for multi-label classification.

    A label is predicted where `scores >= threshold`. Tune on the dev set, then apply to the test
    set. Candidates are the midpoints between neighbouring distinct scores of the label, its lowest
    score (which always predicts it), and `default`. Of equal candidates the nearest to `default`
    wins, then the lower. A label without a true example keeps `default`.

    Args:
        true: array `(num_examples, num_labels)` of 0 and 1.
        scores: float array `(num_examples, num_labels)`, probabilities (or logits, with
            `default=0.0`).
        default: the threshold without tuning.

    Returns:
        A float64 array `(num_labels,)`.

    Raises:
        ValueError: the shapes differ, there are no examples, or a value is not allowed.

    Example:
        >>> tune_thresholds([[1], [1], [0]], [[0.5], [0.25], [0.0]]).tolist()
        [0.125]
    """
    true, scores = np.asarray(true), np.asarray(scores, dtype=np.float64)
    check_shape("`true`", true, ("num_examples", "num_labels"))
    check_shape("`scores`", scores, true.shape, advice="`true` has this shape.")
    check_not_empty(true.ravel(), "`true` must not be empty")
    raise_at_first(~np.isin(true, (0, 1)), true, "`true` must hold only 0 and 1 for each label")
    raise_at_first(~np.isfinite(scores), scores, "`scores` must be finite")
    columns = zip(true.T.astype(bool), scores.T, strict=True)
    return np.array([_best_threshold(labels, column, default) for labels, column in columns])


def _best_threshold(true, scores, default):
    distinct = np.unique(scores)
    midpoints = distinct[:-1] + np.diff(distinct) / 2
    candidates = np.unique(np.concatenate([midpoints, distinct[:1], [default]]))
    order = np.argsort(scores)
    right_below = np.concatenate([[0], np.cumsum(true[order])])
    below = np.searchsorted(scores[order], candidates, side="left")
    right = right_below[-1] - right_below[below]
    predicted = len(scores) - below
    f1 = 2 * right / np.maximum(predicted + right_below[-1], 1)  # 0 if both are 0
    best = candidates[f1 == f1.max()]
    return best[np.argmin(np.abs(best - default))]
