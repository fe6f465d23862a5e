"""Reading labelled texts: published sets in their known layouts, and files with named columns."""

import dataclasses
import itertools
import math
import re
from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

import numpy as np

from bert_keras.checks import check_not_empty, raise_at_first
from bert_keras.datasets.files import check_at
from bert_keras.datasets.label_parsing import is_missing, read_labels, remark_on_names
from bert_keras.datasets.labelled_texts import LabelledTexts
from bert_keras.datasets.table import (
    accepted_records,
    as_text,
    find_column,
    find_name,
    is_number,
    read_records,
    warn_of_rows,
)
from bert_keras.types import Path, ProblemType

# Python's `float` also reads `1_0`, as 10.
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.IGNORECASE)


class Layout(NamedTuple):
    """The columns of a row's texts and of its label.

    Args:
        texts: tuple of one or two columns, by name or, in files without a header, by number.
        label: the label's column, by name or by number; `None` if the layout has no labels.
    """

    texts: tuple[str | int, ...]
    label: str | int | None = None


@dataclasses.dataclass(frozen=True)
class ClassificationTask:
    """Everything the readers know about a set of labelled texts. No code depends on a set's name.

    Args:
        layouts: tuple of `Layout`; the first whose names are in the file's first row is used, else
            the last.
        label_names: tuple of str, in the order of the class numbers; empty for regression.
        are_named: bool, whether files hold these names, rather than the numbers.
        files: dict from a split's name to the file names it may have; the first that exists
            is used.
        problem_type: `"single_label"`, `"multi_label"` (the file lists class numbers, separated
            by commas) or `"regression"`.
        score_range: (lowest, highest) score of a regression set.
        skips_broken_rows: bool. If `False`, a row with a wrong number of fields is an error. If
            `True`, for sets published with such rows, they are left out with a warning.
    """

    layouts: tuple[Layout, ...]
    label_names: tuple[str, ...]
    are_named: bool = False
    files: Mapping[str, tuple[str, ...]] = dataclasses.field(default_factory=dict)
    problem_type: ProblemType = "single_label"
    score_range: tuple[float, float] = (-math.inf, math.inf)
    skips_broken_rows: bool = False


def read_examples(path: Path, task: ClassificationTask) -> LabelledTexts:
    """Reads one file of a labelled text set.

    Args:
        path: the file, see `read_records`.
        task: `ClassificationTask`.

    Returns:
        `LabelledTexts`, with `labels` `None` if the file has none. A warning counts the rows that
        are left out, such as those without a label, see `read_texts`.

    Raises:
        ValueError: the file has none of the task's layouts, a row has another number of fields
            than its layout, a text or label in JSON is neither a str nor a number, or a label does
            not exist. The message names the file and the line.
    """
    first = next(read_records(path, header=False), ("", {}))[1]
    names = {*first, *map(str, first.values())}
    layout = next((x for x in task.layouts if {*x.texts} <= names), task.layouts[-1])
    has_label = isinstance(layout.label, int) or layout.label in names
    found = read_texts(
        path,
        [*map(str, layout.texts)],
        [str(layout.label)] if has_label else [],
        task.label_names if task.are_named else range(len(task.label_names)),
        task.problem_type,
        task.score_range,
        may_lack_labels=True,
        wrong_rows="leave out" if task.skips_broken_rows else "cut",
    )
    return dataclasses.replace(found, label_names=task.label_names)


