"""Labels in whatever form they come, as one array of one kind."""

import numpy as np


def as_label_array(labels, what="label"):
    """Returns labels as an array of strings, of numbers or of booleans.

    NumPy makes strings of numbers, `None` and NaN that stand among strings; here they are errors.

    Args:
        labels: array, column or list of labels, or of equally long rows of labels.
        what: str, what the message calls one of them.

    Returns:
        An array of the shape of `labels`; NaN stays in it where all are numbers.

    Raises:
        ValueError: a label is missing (`None`, NaN among others than numbers, pandas' `NA`),
            strings stand among numbers, or rows differ in length. The message names the index.
    """
    try:
        array = np.asarray(labels)
    except ValueError:
        for row, value in enumerate(labels):
            _check_there(value, row, what)
        raise ValueError(
            "Labels must be one an example, or for several labels an example a matrix of 0 and 1, "
            "(num_examples, num_classes). Received rows of different lengths."
        ) from None
    if array.dtype.kind in "biuf" or array.ndim == 0:
        return array
    values = np.array(labels, dtype=object).reshape(-1).tolist()
    for place, value in enumerate(values):
        row = place * len(array) // len(values)
        _check_there(value, row, what)
        if isinstance(value, (str, bytes)) != isinstance(values[0], (str, bytes)):
            raise ValueError(
                f"The {what}s must be all strings or all numbers. Received {value!r} at the index "
                f"{row}, and {values[0]!r} at the index 0."
            )
    return np.array(values).reshape(array.shape) if values else array


def _is_missing(value):
    """Whether a label is `None`, NaN or pandas' `NA`."""
    if value is None:
        return True
    try:
        return bool(value != value)
    except TypeError:  # `NA` is neither equal to itself nor not.
        return True
    except ValueError:  # A row of labels is there.
        return False


def _check_there(value, row, what):
    if _is_missing(value):
        raise ValueError(
            f"Every example needs a {what}. Received {value!r} at the index {row}. Leave out the "
            "examples without one."
        )
