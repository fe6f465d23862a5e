"""Reading labelled texts: published sets in their known layouts, and files with named columns."""

import collections
import dataclasses
import math
import re
import warnings
from collections.abc import Mapping, Sequence

import numpy as np

from bert_keras.checks import check_not_empty, refuse_first
from bert_keras.datasets.label_cells import is_missing, read_labels, remark_on_names
from bert_keras.datasets.labelled_texts import LabelledTexts
from bert_keras.datasets.table import (
    Table,
    accepted,
    find_name,
    has_names,
    is_number,
    read_rows,
    shorten,
)
from bert_keras.types import Array, Path, ProblemType

TSV_FILES = {split: (f"{split}.tsv",) for split in ("train", "dev", "test")}
_COLUMN_ADVICE = (
    "Name the columns by text_column, pair_column and label_column, by numbers from 0 if the first "
    "row is data; `separator` is what separates them."
)


@dataclasses.dataclass(frozen=True)
class Layout:
    """The columns of a row's texts and of its label.

    Args:
        texts: tuple of one or two columns, by name or by number.
        label: the label's column, by name or by number; `None` if the layout has no labels.
        num_fields: tuple of the numbers of fields that a row may have; only for columns by number.
    """

    texts: tuple[str | int, ...]
    label: str | int | None = None
    num_fields: tuple[int, ...] = ()


@dataclasses.dataclass(frozen=True)
class ClassificationTask:
    """Everything the readers know about a set of labelled texts. No code depends on a set's name.

    Args:
        layouts: tuple of `Layout`; the first that fits the file's first row is used.
        labels: tuple of `(value in the file, readable name)`, in the order of the class numbers;
            empty for regression.
        files: dict from a split's name to the file names it may have; the first that exists
            is used. By default `train.tsv`, `dev.tsv` and `test.tsv`.
        problem_type: `"single_label"`, `"multi_label"` (the file lists class numbers, separated
            by commas) or `"regression"`.
        score_range: (lowest, highest) score of a regression set.
        skips_broken_rows: bool. If `False`, a row with a wrong number of fields is an error. If
            `True`, for sets published with such rows, they are left out with a warning.
        folders: tuple of str, other names that the set's folder may have, in lower case without
            punctuation.
        undecided: str, the label of rows on which the annotators did not agree. They are left out
            with a warning. `None` if there are none.
    """

    layouts: tuple[Layout, ...]
    labels: tuple[tuple[str, str], ...]
    files: Mapping[str, tuple[str, ...]] = dataclasses.field(default_factory=TSV_FILES.copy)
    problem_type: ProblemType = "single_label"
    score_range: tuple[float, float] = (-math.inf, math.inf)
    skips_broken_rows: bool = False
    folders: tuple[str, ...] = ()
    undecided: str | None = None

    @property
    def label_names(self) -> tuple[str, ...]:
        """Tuple of str: the readable name of each class, in the order of its number."""
        return tuple(name for _, name in self.labels)


def read_examples(path: Path, task: ClassificationTask) -> LabelledTexts:
    """Reads one file of a labelled text set.

    Args:
        path: the file, see `read_rows`.
        task: `ClassificationTask`.

    Returns:
        `LabelledTexts`, with `labels` `None` if the layout has no label column.

    Raises:
        ValueError: the file has none of the task's layouts, a row has another number of fields
            than its layout, a text or label in JSON is neither a str nor a number, or a label does
            not exist. The message names the file and the line.
    """
    rows = list(read_rows(path))
    layout, columns, has_header = find_layout(path, rows[0][1], task)
    num_fields = (len(rows[0][1]),) if has_header else layout.num_fields
    if task.skips_broken_rows:
        wrong = [len(fields) not in num_fields for _, fields in rows]
        rows = _kept_rows(path, rows, wrong, "have a wrong number of fields")
    table = Table(path, rows, has_header, num_fields)
    is_labelled = len(columns) > len(layout.texts)
    if is_labelled and task.undecided is not None:
        why = f"have the label {task.undecided!r}, which says that annotators did not agree"
        undecided = [value == task.undecided for value in table.column(columns[-1])]
        table.rows = _kept_rows(path, table.rows, undecided, why)
    check_not_empty(table.rows, f"{path} must have rows after its header")
    if is_labelled and {*map(str, table.column(columns[-1]))} <= {"-1", "-1.0"}:
        is_labelled = False  # A test set of GLUE in other libraries' files.
    labels = encode_labels(table, columns[-1], task) if is_labelled else None
    texts = _texts(table, columns[: len(layout.texts)])
    return LabelledTexts(texts, labels, task.label_names, task.problem_type)


