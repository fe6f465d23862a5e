"""Tags of words as named entities.

A tag is a prefix, which says where in an entity the word is, and the entity's type: `B-PER`.
Where all tags but `O` are types alone (`PER`), or have an underscore (`B_PER`), `entity_readings`
says which tag of this form each stands for.

| scheme | prefixes | an entity is |
|---|---|---|
| IOB1 | I O B | `I I I`; `B` only directly after another entity of the same type |
| IOB2 | I O B | `B I I` |
| IOE2 | I O E | `I I E` |
| IOBES, BIOES | I O B E S | `B I E`, or `S` for one word |
| BMES | M O B E S | `B M E`, or `S` for one word |
| BILOU | I O B L U | `B I L`, or `U` for one word |
"""

import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ..checks import check_choice

# Prefixes by position in these tables. M, L and U are other names for I, E and S.
_PREFIXES = "OBIES"
_SYNONYMS = {"M": "I", "L": "E", "U": "S"}

# Whether an entity starts at a word, by the prefixes of the previous word and of this one, and by
# whether both have the same type.
_STARTS = {
    None: lambda before, now, same: now in "BS" or (now in "IE" and (before in "OES" or not same)),
    "IOB1": lambda before, now, same: (
        not (before == "I" and same) if now == "I" else now == "B" and before in "BI" and same
    ),
    "IOB2": lambda before, now, same: now == "B",
    "IOE2": lambda before, now, same: now in "IE" and not (before == "I" and same),
    "IOBES": lambda before, now, same: now in "BS",
}
# Whether the entity before a word that does not continue it was complete; by default it was.
_COMPLETES = {
    "IOB1": lambda before, now, same: same or before != "B" or now != "B",
    "IOE2": lambda before, now, same: before == "E",
    "IOBES": lambda before, now, same: before in "ES",
}
_LETTERS = {
    None: ("OBIESMLU", None),
    "IOB1": ("IOB", "IOB1"),
    "IOB2": ("IOB", "IOB2"),
    "IOE2": ("IOE", "IOE2"),
    "IOBES": ("IOBES", "IOBES"),
    "BIOES": ("IOBES", "IOBES"),
    "BMES": ("OBMES", "IOBES"),
    "BILOU": ("BILOU", "IOBES"),
}
SCHEMES = tuple(name for name in _LETTERS if name)
_WITH_UNDERSCORE = re.compile("[BIESLUM]_.+")
_SPECIAL_TOKEN = re.compile(r"\[.*\]|<.*>")


def _truth_table(rule):
    """Returns the rule's values as an array indexed by both prefixes and by "same type"."""
    return np.array(
        [
            [[rule(before, now, same) for same in (False, True)] for now in _PREFIXES]
            for before in _PREFIXES
        ]
    )


def _continues(before, now, same):
    return now in "IE" and before in "BI" and same


_TABLES = {
    name: tuple(map(_truth_table, (starts, _continues, _COMPLETES.get(name, lambda *_: True))))
    for name, starts in _STARTS.items()
}


def check_scheme(scheme: str | None) -> None:
    """Raises `ValueError` for an unknown scheme."""
    check_choice("scheme", scheme, _LETTERS)


def find_odd_tags(tags: Sequence[str], scheme: str | None = None) -> list[str]:
    """Returns the tags that mark no place in an entity although the others do: typing errors.

    Without a scheme at least half of the tags other than `O` must be a prefix with a type, as in
    `"B-PER"`; in other sets, such as parts of speech, no tag is odd.

    Args:
        tags: sequence of different str, such as a tagger's `label_names`.
        scheme: as in `extract_entities`; with a scheme, every tag that it lacks is odd.

    Returns:
        List of str, in the order of `tags`.

    Raises:
        ValueError: the scheme is unknown.

    Example:
        >>> find_odd_tags(["0", "B-PER", "I-PER"]), find_odd_tags(["NOUN", "VERB"])
        (['0'], [])
    """
    check_scheme(scheme)
    odd = [tag for tag in tags if not is_entity_tag(tag, scheme)]
    num_typed = sum(is_entity_tag(tag, scheme) and "-" in tag for tag in tags)
    return odd if scheme or num_typed >= max(1, len(odd)) else []


def is_entity_tag(tag: str, scheme: str | None = None) -> bool:
    """Returns whether a str is `O`, or a prefix of a scheme, alone or with a type."""
    letters = _LETTERS[scheme][0].replace("O", "")
    return re.fullmatch(f"O|[{letters}](-.+)?", tag) is not None


