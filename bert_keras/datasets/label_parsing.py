"""Labels in the cells of a table: one name, several, a score, or 0 and 1 in a column per label."""

import collections
import re
import unicodedata
import warnings
from collections.abc import Sequence
from typing import Any

from bert_keras.checks import raise_at_first
from bert_keras.datasets.files import check_at
from bert_keras.datasets.table import as_list, as_text
from bert_keras.types import Path, ProblemType

# Texts that mean "no label": SNLI's mark on rows whose annotators disagreed, NaN, what pandas reads
# as missing, and what databases write.
_MISSING = ("", "-", "nan")
_MISSING_WORDS = (
    r"#N/A N/A NA n/a #NA NULL null None <NA> -NaN -nan 1.#IND -1.#IND 1.#QNAN -1.#QNAN \N"
)
_MISSING_WORDS = frozenset(_MISSING_WORDS.split())
# What may stand between several labels in a cell, and around the names in a list.
_BETWEEN_LABELS = re.compile("[#;|、/,，；&+:\n]|(?<=['\"]) +(?=['\"])")
_AROUND_NAMES = " []{}()'\""
# Names that may stand for a missing label, in lower case. A warning says where they are classes: in
# spellings other than those above, or if the user names them as labels.
_LIKE_MISSING = "null na n.a. (null) nil nat -- ? #value! #ref! #div/0! #name? undefined missing"
_LIKE_MISSING = frozenset(_LIKE_MISSING.split())
# In fewer rows, how often values recur does not tell what they are.
FEWEST_VALUES = 20


def read_labels(
    rows: Sequence[Sequence[Any]],
    places: Sequence[str],
    titles: Sequence[str],
    problem_type: ProblemType,
    separator: str = ",",
    names: Sequence[str] = (),
) -> tuple[list[Any], tuple[str, ...]]:
    """Returns the labels of each row, and the names of all labels if the table tells them.

    Args:
        rows: the cells of each row, one, or several with 0 or 1 for each label.
        places: where each row is, for messages.
        titles: the names of the cells' columns.
        problem_type: the kind of labels.
        separator: what separates several labels in a text.
        names: the labels allowed, none of which is read as missing; empty to allow any.

    Returns:
        A list with an entry for each row: a name, a list of names for the problem type
        `"multi_label"`, or `None` without a label. And `names`; if it is empty and labels are 0 and
        1, the names of their columns or their positions in lists.

    Raises:
        ValueError: a label is neither text nor a number, a row has several labels where it must
            have one, or another number of 0 and 1 than there are labels.
    """
    if len(titles) > 1:
        names = tuple(names or titles)
        rows = [
            [None if is_missing(x) else _label_text(x, place) for x in row]
            for row, place in zip(rows, places, strict=True)
        ]
        rows = [[{"true": "1", "false": "0"}.get(x, x) for x in row] for row in rows]
        no_bits = [any(x in (None, "-1") or means_missing(x) for x in row) for row in rows]
        values = [None if out else row for row, out in zip(rows, no_bits, strict=True)]
        rule = "in columns of labels, each field must be 0 or 1"
        return _names_of_ones(values, names, rule, places), names
    values = [
        _label_of_cell(value, place, problem_type, separator, names)
        for (value,), place in zip(rows, places, strict=True)
    ]
    if problem_type == "multi_label" and _are_bits(values):
        longest = max(len(row) for row in values if row is not None)
        names = names or tuple(map(str, range(longest)))
        rule = f"a list of 0 and 1 must have {len(names)}, one for each label"
        values = _names_of_ones(values, names, rule, places)
    elif problem_type != "multi_label" and _means_no_label("-1", values, names, problem_type):
        values = [None if value == "-1" else value for value in values]
    return values, tuple(names)


def is_missing(value: Any) -> bool:
    """Whether a cell is `None` or NaN."""
    return value is None or (isinstance(value, float) and value != value)


def means_missing(text: str) -> bool:
    """Whether a text in the place of a label says that there is none."""
    return text.casefold() in _MISSING or text in _MISSING_WORDS


def remark_on_names(path: Path, values: Sequence[str], may_be_joined: bool = True) -> None:
    """Warns of names that look the same or like none, and of several names in one cell.

    Args:
        path: the file.
        values: the name of each row.
        may_be_joined: bool, whether a name may be several names with a separator between them.
    """
    counts, alike = collections.Counter(values), collections.defaultdict(list)

    def remark(what, names):
        if names:
            examples = ", ".join(f"{_readable(x)} ({counts[x]})" for x in names[:10])
            warnings.warn(f"{path}: labels {what}: {examples}.", stacklevel=3)

    for name in sorted(counts):
        alike[_without_spelling(name)].append(name)
    pairs = [name for names in alike.values() if len(names) > 1 for name in names]
    remark("that differ only in spelling are classes of their own", pairs)
    ids = [] if do_recur(values) else [*counts]
    remark("that hardly recur look like ids or scores; label_column names another column", ids)
    like_missing = [name for name in sorted(counts) if name.casefold() in _LIKE_MISSING]
    remark("that look like missing ones are classes; leave such cells empty", like_missing)
    if may_be_joined:
        labels_in = {name: _labels_in(name) for name in counts}
        known = collections.Counter(x for found in labels_in.values() for x in found)
        joined = [x for x, y in labels_in.items() if len(y) > 1 and all(known[z] > 1 for z in y)]
        mark = _BETWEEN_LABELS.search("".join(joined) or "|")[0]
        advice = f"the problem type multi_label reads several, with label_separator={mark!r}"
        remark(f"that are made of others are read as one label each ({advice})", joined)


