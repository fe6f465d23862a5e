"""Labels in the cells of a table: one name, several, a score, or 0 and 1 in a column per label."""

import contextlib
import json
import re
from collections.abc import Sequence
from typing import Any

from bert_keras.checks import refuse_first
from bert_keras.datasets.table import Table, as_text
from bert_keras.types import ProblemType

# What stands for no label: NaN among texts, and SNLI's mark of rows that annotators disagreed on.
_MISSING = ("-", "nan")
_LIST = re.compile(r"[\[({](.*)[\])}]", re.DOTALL)
# A name in quotation marks in a list that was written as text.
_QUOTED = re.compile(r"'((?:[^'\\]|\\.)*)'|\"((?:[^\"\\]|\\.)*)\"")


def read_labels(
    table: Table,
    columns: Sequence[int],
    problem_type: ProblemType,
    separator: str = ",",
    names: Sequence[str] = (),
) -> tuple[list[Any], tuple[str, ...]]:
    """Returns the labels of each row, and the names of all labels that lists of 0 and 1 imply.

    Args:
        table: the rows.
        columns: positions of the labels' columns; several hold 0 or 1 for each label.
        problem_type: the kind of labels.
        separator: what separates several labels in a text.
        names: the labels allowed, which are never missing; empty if any is.

    Returns:
        A list with a name for each row, a list of names if the rows have several labels, or `None`
        for a row without a label; and `names`, or those of the columns or positions of 0 and 1.

    Raises:
        ValueError: a label is neither text nor a number, a row has several labels where it must
            have one, or another number of 0 and 1 than there are labels.
    """
    if len(columns) > 1:
        rows = [[fields[column] for column in columns] for _, fields in table.rows]
        rows = [
            [
                None
                if is_missing(x)
                else _name(x, place).replace("true", "1").replace("false", "0")
                for x in row
            ]
            for row, place in zip(rows, table.places, strict=True)
        ]
        values = [None if {None, "", "-1"} & {*row} else row for row in rows]
        names = names or tuple(str(table.first[x]) if table.has_header else str(x) for x in columns)
        return _named(
            table, values, names, "in columns of labels, each field must be 0 or 1"
        ), names
    values = [
        _label(value, place, problem_type, separator, names)
        for value, place in zip(table.column(columns[0]), table.places, strict=True)
    ]
    if problem_type == "multi_label":
        if _are_vectors(values):
            longest = max(len(row) for row in values if row is not None)
            names = names or tuple(map(str, range(longest)))
            values = _named(
                table,
                values,
                names,
                f"a list of 0 and 1 must have {len(names)}, one for each label",
            )
    elif _is_no_label("-1", values, names, problem_type):
        values = [None if value == "-1" else value for value in values]
    return values, tuple(names)


def is_missing(value: Any) -> bool:
    """Whether a cell is `None` or NaN."""
    return value is None or (isinstance(value, float) and value != value)


def _name(value, place):
    """Returns a label as text without blanks around it; 1.0 is 1, and `True` is true."""
    text = str(value).lower() if isinstance(value, bool) else as_text(value, place)
    return re.sub(r"^(-?\d+)\.0+$", r"\1", text.strip())


def _label(value, place, problem_type, separator, names):
    """Returns the label of a cell: a name, a list of names for several labels, `None` for none."""
    if is_missing(value):
        return None
    is_list = isinstance(value, (list, tuple))
    if problem_type != "multi_label":
        if is_list and len(value) > 1:
            raise ValueError(
                f"{place}: a row must have one label. Received: {value!r:.80}. For several labels "
                "choose the problem type multi_label."
            )
        name = _name("".join(map(str, value)) if is_list else value, place)
        return None if name not in names and name.casefold() in ("", *_MISSING) else name
    if is_list:
        return [_name(int(each) if isinstance(each, bool) else each, place) for each in value]
    text = _name(value, place)
    if text in names:
        return [text]
    if text.casefold() in _MISSING:
        return None
    return [name for each in _names_in(text, separator) if (name := _name(each, place))]


def _names_in(text, separator):
    """Returns the names in a text, which may be a list as Python or NumPy write it."""
    match = _LIST.fullmatch(text)
    if match is None:
        return text.split(separator)
    if '"' in text:
        with contextlib.suppress(ValueError):
            return [*json.loads(text)]
    quoted = [single or double for single, double in _QUOTED.findall(match[1])]
    return quoted or match[1].split("," if "," in match[1] else None)


def _are_vectors(rows):
    """Whether lists of labels have a 0 or a 1 for each label, and are not names of labels.

    Vectors have one length. Lists of the numbers of classes do not, or name all of two classes.
    """
    rows = [row for row in rows if row is not None]
    lengths = {len(row) for row in rows}
    bits = {name for row in rows for name in row} <= {"0", "1"}
    return bits and len(lengths) == 1 and min(lengths) > 1


def _named(table, rows, names, rule):
    """Returns the names of the labels whose entry is 1 in each row."""
    wrong = [
        row is not None and (len(row) != len(names) or not {*row} <= {"0", "1"}) for row in rows
    ]
    refuse_first(wrong, rows, rule, places=table.places)
    return [
        row and [name for name, bit in zip(names, row, strict=True) if bit == "1"] for row in rows
    ]


def _is_no_label(number, labels, names, problem_type):
    """Whether a number such as -1 marks rows without a label.

    It does if it is not among the labels allowed, if no row has another label, as in test sets of
    GLUE, and if the other labels are the numbers from 0 of three or more classes. With two others
    it may be a class, as in -1, 0, 1.
    """
    if names:
        return number not in names
    others = {*labels} - {number, None}
    is_numbered = len(others) > 2 and others == {*map(str, range(len(others)))}
    return not others or (is_numbered and problem_type == "single_label")
