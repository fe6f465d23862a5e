"""Scores of predicted classes against true ones: accuracy, precision, recall, F1, Matthews.

Everything here is NumPy on finished predictions. A 1-D array holds one class per example; a 2-D
array of 0 and 1 holds one column per label (multi-label). The numbers equal scikit-learn's, but for
a 2-D array of one column: here that is one label, there two classes.
"""

import math

import numpy as np

from bert_keras.metrics.labels import as_label_array

AVERAGES = ("binary", "micro", "macro", "weighted", None)


def _check_pair(true, predicted):
    true = as_label_array(true, "true label")
    predicted = as_label_array(predicted, "predicted label")
    if true.shape != predicted.shape:
        raise ValueError(
            "True and predicted labels must have the same shape. "
            f"Received: true {true.shape}, predicted {predicted.shape}. "
            "Pass class ids, not logits: use `logits.argmax(-1)` first."
        )
    if true.ndim not in (1, 2):
        raise ValueError(
            "Labels must be 1-D class ids or 2-D indicators (num_examples, num_labels). "
            f"Received: shape {true.shape}."
        )
    if true.size == 0:
        raise ValueError(
            f"A score needs at least one label. Received: shape {true.shape}. "
            "Check that the data set is not empty."
        )
    if (true.dtype.kind in "US") != (predicted.dtype.kind in "US"):
        raise ValueError(
            "True and predicted labels must be of one kind, all strings or all numbers. Received: "
            f"true labels of dtype {true.dtype}, predicted labels of dtype {predicted.dtype}."
        )
    for name, array in (("true", true), ("predicted", predicted)):
        if array.dtype.kind == "f" and not np.array_equal(array, np.round(array)):
            raise ValueError(
                f"Labels must be whole numbers, strings or booleans. Received: {name} labels with "
                "fractions or NaN. Turn probabilities into labels first, for example by "
                "`scores >= 0.5`."
            )
        if true.ndim == 2 and not np.isin(array, (0, 1)).all():
            raise ValueError(
                "2-D labels must be indicators of 0 and 1, one column per label. "
                f"Received: {name} labels {np.unique(array)[:5]}. Flatten class ids to 1-D."
            )
    return true, predicted


def _check_weights(weights, num_examples):
    if weights is None:
        return np.ones(num_examples, dtype=np.int64)
    weights = np.asarray(weights)
    if weights.shape != (num_examples,):
        raise ValueError(
            "`weights` must hold one number per example. "
            f"Received: shape {weights.shape} for {num_examples} examples."
        )
    return weights


def accuracy(true, predicted, weights=None):
    """Share of examples whose prediction is right.

    Multi-label examples count as right when every label is (subset accuracy).

    Args:
        true: array `(num_examples,)` of class ids, or `(num_examples, num_labels)` of 0 and 1.
        predicted: array of the same shape.
        weights: optional array `(num_examples,)`; 0 leaves an example out.

    Returns:
        A float from 0 to 1.

    Raises:
        ValueError: on unequal shapes, no examples, or weights that sum to 0.

    Example:
        >>> accuracy([0, 1, 2, 2], [0, 1, 1, 2])
        0.75
    """
    true, predicted = _check_pair(true, predicted)
    weights = _check_weights(weights, len(true))
    total = weights.sum()
    if total == 0:
        raise ValueError("`weights` must not sum to 0: no example is left to score.")
    right = true == predicted
    if right.ndim == 2:
        right = right.all(axis=1)
    return float((right * weights).sum() / total)


def confusion_matrix(true, predicted, num_classes=None, weights=None):
    """Counts of examples by true class (row) and predicted class (column).

    Args:
        true: integer array `(num_examples,)`, each from 0 to `num_classes - 1`.
        predicted: integer array `(num_examples,)`.
        num_classes: rows and columns; by default, the largest id seen plus one.
        weights: optional array `(num_examples,)`, what each example adds to its cell.

    Returns:
        An array `(num_classes, num_classes)`: int64, or float64 with float `weights`.

    Raises:
        ValueError: on unequal shapes, no examples, or ids outside the classes.

    Example:
        >>> confusion_matrix([0, 1, 1], [0, 0, 1]).tolist()
        [[1, 0], [1, 1]]
    """
    true, predicted = _check_pair(true, predicted)
    if true.ndim != 1:
        raise ValueError(
            f"A confusion matrix needs 1-D class ids. Received: shape {true.shape}. "
            "For multi-label data, make one per column."
        )
    for name, array in (("true", true), ("predicted", predicted)):
        if array.dtype.kind not in "biuf":
            raise ValueError(
                f"Class ids must be integers. Received: {name} labels of dtype {array.dtype}. "
                "Map label names to ids first."
            )
    true, predicted = true.astype(np.int64), predicted.astype(np.int64)
    smallest = min(true.min(), predicted.min())
    largest = max(true.max(), predicted.max())
    if num_classes is None:
        num_classes = int(largest) + 1
    if smallest < 0 or largest >= num_classes:
        raise ValueError(
            f"Class ids must lie between 0 and {num_classes - 1}. "
            f"Received: ids from {smallest} to {largest}. Leave ignored positions out first."
        )
    weights = _check_weights(weights, len(true))
    cells = true * num_classes + predicted
    counts = np.bincount(cells, weights=weights, minlength=num_classes**2)
    dtype = np.float64 if weights.dtype.kind == "f" else np.int64
    return counts.astype(dtype).reshape(num_classes, num_classes)