def find_layout(
    path: Path, first_row: Sequence[str], task: ClassificationTask
) -> tuple[Layout, tuple[int, ...], bool]:
    """Returns `(layout, column positions, whether the first row is a header)` of a file.

    The positions are those of the texts and, if the file has it, of the label.

    Raises:
        ValueError: the first row fits none of the task's layouts.
    """
    for layout in task.layouts:
        columns = layout.texts if layout.label is None else (*layout.texts, layout.label)
        if isinstance(layout.texts[0], int):
            if len(first_row) in layout.num_fields:
                return layout, columns, False
        elif all(column in first_row for column in layout.texts):
            positions = [first_row.index(column) for column in columns if column in first_row]
            return layout, tuple(positions), True
    expected = "; or ".join(_describe(layout) for layout in task.layouts)
    raise ValueError(
        f"{path} has none of the layouts of its task: {expected}. Its first row has "
        f"{len(first_row)} fields: {repr(first_row)[:200]}. Name the text and label columns, or "
        f"another task."
    )


def read_texts(
    path: Path,
    text_columns: Sequence[str | None],
    label_column: str | Sequence[str],
    label_names: Sequence[str] | None = None,
    problem_type: ProblemType = "single_label",
    score_range: tuple[float, float] = (-math.inf, math.inf),
    may_lack_labels: bool = False,
    label_separator: str = ",",
    separator: str | None = None,
    quoting: bool | None = None,
) -> LabelledTexts:
    """Reads a file of texts, or pairs of texts, with their labels.

    The first row names the columns, unless all of them are given by number. Labels are read without
    blanks around them, and 1.0 is read as 1. A warning counts the rows that are left out: those
    without a text or with one text of a pair, and those without a label (an empty cell, null, NaN,
    SNLI's "-", and -1 if the other labels are the numbers of three or more classes).

    Args:
        path: CSV, TSV, JSON, JSON lines or Parquet file, see `read_rows`.
        text_columns: list of one or two str: names, or numbers from 0, negative from the end. A
            `None` in the list is ignored.
        label_column: str, likewise; for several labels also a list of columns, or their names
            separated by commas, with 0 or 1 in each column.
        label_names: tuple of str, the labels allowed; by default those that occur.
        problem_type: `"single_label"`, `"multi_label"` for fields with any number of labels, as a
            text or a list of names, or of 0 and 1 for each label, or `"regression"` for labels that
            are numbers.
        score_range: (lowest, highest) score allowed.
        may_lack_labels: bool. If `True`, a file without the label's column, or without a label in
            any row, holds texts to predict. If `False`, it is an error.
        label_separator: str, what separates the labels of one field.
        separator: str of one character, what separates columns; see the `delimiter` of `read_rows`.
        quoting: bool, whether `"` quotes fields; see `read_rows`.

    Returns:
        `LabelledTexts`.

    Raises:
        ValueError: there are no rows or no such column, or a label is not allowed. The message
            names the file and the place, and for columns those that exist.
    """
    if isinstance(label_column, str):
        label_column = label_column.split(",")
    texts = [_column(name) for name in text_columns if name is not None]
    labels = [_column(name.strip() if isinstance(name, str) else name) for name in label_column]
    columns = [*texts, *labels]
    if len({*columns}) < len({*texts}) + len(labels):
        raise ValueError(f"Texts and labels must be different columns. Received: {columns}.")
    if len(labels) > 1 and problem_type != "multi_label":
        raise ValueError(
            "Several columns of labels need the problem type multi_label. Received: "
            f"{problem_type}, and the columns {labels}."
        )
    has_header = has_names(path) or not all(isinstance(column, int) for column in columns)
    names = [column for column in columns if has_header and isinstance(column, str)]
    # In STS-B's own files some rows have more columns. If that moved the label's column, the error
    # would show: what stands there is no number.
    surplus = not has_header and problem_type == "regression"
    rows = read_rows(path, separator, quoting, names, surplus=surplus)
    table = Table(path, list(rows), has_header)
    check_not_empty(table.rows, f"{path} must have rows after its header")
    if has_names(path) and "answer" in table.first and "answer" not in columns:
        is_out = [not x for x in accepted(table.column(table.first.index("answer")))]
        table.rows = _kept_rows(path, table.rows, is_out, "are rejected or ignored in `answer`")
    texts = [table.find(column, _COLUMN_ADVICE) for column in texts]
    if may_lack_labels and all(_lacks_label(table, texts, label) for label in labels):
        return LabelledTexts(_texts(table, texts), None, label_names or (), problem_type)
    labels = [table.find(label, _COLUMN_ADVICE) for label in labels]
    blank = [_lacks_text([fields[x] for x in texts], may_lack_labels) for _, fields in table.rows]
    table.rows = _kept_rows(path, table.rows, blank, "have no text")
    check_not_empty(table.rows, f"{path} must have rows with a text")
    label_names = tuple(str(name).strip() for name in label_names or ())
    values, names = read_labels(table, labels, problem_type, label_separator, label_names)
    missing = [value is None for value in values]
    if all(missing):
        if not may_lack_labels:
            rule = "at least one row must have a label"
            refuse_first(missing, table.column(labels[0]), rule, places=table.places)
        print(f"{path} has no labels to measure by.")
        return LabelledTexts(_texts(table, texts), None, label_names, problem_type)
    cells = [table.column(label) for label in labels]
    words = collections.Counter(
        str(x)
        for row, out in zip(zip(*cells, strict=True), missing, strict=True)
        if out
        for x in row
    )
    shown = ", ".join(f"{word!r}" for word, _ in words.most_common(5) if word.strip())
    why = (
        f"have no label ({shown}; name it in label_names if it is one)"
        if shown
        else "have no label"
    )
    table.rows = _kept_rows(path, table.rows, missing, why)
    values = [value for value in values if value is not None]
    if problem_type == "regression":
        labels, names = _scores(table, values, score_range), ()
    elif problem_type == "multi_label":
        names = names or _labels_of(path, values)
        labels = _indicators(table, values, names)
    else:
        names = names or _classes_of(path, values)
        labels = _classes(table, values, names)
    return LabelledTexts(_texts(table, texts), labels, names, problem_type)


