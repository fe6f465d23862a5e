"""Texts and labels in the columns of a table, whose names the caller has."""

import math
import re
from collections.abc import Sequence

import numpy as np

from bert_keras.datasets.any_table import as_text, has_names, read_any_rows
from bert_keras.datasets.examples import Examples
from bert_keras.types import Path, ProblemType

# What may stand between the columns of a CSV file, beside the comma.
_DELIMITERS = (";", "|", "\t")


def read_texts(
    path: Path,
    text_columns: Sequence[str | None],
    label_column: str,
    label_names: Sequence[str] | None = None,
    problem_type: ProblemType = "single_label",
    score_range: tuple[float, float] = (-math.inf, math.inf),
    may_lack_labels: bool = False,
    label_separator: str = ",",
    separator: str | None = None,
) -> Examples:
    """Reads a file of texts, or pairs of texts, with a label each.

    Columns are named in the first row, unless all of them are given by number.

    Args:
        path: CSV, TSV, JSON, JSON lines or Parquet file, see `read_any_rows`.
        text_columns: list of one or two str: names, or numbers from 0, negative from the end.
            `None` among them is left out.
        label_column: str, likewise.
        label_names: tuple of str, the labels there may be; by default those that occur.
        problem_type: `"single_label"`, `"multi_label"` for fields with any number of labels, in
            JSON also lists, or `"regression"` for labels that are numbers.
        score_range: (lowest, highest) number that a score may be.
        may_lack_labels: bool, whether a file without the label's column holds texts to predict,
            or is an error.
        label_separator: str, what stands between the labels of one field.
        separator: str of one character, what stands between columns. By default a tab where the
            first row has one; in a `.csv` file that of comma, semicolon and `|` by which the first
            row has the named columns.

    Returns:
        `Examples`.

    Raises:
        ValueError: there are no rows or no such column, or a label is none. The message names the
            file and the place, and of columns those that are there.
    """
    texts = [as_column(name) for name in text_columns if name is not None]
    label = as_column(label_column)
    if len({*texts, label}) <= len(texts):
        raise ValueError(
            f"Texts and labels must be different columns. Received: {[*texts, label]}."
        )
    first, rows = _read_rows(path, [*texts, label], separator)
    is_labelled = not (may_lack_labels and _lacks_labels(path, first, texts, label))
    places = [place for place, _ in rows]
    columns = [_find(path, first, column) for column in texts]
    read = tuple([as_text(row[i], f"{path}, {place}") for place, row in rows] for i in columns)
    read = read[0] if len(read) == 1 else read
    if not is_labelled:
        return Examples(read, None, label_names or (), problem_type)
    column = _find(path, first, label)
    values = [_label_text(row[column], label_separator, f"{path}, {at}") for at, row in rows]
    if problem_type == "regression":
        labels, label_names = _scores(path, values, places, score_range), ()
    elif problem_type == "multi_label":
        labels, label_names = _indicators(path, values, places, label_names, label_separator)
    else:
        labels, label_names = _numbers(path, values, places, label_names)
    return Examples(read, labels, label_names, problem_type)


def _read_rows(path, columns, separator):
    """Returns the first row, which has the names unless all columns are numbers, and the others."""
    header = has_names(path) or not all(isinstance(column, int) for column in columns)
    delimiter = separator
    if separator is None and header and not has_names(path) and ".csv" in str(path).lower():
        wanted = {column for column in columns if isinstance(column, str)}
        names = {other: next(read_any_rows(path, other))[1] for other in (None, *_DELIMITERS)}
        delimiter = max(names, key=lambda other: (wanted <= {*names[other]}, len(names[other])))
    rows = list(read_any_rows(path, delimiter))
    _, first = rows[0]
    rows = rows[1:] if header else rows
    if not rows:
        raise ValueError(f"{path} holds a header and no rows.")
    for place, row in rows:
        if len(row) != len(first):
            raise ValueError(
                f"{path}, {place}: every row must have as many fields as the first, {len(first)}. "
                f"Received {len(row)}: {repr(row)[:200]}"
            )
    return first, rows