def read_texts(
    path: Path,
    text_columns: str | int | Sequence[str | int | None],
    label_column: str | int | Sequence[str | int],
    label_names: Sequence[str] | None = None,
    problem_type: ProblemType = "single_label",
    score_range: tuple[float, float] = (-math.inf, math.inf),
    may_lack_labels: bool = False,
    label_separator: str = ",",
    separator: str | None = None,
    quoting: bool | None = None,
    encoding: str | None = None,
    wrong_rows: Literal["refuse", "cut", "leave out"] | None = None,
) -> LabelledTexts:
    """Reads a file of texts, or pairs of texts, with their labels.

    The first row names the columns, unless all of them are given by number. Labels are read without
    blanks around them, and 1.0 is read as 1. A warning counts the rows that are left out: those
    without a text or with one text of a pair, and those without a label (an empty cell, null, NaN,
    SNLI's "-", and -1 if the other labels are the numbers of three or more classes).

    Args:
        path: CSV, TSV, Excel, JSON, JSON lines, or Parquet file, see `read_records`.
        text_columns: one or two names, or numbers from 0, negative from the end: a list, or a str
            that separates them by commas. A `None` in the list is ignored.
        label_column: a name or number; for several labels also several, likewise, with 0 or 1 in
            each column.
        label_names: tuple of str, the labels allowed; by default those that occur.
        problem_type: `"single_label"`, `"multi_label"` for fields with any number of labels, as a
            text or a list of names, or of 0 and 1 for each label, or `"regression"` for labels that
            are numbers.
        score_range: (lowest, highest) score allowed.
        may_lack_labels: bool. If `True`, a file without the label's column, or without a label in
            any row, holds texts to predict. If `False`, it is an error.
        label_separator: str, what separates the labels of one field.
        separator: str of one character between columns, the `delimiter` of `read_records`.
        quoting: bool, whether `"` quotes fields; see `read_records`.
        encoding: str, the encoding of text; see `read_records`.
        wrong_rows: what to do with a row of another length, see `read_records`. By default it is
            cut for scores, as some rows of STS-B's own files are longer, and else refused.

    Returns:
        `LabelledTexts`.

    Raises:
        ValueError: there are no rows or no such column, or a label is not allowed. The message
            names the file and the place, and for columns those that exist.
    """
    each = (text_columns, label_column)
    each = (re.split(r"\s*,\s*", str(x)) if isinstance(x, str | int) else x for x in each)
    texts, labels = ([str(name) for name in names if name is not None] for names in each)
    columns, names = [*texts, *labels], tuple(str(name).strip() for name in label_names or ())
    rule = "texts and labels must be different columns"
    check_at(path, len({*columns}) == len({*texts}) + len(labels), rule, columns)
    rule = "several columns of labels need the problem type multi_label"
    check_at(path, len(labels) < 2 or problem_type == "multi_label", rule, labels)
    # If the surplus of a row moved the label's column, what stands there would be no score.
    wrong = wrong_rows or ("cut" if problem_type == "regression" else "refuse")
    layout = {"encoding": encoding, "header": not all(map(is_number, columns)), "wrong": wrong}
    needed = texts if may_lack_labels else columns
    records = read_records(path, separator, quoting, needed, **layout)
    if not any(is_number(x) or x.casefold() == "answer" for x in columns):
        records = accepted_records(path, records)
    first = check_not_empty(next(records, ()), f"{path} must have rows after its header")
    known = list(first[1])
    if labels and may_lack_labels and all(_lacks_label(known, texts, x) for x in labels):
        print(f"{path} has no column {label_column!r} to measure by, but {known!r:.200}.")
        labels = []
    keys = [known[find_column(path, known, name)] for name in [*texts, *labels]]
    size, needed, rows, textless, found = len(texts), {*keys}, [], [], None
    rule = "every object must have the keys of the first, and these are missing"
    for place, record in itertools.chain([first], records):
        place = f"{path}, {place}"
        if missing := needed - record.keys():
            check_at(place, False, rule, sorted(missing))
        row = (place, *map(record.get, keys))
        # A text to train on may not be empty, one to predict may be.
        if labels and any(
            is_missing(x) or not (may_lack_labels or str(x).strip()) for x in row[1 : size + 1]
        ):
            textless.append(place)
        else:
            rows.append(row)
    warn_of_rows(path, textless, len(rows) + len(textless), "left out because they have no text")
    if labels:
        check_not_empty(rows, f"{path} must have rows with a text")
        places, cells = [row[0] for row in rows], [row[size + 1 :] for row in rows]
        titles = keys[size:]
        values, names = read_labels(cells, places, titles, problem_type, label_separator, names)
        has_label = [value is not None for value in values]
        if any(has_label):
            unlabelled = [x for x, y in zip(places, has_label, strict=True) if not y]
            word = cells[has_label.index(False)][0] if unlabelled else None
            why = f"left out because they have no label, such as {word!r} (label_names may name it)"
            warn_of_rows(path, unlabelled, len(rows), why)
            rows, values = ([*itertools.compress(x, has_label)] for x in (rows, values))
            if problem_type != "regression":
                names = names or _names_of(path, values, problem_type)
            found = _encoded(values, names, problem_type, score_range, [row[0] for row in rows])
        else:
            check_at(places[0], may_lack_labels, "at least one row must have a label", cells[0])
            print(f"{path} has no labels to measure by.")
    columns = [[as_text(row[n], row[0]) for row in rows] for n in range(1, size + 1)]
    texts = columns[0] if size == 1 else tuple(columns)
    return LabelledTexts(texts, found, () if problem_type == "regression" else names, problem_type)


def _lacks_label(header, texts, label):
    """Whether a file lacks a column of labels."""
    if not is_number(label):
        return not find_name(header, label)
    # A number from the end may name the column of a text in a file without labels.
    size, number = len(header), int(label)
    return not -size <= number < size or str(number % size) in texts


def _encoded(values, names, problem_type, score_range, places):
    """Returns labels as the array that `LabelledTexts` describes.

    Raises:
        ValueError: a label does not exist, or a score is not a number in the range.
    """
    if problem_type == "regression":
        low, high = score_range
        scores = np.array([float(x) if _NUMBER.fullmatch(x) else math.nan for x in values])
        wrong = ~(np.isfinite(scores) & (low <= scores) & (scores <= high))
        limits = f" from {low} to {high}" if math.isfinite(high) else ""
        raise_at_first(wrong, values, f"a score must be a number{limits}", places=places)
        return scores.astype("float32")
    is_multi, numbers = problem_type == "multi_label", {x: n for n, x in enumerate(names)}
    rows = values if is_multi else zip(values, strict=True)
    unknown = [next((name for name in row if name not in numbers), None) for row in rows]
    rule = f"{'each' if is_multi else 'a'} label must be one of {list(names)!r:.200}"
    raise_at_first([name is not None for name in unknown], unknown, rule, places=places)
    if not is_multi:
        return np.array([numbers[value] for value in values], "int32")
    labels = np.zeros((len(values), len(names)), "int32")
    for row, found in enumerate(values):
        labels[row, [numbers[name] for name in found]] = 1
    return labels


def _names_of(path, values, problem_type):
    """Returns the labels that occur, sorted: as numbers if all are whole numbers.

    It prints a remark on labels that look wrong.

    Raises:
        ValueError: there are no labels, or there is a single class.
    """
    if problem_type == "multi_label":
        values = [name for row in values for name in row]
    names = tuple(sorted({*values}))
    if all(is_number(name) and name.isascii() for name in names):
        names = tuple(sorted(names, key=int))
    remark_on_names(path, values)
    check_not_empty(names, f"{path} must have labels: the fields of their column are empty")
    rule = "there must be at least two classes to tell apart"
    check_at(path, len(names) > 1 or problem_type == "multi_label", rule, names)
    return names