def encode_labels(table: Table, column: int, task: ClassificationTask) -> Array:
    """Returns the labels in a column as the array that `LabelledTexts` describes.

    Raises:
        ValueError: a label does not exist, or a score is not a number in the task's range.
    """
    values, known = table.texts(column), [value for value, _ in task.labels]
    if task.problem_type == "regression":
        return _scores(table, values, task.score_range)
    if task.problem_type == "multi_label":
        return _indicators(table, [value.split(",") for value in values], known)
    return _classes(table, values, known)


def _classes(table, values, names):
    """Returns the position in `names` of each label, int32 `(n,)`."""
    numbers = {name: number for number, name in enumerate(names)}
    rule = f"a label must be one of {shorten(list(names))}"
    refuse_first([value not in numbers for value in values], values, rule, places=table.places)
    return np.array([numbers[value] for value in values], "int32")


def _indicators(table, rows, names):
    """Returns 1 for each label of a row and 0 for all others, int32 `(n, num_labels)`."""
    numbers = {name: number for number, name in enumerate(names)}
    unknown = [next((name for name in row if name not in numbers), None) for row in rows]
    rule = f"each label must be one of {shorten(list(names))}"
    refuse_first([name is not None for name in unknown], unknown, rule, places=table.places)
    labels = np.zeros((len(rows), len(names)), "int32")
    for row, found in enumerate(rows):
        labels[row, [numbers[name] for name in found]] = 1
    return labels