def entity_readings(names: Sequence[str] | None) -> dict[str, str]:
    """Returns the entity tag that each label name is read as; empty where they mark no entities.

    Beside `O`, a name without a prefix (`PER`) is read as `I-PER`, as transformers does: adjacent
    words of one type are one entity. `B_PER` is read as `B-PER` if no name has a hyphen there. A
    name such as `[PAD]` is read as `O`, as is any that marks no place among names that do.

    Args:
        names: sequence of str, a tagger's `label_names`, or `None`.

    Example:
        >>> entity_readings(["O", "PER"]), entity_readings(["NOUN", "VERB"])
        ({'O': 'O', 'PER': 'I-PER'}, {})
    """
    names = names or ()
    odd = find_odd_tags(names)
    readings = {name: "O" if name in odd else name for name in names}
    if all(map(is_entity_tag, readings.values())):
        return readings
    types = [name for name in names if name != "O" and not _SPECIAL_TOKEN.fullmatch(name)]
    # Sets of parts of speech may have a tag "O", among others of one letter.
    if "O" not in names or not all(len(name) > 1 for name in types):
        return {}
    if all(_WITH_UNDERSCORE.fullmatch(name) for name in types):
        found = {name: f"{name[0]}-{name[2:]}" for name in types}
    else:
        found = {name: name if is_entity_tag(name) else f"I-{name}" for name in types}
    return {name: found.get(name, "O") for name in names}


def _split_tag(tag, scheme):
    """Returns the prefix's position in `_PREFIXES` and the type."""
    letters, _ = _LETTERS[scheme]
    if not isinstance(tag, str) or not tag or tag[0] not in letters or tag[1:2] not in ("", "-"):
        raise ValueError(
            f"A tag must be one of the letters {', '.join(letters)}, alone or followed by '-' and "
            f"a type, as in 'B-PER'"
            + (f", in scheme {scheme}. " if scheme else ". ")
            + f"Received: {tag!r}. Check the column and the scheme of the labels. Write a type "
            "without a prefix, such as 'PER', as 'I-PER'."
        )
    prefix = _SYNONYMS.get(tag[0], tag[0])
    return _PREFIXES.index(prefix), tag[2:] or "_"


def find_entities(
    sentences: Sequence[Sequence[str]], scheme: str | None, type_ids: dict[str, int]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Finds the entities of all sentences at once.

    Works on one long array, each sentence preceded and the last followed by an `O`, so that no
    entity crosses the border between two sentences.

    Args:
        sentences: list of lists of tags.
        scheme: as in `extract_entities`, checked.
        type_ids: dict from type to id; new types are added to it.

    Returns:
        Three int arrays: the entities' type ids, first words and ends (exclusive). Words are
        counted through all sentences, with one more between two sentences.

    Raises:
        ValueError: a tag is not of the scheme.
    """
    tags = ["O"]
    for sentence in sentences:
        tags.extend(sentence)
        tags.append("O")
    codes = {}
    for tag in dict.fromkeys(tags):
        prefix, kind = _split_tag(tag, scheme)
        # The type of an O never matters: no rule starts or continues there.
        codes[tag] = (prefix, type_ids.setdefault(kind, len(type_ids)) if prefix else -1)
    tag_ids = {tag: index for index, tag in enumerate(codes)}
    coded = np.array(list(codes.values()))[[tag_ids[tag] for tag in tags]]
    prefixes, kinds = coded[:, 0], coded[:, 1]
    starts, continues, completes = (
        table[prefixes[:-1], prefixes[1:], (kinds[:-1] == kinds[1:]).astype(int)]
        for table in _TABLES[_LETTERS[scheme][1]]
    )
    # A run is a word and those that continue it; its entity begins at the run's first start.
    run = np.cumsum(~continues)
    candidates = np.flatnonzero(starts)
    _, first = np.unique(run[candidates], return_index=True)
    begins = candidates[first]
    run_ends = np.append(np.flatnonzero(~continues), len(continues))
    ends = run_ends[run[begins]]
    complete = completes[ends]
    begins, ends = begins[complete], ends[complete]
    return kinds[begins + 1], begins, ends


def extract_entities(tags: Sequence[str], scheme: str | None = None) -> list[tuple[str, int, int]]:
    """Reads the entities from one sentence's tags.

    Without a scheme any mixture of prefixes is read as conlleval does: `B` and `S` start an
    entity, as do `I` and `E` after `O`, after a finished entity, or after another type. So
    `I-PER` right after `O` is an entity of one word. With a scheme, only sequences that the
    scheme allows are entities; in IOB2 that `I-PER` is none.

    Unlike seqeval's default mode, `M`, `L` and `U` are read as `I`, `E` and `S`, so BMES and
    BILOU work without a scheme too, and an unknown prefix is an error rather than a warning.

    Args:
        tags: list of str, one per word, such as `"B-PER"`, or `"B"` alone (type `"_"`).
        scheme: `None`, `"IOB1"`, `"IOB2"`, `"IOE2"`, `"IOBES"`, `"BIOES"`, `"BMES"` or `"BILOU"`.

    Returns:
        List of `(type, start, end)`, in order; the words are `tags[start:end]`.

    Raises:
        ValueError: the scheme is unknown, or lacks the prefix of a tag.

    Example:
        >>> extract_entities(["B-PER", "I-PER", "O", "B-LOC"])
        [('PER', 0, 2), ('LOC', 3, 4)]

    Reference:
        Tjong Kim Sang and De Meulder (2003), Introduction to the CoNLL-2003 shared task.
    """
    check_scheme(scheme)
    type_ids = {}
    kinds, begins, ends = find_entities([tags], scheme, type_ids)
    names = list(type_ids)
    return [
        (names[kind], begin, end)
        for kind, begin, end in zip(kinds.tolist(), begins.tolist(), ends.tolist(), strict=True)
    ]
