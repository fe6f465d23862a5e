"""Reading one labelled text set in whichever of its published layouts a file has."""

import dataclasses
import itertools
import warnings
from collections.abc import Mapping, Sequence

import numpy as np

from bert_keras.datasets.any_table import as_text, read_any_rows
from bert_keras.datasets.examples import Examples
from bert_keras.types import Array, Path, ProblemType

TSV_FILES = {split: (f"{split}.tsv",) for split in ("train", "dev", "test")}


@dataclasses.dataclass(frozen=True)
class Layout:
    """Where a row keeps its texts and its label.

    Args:
        texts: tuple of one or two columns, by name or by number.
        label: the label's column, by name or by number; None where the layout has no labels.
        num_fields: tuple of the field counts that a row may have; only for columns by number.
    """

    texts: tuple[str | int, ...]
    label: str | int | None = None
    num_fields: tuple[int, ...] = ()


@dataclasses.dataclass(frozen=True)
class ClassificationTask:
    """What there is to know about a labelled text set. It is data: no code knows a task's name.

    Args:
        layouts: tuple of `Layout`, the first that fits the file's first row is used.
        labels: tuple of `(value in the file, readable name)`, in the order of the class numbers;
            empty for regression.
        files: dict from a split's name to the file names it may have; the first that exists
            is used. By default `train.tsv`, `dev.tsv` and `test.tsv`.
        problem_type: `"single_label"`, `"multi_label"` (the file lists class numbers, separated
            by commas) or `"regression"`.
        score_range: (lowest, highest) score of a regression set.
        skips_broken_rows: bool, whether rows with a wrong number of fields are counted, reported in
            a warning and left out, for sets published with such rows, or are an error.
        folders: tuple of str, further names that its folder goes by, in lower case without
            punctuation.
        undecided: str, the label of rows that people did not agree on: they are counted, reported
            in a warning and left out. `None` where there are none.
    """

    layouts: tuple[Layout, ...]
    labels: tuple[tuple[str, str], ...]
    files: Mapping[str, tuple[str, ...]] = dataclasses.field(default_factory=TSV_FILES.copy)
    problem_type: ProblemType = "single_label"
    score_range: tuple[float, float] | None = None
    skips_broken_rows: bool = False
    folders: tuple[str, ...] = ()
    undecided: str | None = None

    @property
    def label_names(self) -> tuple[str, ...]:
        """Tuple of str: the readable name of each class, in the order of its number."""
        return tuple(name for _, name in self.labels)


def read_examples(path: Path, task: ClassificationTask) -> Examples:
    """Reads one file of a labelled text set.

    Args:
        path: the file, see `read_any_rows`.
        task: `ClassificationTask`.

    Returns:
        `Examples`, with `labels` None where the layout has no label column.

    Raises:
        ValueError: the file has none of the task's layouts, a row has another number of fields
            than its layout, a text or label in JSON is neither str nor number, or a label does not
            exist. The message names the file and the line.
    """
    rows = read_any_rows(path)
    first_place, first = next(rows)
    layout, columns, is_header = find_layout(path, first, task)
    counts = (len(first),) if is_header else layout.num_fields
    if not is_header:
        rows = itertools.chain([(first_place, first)], rows)
    rows = list(_whole_rows(path, rows, counts, task.skips_broken_rows))
    if len(columns) > len(layout.texts) and task.undecided is not None:
        rows = _decided(path, rows, columns[-1], task.undecided)
    if not rows:
        raise ValueError(f"{path} holds a header and no rows.")
    places = [place for place, _ in rows]
    columns_read = [
        [as_text(fields[column], f"{path}, {place}") for place, fields in rows]
        for column in columns
    ]
    num_texts = len(layout.texts)
    labels = None
    if len(columns) > num_texts:
        labels = encode_labels(columns_read[num_texts], task, path, places)
    return Examples(
        texts=columns_read[0] if num_texts == 1 else tuple(columns_read[:2]),
        labels=labels,
        label_names=task.label_names,
        problem_type=task.problem_type,
    )