def _as_class_ids(true, predicted, labels=()):
    """Replaces labels of any kind by positions in the sorted union of all given."""
    parts = [part for part in (true, predicted, np.asarray(labels)) if part.size]
    classes, ids = np.unique(np.concatenate(parts), return_inverse=True)
    return len(classes), ids[: len(true)], ids[len(true) : 2 * len(true)], ids[2 * len(true) :]


def _counts_per_class(true, predicted, labels):
    """(right, predicted, true) counts, one entry per class or per indicator column."""
    if true.ndim == 2:
        true, predicted = true.astype(bool), predicted.astype(bool)
        counts = (true & predicted).sum(0), predicted.sum(0), true.sum(0)
        kept = labels
    else:
        num_classes, true, predicted, kept = _as_class_ids(
            true, predicted, () if labels is None else labels
        )
        matrix = confusion_matrix(true, predicted, num_classes)
        counts = np.diag(matrix), matrix.sum(0), matrix.sum(1)
    if labels is None:
        return counts
    return tuple(count[np.asarray(kept)] for count in counts)


def _check_binary(true, predicted, positive):
    if true.ndim == 2:
        raise ValueError(
            '`average="binary"` scores one class of 1-D labels. Received: indicators of shape '
            f'{true.shape}. Use "micro", "macro", "weighted" or None.'
        )
    present = np.union1d(true, predicted).tolist()
    if len(present) > 2:
        raise ValueError(
            f'`average="binary"` needs two classes. Received: {len(present)}, {present[:5]}... '
            'Use "micro", "macro", "weighted" or None.'
        )
    if len(present) == 2 and positive not in present:
        raise ValueError(
            f"`positive` must be one of the classes. Received: {positive!r}, with classes "
            f"{present}. Name the class whose precision and recall are meant."
        )


def _divide(numerator, denominator, zero_division):
    numerator = np.asarray(numerator, dtype=np.float64)
    denominator = np.asarray(denominator, dtype=np.float64)
    result = np.full(numerator.shape, float(zero_division))
    return np.divide(numerator, denominator, out=result, where=denominator != 0)


def _mean(values, weights=None):
    """Mean of the values that are numbers: `zero_division=nan` leaves a class out."""
    defined = ~np.isnan(values)
    if weights is None:
        weights = np.ones(len(values))
    total = weights[defined].sum()
    if not defined.any():
        return math.nan
    if total == 0:
        return float(values[defined].mean())
    return float((values[defined] * weights[defined]).sum() / total)


def precision_recall_f1(
    true, predicted, average="binary", positive=1, labels=None, zero_division=0.0
):
    """Precision, recall and F1, for one class or averaged over several.

    With `right` predictions of a class that are right, precision = right / predicted,
    recall = right / true, and F1 = 2 right / (predicted + true), their harmonic mean.

    - `"binary"`: of the class `positive` only (GLUE's F1 for MRPC and QQP);
    - `"micro"`: of the counts summed over classes; rare classes weigh little;
    - `"macro"`: mean of the classes' scores; each class weighs the same;
    - `"weighted"`: mean weighted by how often each class is true;
    - `None`: arrays, one entry per class.

    Like scikit-learn, the classes are those that occur in `true` or `predicted`, unless `labels`
    lists them. A class that never occurs would count as `zero_division` in the macro average, so
    list the labels when numbers of several data sets shall be comparable.

    Args:
        true: array `(num_examples,)` of classes, or `(num_examples, num_labels)` of 0 and 1.
        predicted: array of the same shape.
        average: one of the above.
        positive: the class scored by `"binary"`.
        labels: optional sequence of classes (or column numbers) to score, in this order.
        zero_division: value of a fraction 0/0: 0.0, 1.0 or nan. scikit-learn warns and gives 0.0;
            here it is 0.0 in silence. A nan leaves the class out of averages.

    Returns:
        Dict with `precision`, `recall`, `f1`: floats, or arrays `(num_classes,)` for `None`.

    Raises:
        ValueError: on unequal shapes, no examples, an unknown average, or `"binary"` with more
            than two classes.

    Example:
        >>> precision_recall_f1([1, 1, 0, 0], [1, 0, 1, 1])["recall"]
        0.5
    """
    if average not in AVERAGES:
        raise ValueError(f"`average` must be one of {AVERAGES}. Received: {average!r}.")
    true, predicted = _check_pair(true, predicted)
    if average == "binary":
        _check_binary(true, predicted, positive)
        labels = [positive]
    right, predicted_count, true_count = _counts_per_class(true, predicted, labels)
    if average == "micro":
        right, predicted_count, true_count = (
            count.sum(keepdims=True) for count in (right, predicted_count, true_count)
        )
    scores = {
        "precision": _divide(right, predicted_count, zero_division),
        "recall": _divide(right, true_count, zero_division),
        "f1": _divide(2 * right, predicted_count + true_count, zero_division),
    }
    if average is None:
        return scores
    weights = true_count if average == "weighted" else None
    return {name: _mean(values, weights) for name, values in scores.items()}