def _scores(table, values, score_range):
    """Returns scores, float32 `(n,)`."""
    low, high = score_range
    scores = np.array([_as_number(value) for value in values])
    wrong = ~(np.isfinite(scores) & (low <= scores) & (scores <= high))
    rule = "a score must be a number" + (f" from {low} to {high}" if math.isfinite(high) else "")
    refuse_first(wrong, values, rule, places=table.places)
    return scores.astype("float32")


def _as_number(text):
    try:
        # Python also reads `1_0`, as 10.
        return math.nan if "_" in text else float(text)
    except ValueError:
        return math.nan


def _classes_of(path, values):
    """Returns the classes that occur, in alphabetical order; prints a note if they look wrong.

    Raises:
        ValueError: there is a single class.
    """
    names = tuple(sorted({*values}))
    remark_on_names(path, values)
    if len(names) < 2:
        raise ValueError(
            f"{path} must have at least two classes to tell apart. Received in the label's column: "
            f"{names[0]!r} alone."
        )
    if names == ("-1", "0", "1"):
        print(f"{path}: -1, 0 and 1 are three classes. If -1 is no label, leave its rows out.")
    elif all(re.fullmatch(r"-?\d*\.?\d+", x) for x in names) and any("." in x for x in names):
        print(
            f"{path}: labels such as {names[0]} are taken for classes. To read them as scores, "
            "choose the problem type regression."
        )
    return names


def _labels_of(path, rows):
    """Returns the labels that occur in sets of labels, in alphabetical order."""
    names = tuple(sorted({name for row in rows for name in row}))
    remark_on_names(path, (name for row in rows for name in row))
    return check_not_empty(names, f"{path} must have labels: the fields of their column are empty")


def _column(name):
    """Returns a column's name, or its number if it is written as one."""
    return int(name) if is_number(name) else name


def _texts(table, columns):
    texts = tuple(table.texts(column) for column in columns)
    return texts[0] if len(texts) == 1 else texts


def _lacks_text(texts, may_be_empty):
    """Whether a row lacks a text. One to train on may not be empty, one to predict may be."""
    return any(is_missing(x) or not (may_be_empty or str(x).strip()) for x in texts)


def _lacks_label(table, texts, label):
    size = len(table.first)
    if isinstance(label, int):
        # A number from the end may name the column of a text in a file without labels.
        return not -size <= label < size or label % size in texts
    if not find_name(table.first, label):
        print(
            f"{table.path} has no column {label!r} to measure by; its first row, {table.first}, is "
            "taken for the header."
        )
    return not find_name(table.first, label)


def _kept_rows(path, rows, is_left_out, why):
    """Returns rows without those that are left out; a warning counts these and says why."""
    places = [place.split()[-1] for (place, _), out in zip(rows, is_left_out, strict=True) if out]
    if places:
        more = ", ..." if len(places) > 10 else ""
        warnings.warn(
            f"{path}: rows left out because they {why}: {len(places)} of {len(rows)} (lines "
            f"{', '.join(places[:10])}{more}).",
            stacklevel=3,
        )
    return [row for row, out in zip(rows, is_left_out, strict=True) if not out]


def _describe(layout):
    if isinstance(layout.texts[0], str):
        return f"a header with {list(layout.texts)} (label: {layout.label!r})"
    counts = " or ".join(str(count) for count in layout.num_fields)
    return f"no header and {counts} columns"