def find_layout(
    path: Path, first_row: Sequence[str], task: ClassificationTask
) -> tuple[Layout, tuple[str | int, ...], bool]:
    """Returns `(layout, column positions, whether the first row is a header)` of a file.

    The positions are those of the texts and, where the file has it, of the label.

    Raises:
        ValueError: the first row fits none of the task's layouts.
    """
    for layout in task.layouts:
        wanted = layout.texts if layout.label is None else (*layout.texts, layout.label)
        if isinstance(layout.texts[0], int):
            if len(first_row) in layout.num_fields:
                return layout, wanted, False
        elif all(column in first_row for column in layout.texts):
            columns = [first_row.index(column) for column in wanted if column in first_row]
            return layout, tuple(columns), True
    expected = "; or ".join(_describe(layout) for layout in task.layouts)
    raise ValueError(
        f"{path} has none of the layouts of its task: {expected}. Its first row has "
        f"{len(first_row)} fields: {repr(first_row)[:200]}. Name the text and label columns, or "
        f"another task."
    )


def encode_labels(
    values: Sequence[str], task: ClassificationTask, path: Path, places: Sequence[str]
) -> Array:
    """Returns the labels of a file as the array that `Examples` describes.

    Args:
        values: list of str, as in the file.
        task: `ClassificationTask`.
        path: the file, for the error message.
        places: list of str, where each value stands.

    Raises:
        ValueError: a label does not exist, or a score is not a number in the task's range.
    """
    encode = {
        "single_label": _encode_class,
        "multi_label": _encode_classes,
        "regression": _encode_score,
    }[task.problem_type]
    numbers = {value: number for number, (value, _) in enumerate(task.labels)}
    encoded = []
    for value, place in zip(values, places, strict=True):
        try:
            encoded.append(encode(value, numbers, task))
        except ValueError as error:
            raise ValueError(f"{path}, {place}: {error} Received: {value!r}") from None
    return np.array(encoded, "float32" if task.problem_type == "regression" else "int32")


def _encode_class(value, numbers, task):
    if value not in numbers:
        raise ValueError(f"a label must be one of {list(numbers)}.")
    return numbers[value]


def _encode_classes(value, numbers, task):
    row = np.zeros(len(numbers), "int32")
    for part in value.split(","):
        if part not in numbers:
            raise ValueError(
                f"labels must be class numbers from 0 to {len(numbers) - 1}, separated by commas."
            )
        row[numbers[part]] = 1
    return row


def _encode_score(value, numbers, task):
    low, high = task.score_range
    try:
        score = float(value)
    except ValueError:
        score = np.nan
    if not low <= score <= high:
        raise ValueError(f"a score must be a number from {low} to {high}.")
    return score


def _whole_rows(path, rows, counts, skips_broken_rows):
    """Yields the rows that have as many fields as their layout."""
    broken = []
    for place, fields in rows:
        if len(fields) in counts:
            yield place, fields
        elif skips_broken_rows:
            broken.append(place)
        else:
            allowed = " or ".join(str(count) for count in counts)
            raise ValueError(
                f"{path}, {place}: a row must have {allowed} fields. "
                f"Received {len(fields)}: {repr(fields)[:200]}"
            )
    _tell_left_out(path, broken, "have a wrong number of fields")


def _decided(path, rows, column, undecided):
    """Returns the rows with a label that people agreed on."""
    _tell_left_out(
        path,
        [place for place, fields in rows if fields[column] == undecided],
        f"have the label {undecided!r}, which says that people did not agree,",
    )
    return [row for row in rows if row[1][column] != undecided]


def _tell_left_out(path, places, why):
    if places:
        shown = ", ".join(place.split()[-1] for place in places[:10])
        more = ", ..." if len(places) > 10 else ""
        warnings.warn(
            f"{path}: {len(places)} rows {why} and are left out (lines {shown}{more}).",
            stacklevel=4,
        )


def _describe(layout):
    if isinstance(layout.texts[0], str):
        return f"a header with {list(layout.texts)} (label: {layout.label!r})"
    counts = " or ".join(str(count) for count in layout.num_fields)
    return f"no header and {counts} columns"