def _find(path, first, column):
    """Returns where a column stands."""
    is_there = (
        -len(first) <= column < len(first) if isinstance(column, int) else first.count(column) == 1
    )
    if not is_there:
        raise ValueError(
            f"{path} has no column {column!r}, or more than one. Its first row is "
            f"{repr(first)[:300]}. Name the columns by text_column, pair_column and label_column, "
            "by numbers from 0 where the first row is data; separator says what stands between."
        )
    return column % len(first) if isinstance(column, int) else first.index(column)


def _label_text(value, separator, place):
    """Returns a label as str; in JSON it may be true, or a list."""
    if isinstance(value, list):
        return separator.join(as_text(part, place) for part in value)
    return str(value).lower() if isinstance(value, bool) else as_text(value, place)


def as_column(name):
    """Returns a column's name, or its number where it is written as one."""
    return int(name) if re.fullmatch(r"-?\d+", str(name)) else name


def _lacks_labels(path, first, texts, label):
    if isinstance(label, int):
        # Counted from the end, the label's column may be that of a text.
        places = [column % len(first) for column in texts if isinstance(column, int)]
        return not -len(first) <= label < len(first) or label % len(first) in places
    if label not in first:
        print(
            f"{path} has no column {label!r} to measure by; its first row, {first}, is taken for "
            "the header."
        )
    return label not in first


def _numbers(path, values, places, label_names):
    """Returns labels as numbers, int32 `(n,)`, and their names."""
    are_given = bool(label_names)
    label_names = label_names or tuple(sorted({*values} - {""}))
    if label_names and not are_given and all(map(_is_fraction, label_names)):
        print(
            f"{path}: labels such as {label_names[0]} are taken for classes. As scores they are "
            "read with the problem type regression."
        )
    numbers = {name: number for number, name in enumerate(label_names)}
    for place, value in zip(places, values, strict=True):
        _check_label(path, place, value, numbers)
    if len(label_names) < 2 and not are_given:
        raise ValueError(
            f"{path}: there must be at least two classes to tell apart. Received in the label's "
            f"column: {label_names[0]!r} alone."
        )
    return np.array([numbers[value] for value in values], "int32"), label_names


def _is_fraction(text):
    """Whether a label is written like 1.5, as scores are and classes are not."""
    return re.fullmatch(r"-?\d*\.\d+", text) is not None


def _indicators(path, values, places, label_names, separator):
    """Returns labels as 0 and 1, int32 `(n, num_labels)`, and their names."""
    rows = [[part.strip() for part in value.split(separator) if part.strip()] for value in values]
    label_names = label_names or tuple(sorted({name for row in rows for name in row}))
    if not label_names:
        raise ValueError(f"{path} has no labels: the fields of their column are all empty.")
    numbers = {name: number for number, name in enumerate(label_names)}
    labels = np.zeros((len(rows), len(label_names)), "int32")
    for number, (place, row) in enumerate(zip(places, rows, strict=True)):
        for name in row:
            _check_label(path, place, name, numbers)
            labels[number, numbers[name]] = 1
    return labels, label_names


def _check_label(path, place, name, names):
    if name not in names:
        raise ValueError(
            f"{path}, {place}: a label must be one of {list(names)[:20]}. Received: {name!r}"
        )


def _scores(path, values, places, score_range):
    """Returns scores as float32 `(n,)`."""
    low, high = score_range
    scores = []
    for place, value in zip(places, values, strict=True):
        try:
            scores.append(float(value))
        except ValueError:
            scores.append(math.nan)
        if not (low <= scores[-1] <= high and math.isfinite(scores[-1])):
            limits = f" from {low} to {high}" if math.isfinite(high) else ""
            raise ValueError(
                f"{path}, {place}: a score must be a number{limits}. Received: {value!r}"
            )
    return np.array(scores, "float32")
