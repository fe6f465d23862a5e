"""Columns of texts and labels as users pass them: recognise, count, split."""

import numpy as np


def is_text(x):
    """Whether `x` is a str, a column of str, or a tuple of two such columns.

    Args:
        x: anything that a user passed as `x`.
    """
    if isinstance(x, tuple) and len(x) == 2:
        return all(is_text(column) for column in x)
    if isinstance(x, str):
        return True
    if isinstance(x, (list, tuple)):
        # A missing text (None, NaN) in a column of str is still meant as text: the tokenizer's
        # error names it.
        return not x or any(isinstance(value, str) for value in x[:1000])
    dtype = getattr(x, "dtype", None)
    if dtype is None or isinstance(x, dict) or not hasattr(x, "tolist"):
        return False
    return getattr(dtype, "kind", None) in ("U", "S", "O") or "str" in str(dtype)


def check_is_dataset(x):
    """Raises `TypeError` when `x` is neither texts nor inputs nor anything that yields them.

    Args:
        x: what was passed and is neither recognised as texts nor a dict of arrays.
    """
    if x is not None and not isinstance(x, (list, tuple, str, bytes, int, float)):
        return
    rule = (
        "`x` must be a column of str, a tuple of two such columns for pairs, a dict of arrays as "
        "in bert_keras.inputs, or a dataset."
    )
    if isinstance(x, list) and x and all(isinstance(row, (list, tuple)) for row in x):
        raise TypeError(
            f"{rule} Received: a list of {len(x)} rows of {len(x[0])}. Turn rows of pairs into two "
            "columns: tuple(map(list, zip(*rows)))."
        )
    first = x[0] if isinstance(x, (list, tuple)) and x else x
    raise TypeError(f"{rule} Received: {type(x).__name__}, beginning with {first!r:.80}.")


def is_columns(x):
    """Whether `x` is a tuple of columns, such as the first and the second texts of pairs."""
    return isinstance(x, tuple) and len(x) > 1 and not isinstance(x[0], str)


def is_empty(x):
    """Whether `x` is a column without entries, or a tuple of such columns."""
    if is_columns(x):
        return all(map(is_empty, x))
    is_column = isinstance(x, (list, tuple)) or (hasattr(x, "tolist") and np.ndim(x) > 0)
    return is_column and len(x) == 0


def num_examples(x):
    """Returns the number of examples in texts, columns of texts, or a dict of arrays."""
    if isinstance(x, str):
        return 1
    if isinstance(x, dict):
        return len(next(iter(x.values())))
    return len(x[0]) if is_columns(x) else len(x)


def take(x, rows):
    """Returns the examples of a slice, of whatever `x` is; `None` stays `None`.

    Args:
        x: a column, a tuple of columns, a dict of columns, or `None`.
        rows: a slice.
    """
    if x is None:
        return None
    if isinstance(x, dict):
        return {key: take(value, rows) for key, value in x.items()}
    if is_columns(x):
        return tuple(take(column, rows) for column in x)
    if hasattr(x, "iloc"):
        return x.iloc[rows]
    return x[rows]


def check_same_length(x, y, sample_weight=None):
    """Raises `ValueError` unless inputs, labels and finite weights are equally many."""
    examples = num_examples(x)
    for name, values in (("labels", y), ("sample weights", sample_weight)):
        if values is None:
            continue
        count = num_examples(values)
        if count != examples:
            raise ValueError(
                f"There must be as many {name} as examples. Received: {examples} examples and "
                f"{count} {name}."
            )
    if sample_weight is not None and not isinstance(sample_weight, dict):
        weights = np.asarray(sample_weight, "float64")
        if not np.isfinite(weights).all():
            raise ValueError("Sample weights must be finite numbers. Received NaN or infinity.")


def split_off_end(x, y, sample_weight, share):
    """Splits examples into the first part and the last, for `validation_split`.

    Args:
        x: texts, columns of texts, or a dict of arrays.
        y: labels.
        sample_weight: weights, or `None`.
        share: float, above 0 and below 1, of the last part.

    Returns:
        Two tuples `(x, y, sample_weight)`.

    Raises:
        ValueError: `share` leaves one part empty, or is out of range.
    """
    count = num_examples(x)
    first = count - int(np.ceil(count * share)) if 0 < share < 1 else 0
    if not 0 < first < count:
        raise ValueError(
            "`validation_split` must be above 0 and below 1 and leave examples in both parts. "
            f"Received: validation_split={share} of {count} examples."
        )
    parts = (slice(None, first), slice(first, None))
    return tuple(tuple(take(v, rows) for v in (x, y, sample_weight)) for rows in parts)
