"""Checks of arguments, one function for each recurring kind, and columns of any library as lists.

Every error states the rule, then what was received, then what to do about it.
"""

import importlib
import math
import os
from collections.abc import Sequence

import numpy as np

# The methods that return a list, in the libraries that hold columns.
_TO_LIST = ("to_pylist", "tolist", "to_list", "numpy")
# What messages call arrays of these dtype kinds.
_DTYPES = {"iu": "ints", "iub": "ints or bools", "f": "floats", "iuf": "numbers", "iufb": "numbers"}


def is_int(value):
    """Whether a value is an int of Python or NumPy. A bool is not one."""
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def is_number(value):
    """Whether a value is a finite number of Python or NumPy. A bool is not one."""
    kinds = (int, float, np.integer, np.floating)
    return isinstance(value, kinds) and not isinstance(value, bool) and math.isfinite(value)


def check_int(name, value, least=1, most=None, advice=""):
    """Returns `value` as an int; raises `ValueError` unless it is one from `least` to `most`.

    Args:
        name: str, the name of the argument.
        value: anything.
        least: int.
        most: int, or `None` for no limit.
        advice: str, what to do; the last sentence of the message.
    """
    if is_int(value) and least <= value and (most is None or value <= most):
        return int(value)
    limits = f"from {least}" if most is None else f"from {least} to {most}"
    raise ValueError(_message(name, f"an int {limits}", value, advice))


def check_number(name, value, least=0.0, below=math.inf, above=-math.inf, advice="", most=math.inf):
    """Returns `value`; raises `ValueError` unless it is a finite number within its limits.

    Args:
        name: str, the name of the argument.
        value: anything.
        least: float, the smallest number allowed.
        below: float, an upper limit that is not allowed itself.
        above: float, a lower limit that is not allowed itself.
        advice: str, what to do; the last sentence of the message.
        most: float, the largest number allowed.
    """
    if is_number(value) and least <= value < below and above < value <= most:
        return value
    limits = f"above {above:g}" if above >= least else f"from {least:g}"
    limits += "" if below == math.inf else f" and below {below:g}"
    limits += "" if most == math.inf else f" to {most:g}"
    raise ValueError(_message(name, f"a finite number {limits}", value, advice))


def check_choice(name, value, choices, advice=""):
    """Returns `value`; raises `ValueError` unless it is one of `choices`."""
    for choice in choices:
        if value is choice or (type(value) is type(choice) and value == choice):
            return value
    raise ValueError(_message(name, f"one of {tuple(choices)}", value, advice))


def check_settings(path, settings, allowed, advice=""):
    """Returns the settings in a file; raises `ValueError` unless their values are supported.

    Args:
        path: str or path of the file.
        settings: dict.
        allowed: dict, key -> the values that are supported. A file without the key means the first.
        advice: str, what to do; the last sentence of the message.
    """
    for key, values in allowed.items():
        check_choice(f"{key}` in `{path}", settings.get(key, values[0]), values, advice)
    return settings


def check_bool(name, value, advice=""):
    """Returns `value`; raises `ValueError` unless it is `True` or `False`."""
    return check_choice(name, value, (True, False), advice)


def check_type(name, value, kinds, rule, advice=""):
    """Returns `value`; raises `TypeError` unless it is an instance of `kinds`.

    Args:
        name: str, the name of the argument.
        value: anything.
        kinds: a type, or a tuple of types.
        rule: str, what the value must be, such as `"a list of str"`.
        advice: str, what to do; the last sentence of the message.
    """
    if isinstance(value, kinds):
        return value
    raise TypeError(f"`{name}` must be {rule}. Received: {describe(value)}.{_last(advice)}")


def check_shape(name, array, shape, kinds="", advice=""):
    """Returns `array`; raises `ValueError` unless it has the shape, and a dtype of the kinds.

    Args:
        name: str, the subject of the message, such as `"Labels"`.
        array: array.
        shape: tuple with an int for each axis of fixed size, and a str that names each other axis.
        kinds: str, the dtype kinds allowed, such as `"iu"` for ints; `""` allows all.
        advice: str, what to do; the last sentence of the message.

    Example: `check_shape("Labels", labels, ("num_examples", 3), "iu")` raises "Labels must be ints
    of the shape (num_examples, 3). Received: dtype float32, shape (8, 2)."
    """
    fits = len(array.shape) == len(shape) and all(
        isinstance(size, str) or size == found
        for size, found in zip(shape, array.shape, strict=True)
    )
    if fits and (not kinds or array.dtype.kind in kinds):
        return array
    axes = f"({', '.join(map(str, shape))}{',' * (len(shape) == 1)})"
    rule, received = f"have the shape {axes}", f"shape {tuple(array.shape)}"
    if kinds:
        rule = f"be {_DTYPES[kinds]} of the shape {axes}"
        received = f"dtype {array.dtype}, {received}"
    raise ValueError(f"{name} must {rule}. Received: {received}.{_last(advice)}")


