"""Columns of texts and labels in whatever people hold them, as lists: the one place that looks."""

from collections.abc import Sequence

import numpy as np

from bert_keras.tasks.encoded_examples import Examples
from bert_keras.tokenizers.texts import describe

# How the libraries that hold columns call the way to a list.
_TO_LIST = ("to_pylist", "tolist", "to_list")


def is_column(values):
    """Whether `values` holds entries one after the other: no str, no dict, nothing read only once.

    Lists and tuples, NumPy's arrays, the columns of pandas, polars, pyarrow and `datasets`.
    """
    if isinstance(values, (str, bytes, dict)) or getattr(values, "ndim", 1) != 1:
        return False
    is_listed = isinstance(values, Sequence) or any(hasattr(values, way) for way in _TO_LIST)
    return is_listed and not is_table(values)


def as_column(values, name="x"):
    """Returns a column as a list.

    Args:
        values: see `is_column`.
        name: str, what the message calls it.

    Raises:
        TypeError: it is something else.
    """
    if isinstance(values, list):
        return values
    if not is_column(values):
        raise TypeError(
            f"`{name}` must be a list, tuple, array or column. Received: {describe(values)}."
        )
    for method in _TO_LIST:
        if hasattr(values, method):
            return getattr(values, method)()
    return list(values)


def is_table(x):
    """Whether `x` has columns by names: of pandas, polars, pyarrow or `datasets`."""
    has_names = hasattr(x, "columns") or hasattr(x, "column_names")
    return has_names and hasattr(x, "__getitem__") and hasattr(x, "shape")


def of_table(table, names=None):
    """Returns the columns of texts of a table: one, or a tuple of several.

    Args:
        table: see `is_table`.
        names: names of the columns, or `None` for the only one that holds str.

    Raises:
        ValueError: a column is not there, or no name was given and not one column holds str.
    """
    known = list(table.column_names if hasattr(table, "column_names") else table.columns)
    found = names or [name for name in known if is_text(table[name])]
    if not set(found) <= set(known) or (names is None and len(found) != 1):
        raise ValueError(
            "A table must have one column of str, or the preprocessor must say which ones to read, "
            f"`text_columns=['premise', 'hypothesis']`. Received: the columns {known}, "
            f"text_columns={names}."
        )
    columns = tuple(table[name] for name in found)
    return columns if len(columns) > 1 else columns[0]


def is_text(x):
    """Whether `x` is a str, or a column of which some entry is a str.

    A missing text (None, NaN) in a column of str is still meant as text: the tokenizer's error
    names it.
    """
    if isinstance(x, str):
        return True
    if not is_column(x):
        return False
    kind = getattr(getattr(x, "dtype", None), "kind", "O")
    return len(x) == 0 or kind in "UST" or (kind == "O" and _some_str(x))


def _some_str(column):
    head = as_column(column[:1000] if not hasattr(column, "iloc") else column.iloc[:1000])
    return any(isinstance(value, str) for value in head)


def is_columns(x):
    """Whether `x` is a tuple of columns, such as the first and the second texts of pairs.

    A tuple of str, as `zip(*rows)` gives, is one column.
    """
    return isinstance(x, tuple) and len(x) > 1 and all(map(is_column, x))


def is_texts(x):
    """Whether `x` is a column of texts, or a tuple of such columns."""
    return all(map(is_text, x)) if is_columns(x) else is_text(x)


def is_one_pair(x):
    """Whether `x` is a tuple of two str."""
    return isinstance(x, tuple) and len(x) == 2 and all(isinstance(text, str) for text in x)


def as_columns(x, takes_pairs=True):
    """Returns texts, or a tuple of columns of texts, with lists in the place of other columns."""
    if isinstance(x, str):
        return [x]
    if not takes_pairs:
        return as_column(x)
    if isinstance(x, tuple):  # Choices may be the rows of a matrix.
        x = tuple(list(column) if getattr(column, "ndim", 1) == 2 else column for column in x)
    if is_one_pair(x):  # It could mean two texts, which the preprocessor says.
        return x
    return tuple(map(as_column, x)) if is_columns(x) else as_column(x)


def as_labels(y):
    """Returns labels of raw examples: arrays and what NumPy knows as they are, others as a list."""
    if isinstance(y, (str, int, float)):  # Of one text.
        return [y]
    return y if hasattr(y, "__array__") or not is_column(y) else as_column(y, "y")


def by_number(class_weight, names):
    """Returns weights of classes with numbers in the place of names of labels."""
    if not isinstance(class_weight, dict) or not names:
        return class_weight
    numbers = {name: number for number, name in enumerate(names)}
    return {numbers.get(key, key): weight for key, weight in class_weight.items()}


def is_empty(x):
    """Whether `x` is a column without entries, or a tuple of such columns."""
    return all(map(is_empty, x)) if is_columns(x) else is_column(x) and len(x) == 0


def num_examples(x):
    """Returns the number of examples in texts, columns of texts, or a dict of arrays."""
    if isinstance(x, str) or is_one_pair(x):
        return 1
    if isinstance(x, dict):
        return len(next(iter(x.values())))
    return len(x[0]) if is_columns(x) else len(x)


def check_is_dataset(x):
    """Raises `TypeError` when `x` is neither texts nor inputs nor anything that yields them."""
    if x is not None and not isinstance(x, (list, tuple, str, bytes, int, float, np.ndarray)):
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
    remedies = {
        bytes: " Decode it: [text.decode() for text in x].",
        dict: " Take a field, [row['text'] for row in x], or a table, pandas.DataFrame(x).",
    }
    raise TypeError(
        f"{rule} Received: {type(x).__name__}, beginning with {first!r:.80}."
        + remedies.get(type(first), "")
    )


def check_same_length(x, y, sample_weight=None):
    """Raises `ValueError` unless inputs, labels and finite weights are equally many."""
    examples = num_examples(x)
    for name, values in (("labels", y), ("sample weights", sample_weight)):
        if values is not None and num_examples(values) != examples:
            raise ValueError(
                f"There must be as many {name} as examples. Received: {examples} examples and "
                f"{num_examples(values)} {name}."
            )
    weights = 0.0 if sample_weight is None or isinstance(sample_weight, dict) else sample_weight
    if not np.isfinite(np.asarray(weights, "float64")).all():
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
    return tuple(tuple(_take(v, rows) for v in (x, y, sample_weight)) for rows in parts)


def _take(x, rows):
    """Returns the examples of a slice, of whatever `x` is; `None` stays `None`."""
    if x is None:
        return None
    if isinstance(x, dict):
        return {key: _take(value, rows) for key, value in x.items()}
    if isinstance(x, Examples):
        return x.take(np.arange(len(x))[rows])
    if is_columns(x):
        return tuple(_take(column, rows) for column in x)
    return x.iloc[rows] if hasattr(x, "iloc") else x[rows]