def _labels_in(name):
    """Returns the labels that a name may be made of."""
    return {x.strip(_AROUND_NAMES) for x in _BETWEEN_LABELS.split(name)} - {""}


def do_recur(values: Sequence[str]) -> bool:
    """Whether labels recur, or are few. Nearly all ids or texts differ."""
    return len(values) < FEWEST_VALUES or len({*values}) <= 0.8 * len(values)


def _readable(name):
    """Returns a name in quotes, escaped if it has signs or forms that look like others."""
    is_plain = all(x.isascii() or x.isalnum() for x in name)
    return repr(name) if is_plain and unicodedata.normalize("NFKC", name) == name else ascii(name)


def _without_spelling(name):
    """Returns a name without what distinguishes spellings of it."""
    # Not `casefold`, in which the German sharp s is a double one.
    text = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).lower())
    text = "".join(x for x in text if unicodedata.category(x) not in ("Cf", "Pi", "Pf"))
    text = re.sub(r"[\u2010-\u2015\u2212]", "-", text.replace("i\u0307", "i"))
    text = re.sub("[\"'`\u2032]", "", text).replace("_", " ")
    return " ".join(text.split()).rstrip(".,;:。") or name


def _label_text(value, place, names=()):
    """Returns a label as text without blanks around it, in the form that the names have.

    1.0 becomes "1". `True` in JSON, and True and TRUE in a table, become "true".
    """
    text = (str(value) if isinstance(value, bool) else as_text(value, place)).strip()
    if text in names:
        return text
    if (lower := text.casefold()) in ("true", "false"):
        return next((name for name in names if name.casefold() == lower), lower)
    return re.sub(r"^(-?\d+)\.0+$", r"\1", text) if text.endswith("0") else text


def _label_of_cell(value, place, problem_type, separator, names):
    """Returns the label in a cell: a name, for `"multi_label"` a list of names, `None` for none."""
    if is_missing(value):
        return None
    if problem_type != "multi_label":
        is_list = isinstance(value, (list, tuple))
        advice = "For several labels choose the problem type multi_label."
        check_at(place, not is_list or len(value) < 2, "a row must have one label", value, advice)
        name = _label_text("".join(map(str, value)) if is_list else value, place, names)
        return None if name not in names and means_missing(name) else name
    value = value if value in names else as_list(value)
    if isinstance(value, (list, tuple)):
        bits = [int(each) if isinstance(each, bool) else each for each in value]
        return [_label_text(each, place, names) for each in bits]
    text = _label_text(value, place, names)
    if text in names:
        return [text]
    if text and means_missing(text):
        return None
    found = [_label_text(each, place, names) for each in text.split(separator)]
    return [*filter(None, found)]


def _are_bits(rows):
    """Whether each list has a 0 or a 1 for every label, rather than the names of its labels.

    Such lists have the same length. Lists of classes called 0 and 1 do not, or all name both.
    """
    rows = [row for row in rows if row is not None]
    lengths = {len(row) for row in rows}
    bits = {name for row in rows for name in row} <= {"0", "1"}
    return bits and len(lengths) == 1 and min(lengths) > 1


def _names_of_ones(rows, names, rule, places):
    """Returns for each row of 0 and 1 the names of the labels with a 1."""
    wrong = [row is not None and (len(row) != len(names) or not {*row} <= {*"01"}) for row in rows]
    raise_at_first(wrong, rows, rule, places=places)
    return [row and [x for x, bit in zip(names, row, strict=True) if bit == "1"] for row in rows]


def _means_no_label(number, labels, names, problem_type):
    """Whether a number such as -1 marks rows without a label.

    If `names` says which labels are allowed, it does if it is not among them. Else it does if no
    row has another label, as in test sets of GLUE, or if the other labels are the numbers from 0 of
    three or more classes. With two others it may be a class, as in -1, 0, 1.
    """
    if names:
        return number not in names
    others = {*labels} - {number, None}
    is_numbered = len(others) > 2 and others == {*map(str, range(len(others)))}
    return not others or (is_numbered and problem_type == "single_label")