def as_array(name, values, advice="", convert=np.asarray):
    """Returns `values` as an array; raises `ValueError` if its rows differ in length.

    Args:
        name: str, the subject of the message, such as `"Labels"`.
        values: array, or nested lists.
        advice: str, what to do; the last sentence of the message.
        convert: function that makes the array.
    """
    try:
        return convert(values)
    except ValueError:
        raise ValueError(
            f"{name} must have rows of equal length. Received rows of different lengths: "
            f"{values!r:.80}.{_last(advice)}"
        ) from None


def check_same_length(rule, advice="", **columns):
    """Raises `ValueError` unless all columns have the same length.

    Args:
        rule: str, a sentence without its full stop.
        advice: str, what to do; the last sentence of the message.
        **columns: sequences by the names that the message shows. `None` is left out.
    """
    lengths = {name: len(column) for name, column in columns.items() if column is not None}
    if len(set(lengths.values())) > 1:
        received = (f"{n} {x if n != 1 else x.removesuffix('s')}" for x, n in lengths.items())
        raise ValueError(f"{rule}. Received: {', '.join(received)}.{_last(advice)}")


def check_not_empty(values, rule, advice=""):
    """Returns `values`; raises `ValueError` if there are none.

    Args:
        values: sequence or array.
        rule: str, a sentence without its full stop.
        advice: str, what to do; the last sentence of the message.
    """
    if len(values):
        return values
    raise ValueError(f"{rule}. Received: none.{_last(advice)}")


def check_exists(path, rule, advice="", exists=os.path.exists):
    """Raises `FileNotFoundError` unless there is a file or a folder.

    Args:
        path: str or path.
        rule: str, a sentence without its full stop.
        advice: str, what to do; the last sentence of the message.
        exists: function of the path; `os.path.isfile` and `os.path.isdir` ask for one kind.
    """
    if not exists(path):
        raise FileNotFoundError(f"{rule}. Received: {os.fspath(path)!r}, not found.{_last(advice)}")


def check_has_labels(labels, owner, advice=""):
    """Raises `ValueError` if there are no labels to train or to be evaluated with.

    Args:
        labels: labels as a user passes them, or `None`.
        owner: str, the class that needs them.
        advice: str, what to do; the last sentence of the message.
    """
    if labels is None:
        raise ValueError(
            f"{owner} needs labels to train or to be evaluated. Received: y=None.{_last(advice)}"
        )


def raise_at_first(wrong, values, rule, advice="", places=None):
    """Raises `ValueError` for the first row that is wrong, with its index and value.

    Args:
        wrong: bool array, `True` for each wrong row, or for each wrong element of an array.
        values: sequence or array, indexed as `wrong` is.
        rule: str, a sentence without its full stop.
        advice: str, what to do; the last sentence of the message.
        places: list of str, where each row is in a file, instead of its index.

    Example: `raise_at_first(labels > 2, labels, "Labels must be at most 2")` raises "Labels must be
    at most 2. Received 7 at the index 3."
    """
    wrong = np.asarray(wrong)
    if not wrong.any():
        return
    index = tuple(np.argwhere(wrong)[0].tolist())
    index = index[0] if len(index) == 1 else index
    value = values[index]
    value = value.tolist() if isinstance(value, (np.ndarray, np.generic)) else value
    received = f"Received {value!r:.80} at the index {index}"
    if places is not None:
        rule, received = f"{places[index]}: {rule}", f"Received: {value!r:.80}"
    raise ValueError(f"{rule}. {received}.{_last(advice)}")


def refuse_options(rule, options, advice="Leave it out."):
    """Raises `ValueError` if an option is set that would have no effect.

    Args:
        rule: str, what the options are for, a sentence without its full stop.
        options: dict from names to values; an option of `None` is not set.
        advice: str, what to do; the last sentence of the message.

    Example: `refuse_options("`delimiter` is for tables", {"delimiter": ";"})` raises "`delimiter`
    is for tables. Received: delimiter=';'. Leave it out."
    """
    chosen = {name: value for name, value in options.items() if value is not None}
    if chosen:
        received = ", ".join(f"{name}={value!r:.200}" for name, value in chosen.items())
        raise ValueError(f"{rule}. Received: {received}. {advice}")


def refuse_smoothing(rate, rule, advice="Leave it out."):
    """Raises `ValueError` if `label_smoothing` is set where labels cannot be smoothed.

    Args:
        rate: float, the `label_smoothing`.
        rule: str, why not, a sentence without its full stop.
        advice: str, what to do; the last sentence of the message.
    """
    refuse_options(rule, {"label_smoothing": rate or None}, advice)


def require(package, to, extra=None, advice=""):
    """Imports and returns a package that `bert_keras` does not depend on.

    Args:
        package: str, the name of the module; its underscores are hyphens in the name of the
            distribution.
        to: str, what it is needed for, such as `"read Parquet files"`.
        extra: str, the extra of `bert_keras` that installs it, if there is one.
        advice: str, what else to do; the last sentence of the message.

    Raises:
        ImportError: it cannot be imported. The message has the line that installs it.
    """
    try:
        return importlib.import_module(package)
    except ImportError as error:
        name = package.partition(".")[0].replace("_", "-")
        remedy = with_extra(extra) if extra else f"Install it: `pip install {name}`"
        raise ImportError(
            f"To {to}, {name} must be installed. {remedy}. Received: {error}.{_last(advice)}"
        ) from error


