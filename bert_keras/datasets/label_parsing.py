"""Labels in the cells of a table: one name, several, a score, or 0 and 1 in a column per label."""

import collections
import contextlib
import json
import re
import unicodedata
import warnings
from collections.abc import Iterable, Sequence
from typing import Any

from bert_keras.checks import raise_at_first
from bert_keras.datasets.files import check_at
from bert_keras.datasets.table import as_text
from bert_keras.types import Path, ProblemType

# Texts that mean "no label": SNLI's mark on rows whose annotators disagreed, NaN, what pandas reads
# as missing, and what databases write.
_MISSING = ("", "-", "nan")
_MISSING_WORDS = (
    r"#N/A N/A NA n/a #NA NULL null None <NA> -NaN -nan 1.#IND -1.#IND 1.#QNAN -1.#QNAN \N"
)
_MISSING_WORDS = frozenset(_MISSING_WORDS.split())
# What may stand between several labels in a cell.
_BETWEEN_LABELS = "#;|、/,，；&+:\n"
# Names that may stand for a missing label, in lower case. A warning says where they are classes: in
# spellings other than those above, or if the user names them as labels.
_LIKE_MISSING = "null na n.a. (null) nil nat -- ? #value! #ref! #div/0! #name? undefined missing"
_LIKE_MISSING = frozenset(_LIKE_MISSING.split())
_LIST = re.compile(r"[\[({](.*)[\])}]", re.DOTALL)
# Cyrillic and Greek letters, of which the small or the capital one looks like a Latin letter. The
# Greek m is missing: it means a millionth.
_LOOK_ALIKE = str.maketrans(
    "\u0430\u0432\u0435\u0455\u0456\u0458\u043a\u043c\u043d\u043e\u0440\u0441\u0442\u0443\u0445"
    "\u03b1\u03b2\u03b5\u03b6\u03b7\u03b9\u03ba\u03bd\u03bf\u03c1\u03c4\u03c5\u03c7",
    "abesijkmhopctyxabezhiknoptyx",
)
# Accents of Latin and Greek vowels, and vowels of Hebrew and Arabic, which many leave out. Letters
# with other marks are letters of their own.
_ACCENTS = re.compile(
    "(?<=[aeiouy\u03b1\u03b5\u03b7\u03b9\u03bf\u03c5\u03c9])[\u0300-\u0302]+"
    "|[\u0591-\u05c7\u064b-\u0652\u0670]"
)
# In fewer rows, how often values recur does not tell what they are.
FEWEST_VALUES = 20
# A name in quotation marks in a list that was written as text.
_QUOTED = re.compile(r"'((?:[^'\\]|\\.)*)'|\"((?:[^\"\\]|\\.)*)\"")


