"""Texts and labels in the columns of TSV and CSV files, as the flags of a recipe name them."""

import math
import re

import numpy as np

from bert_keras import datasets


def read_texts(
    path,
    text_columns,
    label_column,
    label_names=None,
    problem_type="single_label",
    score_range=(-math.inf, math.inf),
    may_lack_labels=False,
    separator=",",
):
    """Reads a file of texts, or pairs of texts, with a label each.

    Columns are named in the first row, unless all of them are given by number.

    Args:
        path: TSV or CSV file, see `datasets.read_table`.
        text_columns: list of one or two str: names, or numbers from 0, negative from the end.
            `None` among them is left out.
        label_column: str, likewise.
        label_names: tuple of str, the labels there may be; by default those that occur.
        problem_type: `"single_label"`, `"multi_label"` for fields with any number of labels, or
            `"regression"` for labels that are numbers.
        score_range: (lowest, highest) number that a score may be.
        may_lack_labels: bool, whether a file without the label's column holds texts to predict,
            or is an error.
        separator: str, what stands between the labels of one field.

    Returns:
        `datasets.Examples`.

    Raises:
        ValueError: there are no rows or no such column, or a label is none. The message names the
            file and the line.
    """
    texts = [as_column(name) for name in text_columns if name is not None]
    label = as_column(label_column)
    header = not all(isinstance(column, int) for column in (*texts, label))
    is_labelled = not (may_lack_labels and _lacks_labels(path, texts, label))
    columns = [*texts, label] if is_labelled else texts
    if len(set(columns)) < len(columns):
        raise ValueError(f"Texts and labels must be different columns. Received: {columns}.")
    table, lines = datasets.read_numbered_table(path, columns, header=header)
    if not lines:
        raise ValueError(f"{path} holds a header and no rows.")
    read = tuple(table[column] for column in texts)
    read = read[0] if len(read) == 1 else read
    if not is_labelled:
        return datasets.Examples(read, None, label_names or (), problem_type)
    if problem_type == "regression":
        labels, label_names = _scores(path, table[label], lines, score_range), ()
    elif problem_type == "multi_label":
        labels, label_names = _indicators(path, table[label], lines, label_names, separator)
    else:
        labels, label_names = _numbers(path, table[label], lines, label_names)
    return datasets.Examples(read, labels, label_names, problem_type)


def as_column(name):
    """Returns a column as `datasets.read_table` takes it: an int where the flag's value is one."""
    return int(name) if re.fullmatch(r"-?\d+", name) else name


def _lacks_labels(path, texts, label):
    _, first = next(datasets.read_rows(path))
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


def _numbers(path, values, lines, label_names):
    """Returns labels as numbers, int32 `(n,)`, and their names."""
    are_given = bool(label_names)
    label_names = label_names or tuple(sorted({*values} - {""}))
    if label_names and not are_given and all(map(_is_fraction, label_names)):
        print(
            f"{path}: labels such as {label_names[0]} are taken for classes. "
            "text_classification.py takes them for scores by --problem_type regression."
        )
    numbers = {name: number for number, name in enumerate(label_names)}
    for line, value in zip(lines, values, strict=True):
        _check_label(path, line, value, numbers)
    if len(label_names) < 2 and not are_given:
        raise ValueError(
            f"{path}: there must be at least two classes to tell apart. Received in the label's "
            f"column: {label_names[0]!r} alone."
        )
    return np.array([numbers[value] for value in values], "int32"), label_names


def _is_fraction(text):
    """Whether a label is written like 1.5, as scores are and classes are not."""
    return re.fullmatch(r"-?\d*\.\d+", text) is not None


def _indicators(path, values, lines, label_names, separator):
    """Returns labels as 0 and 1, int32 `(n, num_labels)`, and their names."""
    rows = [[part.strip() for part in value.split(separator) if part.strip()] for value in values]
    label_names = label_names or tuple(sorted({name for row in rows for name in row}))
    if not label_names:
        raise ValueError(f"{path} has no labels: the fields of their column are all empty.")
    numbers = {name: number for number, name in enumerate(label_names)}
    labels = np.zeros((len(rows), len(label_names)), "int32")
    for place, (line, row) in enumerate(zip(lines, rows, strict=True)):
        for name in row:
            _check_label(path, line, name, numbers)
            labels[place, numbers[name]] = 1
    return labels, label_names


def _check_label(path, line, name, names):
    if name not in names:
        raise ValueError(
            f"{path}, line {line}: a label must be one of {list(names)[:20]}. Received: {name!r}"
        )


def _scores(path, values, lines, score_range):
    """Returns scores as float32 `(n,)`."""
    low, high = score_range
    scores = []
    for line, value in zip(lines, values, strict=True):
        try:
            scores.append(float(value))
        except ValueError:
            scores.append(math.nan)
        if not (low <= scores[-1] <= high and math.isfinite(scores[-1])):
            limits = f" from {low} to {high}" if math.isfinite(high) else ""
            raise ValueError(
                f"{path}, line {line}: a score must be a number{limits}. Received: {value!r}"
            )
    return np.array(scores, "float32")