def with_extra(extra):
    """Returns how to install an extra, a sentence without its full stop."""
    return f"Install the extra {extra!r} from a clone of bert_keras: `pip install '.[{extra}]'`"


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
    # A stream of `datasets` has no length.
    return is_sequence and hasattr(values, "__len__") and not is_table(values)


def as_column(values, name="x", kind=""):
    """Returns a column as a list, with strings of each kind as str.

    Args:
        values: see `is_column`.
        name: str, the name of the argument, for the message.
        kind: str, what the message says of the entries.

    Raises:
        TypeError: it is something else.
    """
    values = as_str(values)
    if isinstance(values, list):
        return values
    if not is_column(values):
        raise TypeError(
            f"`{name}` must be a list, tuple, array or column{kind}. Received: {describe(values)}."
            f"{_text_advice(values)}"
        )
    for method in _TO_LIST:
        if hasattr(values, method):
            return as_str(list(getattr(values, method)()))
    return list(values)


def is_table(x):
    """Whether `x` has named columns: a table of pandas, polars, pyarrow or `datasets`."""
    has_names = hasattr(x, "columns") or hasattr(x, "column_names")
    return has_names and hasattr(x, "__getitem__") and hasattr(x, "shape")


def as_texts(texts, name="texts"):
    """Returns a column of texts as a list of str.

    Args:
        texts: a list, tuple, NumPy array or pandas Series of str (anything with `tolist()`), or of
            bytes, or a tensor of strings, see `as_str`.
        name: str, the name of the argument.

    Returns:
        A list of str, the same objects.

    Raises:
        TypeError: an entry is not a str; the message has its index.
        ValueError: bytes are not UTF-8.
    """
    texts = as_column(texts, name, " of str")
    for index, text in enumerate(texts):
        if not isinstance(text, str):
            raise TypeError(
                f"`{name}` must hold str only. Received: {name}[{index}] is {describe(text)}."
                f"{_text_advice(text)}"
            )
    return list(texts)


def as_str(values):
    """Returns strings in another form as `str`, nested as they were; anything else unchanged.

    `tf.data` yields bytes, in tensors or NumPy arrays, where it was given str.

    Args:
        values: bytes in UTF-8, a tensor of strings, an array of bytes or objects, or lists and
            tuples of these. The first entry decides for a list.

    Raises:
        ValueError: bytes are not UTF-8.
    """
    if hasattr(values, "numpy") and getattr(values, "dtype", None) == "string":  # TensorFlow's.
        values = values.to_list() if hasattr(values, "to_list") else values.numpy()
    if isinstance(values, np.ndarray) and values.dtype.kind in "OS":
        values = values.tolist()
    if isinstance(values, bytes):
        try:
            return values.decode()
        except UnicodeDecodeError as error:
            raise ValueError(
                f"Texts in bytes must be UTF-8. Received: {values!r:.80}. Decode them first, for "
                "instance with `value.decode('latin-1')`."
            ) from error
    if isinstance(values, tuple) and values and not isinstance(values[0], str):
        return tuple(map(as_str, values))
    if isinstance(values, list) and isinstance(next(_leaves(values), None), bytes):
        return [as_str(value) for value in values]
    return values


def _leaves(values):
    """Yields the entries of nested lists that are not `None`."""
    for value in values:
        if isinstance(value, (list, tuple)):
            yield from _leaves(value)
        elif value is not None:
            yield value


def check_pairs(texts, pairs):
    """Raises `ValueError` unless there are as many second texts as first ones."""
    check_same_length("First and second texts must be equally many", first=texts, second=pairs)


def _text_advice(value):
    """Returns what to do about a value that is not a text, for the end of a message."""
    if type(value).__module__.startswith("tensorflow"):
        return (
            " In `Dataset.map` there are no texts yet. Give `fit` the dataset of strings itself: "
            "its batches are tokenized as they come."
        )
    if isinstance(value, bytes):
        return " Decode the bytes among the str, for instance with `value.decode('utf-8')`."
    if isinstance(value, (list, tuple)):
        return (
            " Sentence pairs are two columns, the first texts and the second texts, in the same "
            "order; turn rows into columns with `firsts, seconds = zip(*rows)`."
        )
    if value is None or isinstance(value, float):
        return " Drop the rows with missing values, or replace a missing text with ''."
    return ""


def describe(value):
    """Returns a value, shortened, with its type, for a message."""
    text = repr(value)
    if len(text) > 60:
        text = text[:57] + "..."
    return f"{text} of type {type(value).__name__}"


def _message(name, rule, value, advice):
    return f"`{name}` must be {rule}. Received: {value!r:.200}.{_last(advice)}"


def _last(advice):
    return f" {advice}" if advice else ""
