"""Columns of any library, such as NumPy or pandas, as lists."""

from collections.abc import Sequence

from ..checks import as_str, describe

# The methods that return a list, in the libraries that hold columns.
_TO_LIST = ("to_pylist", "tolist", "to_list", "numpy")


def is_column(values):
    """Whether `values` is a sequence of entries that can be read more than once.

    Lists and tuples, one-dimensional arrays and tensors, the columns of pandas, polars, pyarrow and
    `datasets`.
    """
    if isinstance(values, (list, tuple)):
        return True
    if isinstance(values, (str, bytes, dict)) or getattr(values, "ndim", 1) != 1:
        return False
    is_sequence = isinstance(values, Sequence) or any(hasattr(values, name) for name in _TO_LIST)
    return is_sequence and not is_table(values)


def as_column(values, name="x"):
    """Returns a column as a list, with strings of each kind as str.

    Args:
        values: see `is_column`.
        name: str, the name of the argument, for the message.

    Raises:
        TypeError: it is something else.
    """
    values = as_str(values)
    if isinstance(values, list):
        return values
    if not is_column(values):
        raise TypeError(
            f"`{name}` must be a list, tuple, array or column. Received: {describe(values)}."
        )
    for method in _TO_LIST:
        if hasattr(values, method):
            return as_str(list(getattr(values, method)()))
    return list(values)


def is_table(x):
    """Whether `x` has named columns: a table of pandas, polars, pyarrow or `datasets`."""
    has_names = hasattr(x, "columns") or hasattr(x, "column_names")
    return has_names and hasattr(x, "__getitem__") and hasattr(x, "shape")