def matthews_correlation(true, predicted):
    """Matthews correlation: how far predictions follow the truth beyond class frequencies.

    With the confusion matrix's trace `c`, total `s`, rows `t` and columns `p`:
    `(c s - t·p) / sqrt((s² - p·p) (s² - t·t))`; 1 is perfect, 0 is chance, -1 is inverse (for two
    classes). It is 0 where all labels, or all predictions, are of one class. GLUE scores CoLA
    by it.

    Args:
        true: array `(num_examples,)` of classes.
        predicted: array `(num_examples,)` of classes.

    Returns:
        A float from -1 to 1.

    Raises:
        ValueError: on unequal shapes, no examples, or 2-D labels.

    Example:
        >>> matthews_correlation([1, 1, 0, 0], [1, 0, 0, 0])
        0.5773502691896258

    Reference:
        Gorodkin (2004), Comparing two K-category assignments by a K-category correlation
        coefficient.
    """
    true, predicted = _check_pair(true, predicted)
    if true.ndim != 1:
        raise ValueError(f"Matthews correlation needs 1-D labels. Received: shape {true.shape}.")
    num_classes, true_ids, predicted_ids, _ = _as_class_ids(true, predicted)
    return matthews_from_confusion(confusion_matrix(true_ids, predicted_ids, num_classes))


def matthews_from_confusion(matrix):
    """Matthews correlation of a confusion matrix, see `matthews_correlation`.

    Args:
        matrix: array `(num_classes, num_classes)` of counts, rows are true classes.

    Returns:
        A float from -1 to 1; 0 where a factor of the denominator is 0.
    """
    # Python numbers: products of four counts overflow int64 from some 50,000 examples on.
    row_sums, column_sums = matrix.sum(1).tolist(), matrix.sum(0).tolist()
    total = sum(row_sums)
    covariance = np.trace(matrix).item() * total - sum(
        row * column for row, column in zip(row_sums, column_sums, strict=True)
    )
    true_variance = total * total - sum(row * row for row in row_sums)
    predicted_variance = total * total - sum(column * column for column in column_sums)
    if true_variance == 0 or predicted_variance == 0:
        return 0.0
    return float(covariance / math.sqrt(true_variance * predicted_variance))


def tune_thresholds(true, scores, default=0.5):
    """Finds each label's threshold with the best F1, for multi-label classification.

    A label is predicted where `scores >= threshold`. Tune on the dev set, then apply to the test
    set. Candidates are the midpoints between neighbouring distinct scores of the label, its
    lowest score (predict always), and `default`. Of several with the same F1, the nearest to
    `default` wins, then the lower: a label without a true example keeps `default`.

    Args:
        true: array `(num_examples, num_labels)` of 0 and 1.
        scores: float array `(num_examples, num_labels)`, probabilities (or logits, with
            `default=0.0`).
        default: the threshold without tuning.

    Returns:
        A float64 array `(num_labels,)`.

    Raises:
        ValueError: on unequal shapes, no examples, or scores that are not finite.

    Example:
        >>> tune_thresholds([[1], [1], [0]], [[0.5], [0.25], [0.0]]).tolist()
        [0.125]
    """
    true, scores = np.asarray(true), np.asarray(scores, dtype=np.float64)
    if true.ndim != 2 or true.shape != scores.shape or true.size == 0:
        raise ValueError(
            "`true` and `scores` must both be (num_examples, num_labels), and not empty. "
            f"Received: true {true.shape}, scores {scores.shape}."
        )
    if not np.isin(true, (0, 1)).all():
        raise ValueError("`true` must hold only 0 and 1, one column per label.")
    if not np.isfinite(scores).all():
        raise ValueError("`scores` must be finite. Received: NaN or infinity.")
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
    f1 = _divide(2 * right, predicted + right_below[-1], 0.0)
    best = candidates[f1 == f1.max()]
    return best[np.argmin(np.abs(best - default))]