def read_labels(
    columns: Sequence[Sequence[Any]],
    places: Sequence[str],
    titles: Sequence[str],
    problem_type: ProblemType,
    separator: str = ",",
    names: Sequence[str] = (),
) -> tuple[list[Any], tuple[str, ...]]:
    """Returns the labels of each row, and the names of all labels if the table tells them.

    Args:
        columns: the cells of each column of labels; several hold 0 or 1 for each label.
        places: where each row is, for messages.
        titles: the names of the columns.
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
    if len(columns) > 1:
        names = tuple(names or titles)
        rows = zip(places, *columns, strict=True)
        rows = [
            [None if is_missing(x) else _bit(_label_text(x, at)) for x in row] for at, *row in rows
        ]
        no_bits = [any(x in (None, "-1") or means_missing(x) for x in row) for row in rows]
        values = [None if out else row for row, out in zip(rows, no_bits, strict=True)]
        rule = "in columns of labels, each field must be 0 or 1"
        return _names_of_ones(values, names, rule, places), names
    values = [
        _label_of_cell(value, place, problem_type, separator, names)
        for value, place in zip(columns[0], places, strict=True)
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


def remark_on_names(path: Path, values: Iterable[str], may_be_joined: bool = True) -> None:
    """Warns of names that look the same or like none, and of several names in one cell.

    Args:
        path: the file.
        values: the name of each row.
        may_be_joined: bool, whether a name may be several names with a separator between them.
    """
    counts = collections.Counter(values)

    def listed(names):
        lower = {name: unicodedata.normalize("NFC", name).lower() for name in names}
        looks = collections.Counter(map(_in_latin, {*lower.values()}))
        return ", ".join(
            f"{ascii(name) if looks[_in_latin(x)] > 1 else _readable(name)} ({counts[name]})"
            for name, x in lower.items()
        )

    spellings = {name: _without_spelling(name) for name in sorted(counts)}
    # Names mean the same if one has no accents, and few differ in marks; or if one mixes scripts.
    bases = collections.Counter(map(_without_marks, {*spellings.values()}))
    spellings = _merged(
        spellings, _without_accents, lambda x, found: x in found and bases[_without_marks(x)] < 4
    )
    spellings = _merged(spellings, _in_latin, lambda x, found: any(map(_mixes_scripts, found)))
    if groups := [names for names in _grouped(spellings).values() if len(names) > 1]:
        warnings.warn(
            f"{path}: labels that differ only in case, width, accents, blanks, quotation marks, "
            "dots, letters of other scripts that look alike, or characters that one does not see "
            "are labels of their own: "
            f"{'; '.join(map(listed, groups[:5]))}. Write them alike if they mean the same.",
            stacklevel=2,
        )
    if like_missing := [name for name in sorted(counts) if name.casefold() in _LIKE_MISSING]:
        warnings.warn(
            f"{path}: labels that look like missing ones are classes: {listed(like_missing)}. "
            "Leave their cells empty if the rows have no label.",
            stacklevel=2,
        )
    for mark in (*_BETWEEN_LABELS, None) if may_be_joined else "":
        parts = {name: _parts_of(name, mark) for name in counts}
        parts = {name: found for name, found in parts.items() if found != [name]}
        known = collections.Counter(x for found in parts.values() for x in {*found})
        known.update(name for name in counts if name not in parts)
        joined = [
            name
            for name, found in parts.items()
            if mark is None or (len(found) > 1 and all(known[x] > 1 for x in found))
        ]
        if joined:
            number = sum(counts[name] for name in joined)
            form, remedy = "in the form of a list", ""
            if mark is not None:
                form, remedy = f"with {mark!r} between them", f" with label_separator={mark!r}"
            warnings.warn(
                f"{path}: {number} rows seem to have several labels {form}, such as {joined[0]!r}, "
                f"and are read as one label. Choose the problem type multi_label{remedy} to read "
                "them one by one.",
                stacklevel=2,
            )


def do_recur(values: Sequence[str]) -> bool:
    """Whether labels recur, or are few. Nearly all ids or texts differ."""
    return len(values) < FEWEST_VALUES or len({*values}) <= 0.8 * len(values)


def _readable(name):
    """Returns a name in quotes, escaped where another spelling looks like it."""
    if unicodedata.normalize("NFKC", name) != name:
        return ascii(name)
    return "".join(
        x if x.isascii() or unicodedata.category(x)[0] in "LMN" else ascii(x)[1:-1]
        for x in repr(name)
    )


def _grouped(forms):
    """Returns the keys of a dict by their values."""
    groups = collections.defaultdict(list)
    for name, form in forms.items():
        groups[form].append(name)
    return groups


def _merged(spellings, simpler, is_likely):
    """Returns spellings of names, simpler where it is likely that they mean the same."""
    groups = _grouped({spelling: simpler(spelling) for spelling in spellings.values()})
    return {
        name: simple if is_likely(simple, groups[simple]) else spelling
        for name, spelling in spellings.items()
        for simple in [simpler(spelling)]
    }


def _without_accents(name):
    text = _ACCENTS.sub("", unicodedata.normalize("NFD", name))
    return unicodedata.normalize("NFC", text)


def _without_marks(name):
    return "".join(x for x in unicodedata.normalize("NFD", name) if not unicodedata.combining(x))


def _in_latin(name):
    return unicodedata.normalize("NFKC", name).translate(_LOOK_ALIKE)


def _mixes_scripts(name):
    """Whether letters of a name are of two of the scripts whose letters look alike."""
    scripts = {unicodedata.name(x, "").split(" ")[0] for x in name if x.isalpha()}
    return len(scripts & {"LATIN", "CYRILLIC", "GREEK"}) > 1


def _without_spelling(name):
    """Returns a name without what distinguishes spellings of it."""
    # Not `casefold`, in which the German sharp s is a double one.
    text = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).lower())
    text = "".join(x for x in text if unicodedata.category(x) not in ("Cf", "Pi", "Pf"))
    text = re.sub(r"[\u2010-\u2015\u2212]", "-", text.replace("i\u0307", "i"))
    text = re.sub("[\"'`\u2032]", "", text).replace("_", " ")
    return " ".join(text.split()).rstrip(".,;:。") or name


def _parts_of(name, mark):
    """Returns the names with a mark between them in a name; those of a list if the mark is None."""
    parts = name.split(mark) if mark else [name]
    if mark is None and _LIST.fullmatch(name) and ("," in name or _QUOTED.search(name)):
        found = _names_in(name, mark)
        # A single name may have parentheses of its own.
        parts = found if len(found) > 1 or name[0] != "(" else parts
    return [stripped for part in parts if (stripped := str(part).strip())]


def _label_text(value, place):
    """Returns a label as text without blanks around it. 1.0 becomes "1", and `True` "true"."""
    text = str(value).lower() if isinstance(value, bool) else as_text(value, place)
    return re.sub(r"^(-?\d+)\.0+$", r"\1", text.strip())


def _bit(name):
    return {"true": "1", "false": "0"}.get(name.casefold(), name)


def _label_of_cell(value, place, problem_type, separator, names):
    """Returns the label in a cell: a name, for `"multi_label"` a list of names, `None` for none."""
    if is_missing(value):
        return None
    is_list = isinstance(value, (list, tuple))
    if problem_type != "multi_label":
        advice = "For several labels choose the problem type multi_label."
        check_at(place, not is_list or len(value) < 2, "a row must have one label", value, advice)
        name = _label_text("".join(map(str, value)) if is_list else value, place)
        return None if name not in names and means_missing(name) else name
    if is_list:
        return [_label_text(int(each) if isinstance(each, bool) else each, place) for each in value]
    text = _label_text(value, place)
    if text in names:
        return [text]
    if text and means_missing(text):
        return None
    return [name for each in _names_in(text, separator) if (name := _label_text(each, place))]


def _names_in(text, separator):
    """Returns the names in a text, which may be a list as Python, NumPy or JSON write it."""
    match = _LIST.fullmatch(text)
    if match is None:
        return text.split(separator)
    if '"' in text:
        with contextlib.suppress(ValueError):
            return [*json.loads(text)]
    quoted = [single or double for single, double in _QUOTED.findall(match[1])]
    return quoted or match[1].split("," if "," in match[1] else None)


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
