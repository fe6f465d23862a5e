"""Tags of words as named entities.

A tag is a prefix, which says where in an entity the word is, and the entity's type: `B-PER`.
Where all tags but `O` are types alone (`PER`), or have an underscore (`B_PER`), `entity_readings`
says which tag of this form each stands for. Tags of these schemes are read, and mixtures of them:

| scheme | prefixes | an entity is |
|---|---|---|
| IOB1 | I O B | `I I I`; `B` only directly after another entity of the same type |
| IOB2 | I O B | `B I I` |
| IOE2 | I O E | `I I E` |
| IOBES, BIOES | I O B E S | `B I E`, or `S` for one word |
| BMES | M O B E S | `B M E`, or `S` for one word |
| BILOU | I O B L U | `B I L`, or `U` for one word |
"""

import functools
import re
from collections.abc import Sequence

# The prefixes that begin an entity or go on in one, and those that go on or end one. M, L and U are
# other names for I, E and S.
_OPEN, _GOES_ON = "BIM", "IMEL"
_TAG = re.compile("O|[BIESMLU](-.+)?")
_WITH_UNDERSCORE = re.compile("[BIESLUM]_.+")
_SPECIAL_TOKEN = re.compile(r"\[.*\]|<.*>")


def find_odd_tags(tags: Sequence[str]) -> list[str]:
    """Returns the tags that mark no place in an entity although the others do: typing errors.

    At least half of the tags other than `O` must be a prefix with a type, as in `"B-PER"`; in other
    sets, such as parts of speech, no tag is odd.

    Args:
        tags: sequence of different str, such as a tagger's `label_names`.

    Returns:
        List of str, in the order of `tags`.

    Example:
        >>> find_odd_tags(["0", "B-PER", "I-PER"]), find_odd_tags(["NOUN", "VERB"])
        (['0'], [])
    """
    odd = [tag for tag in tags if not is_entity_tag(tag)]
    num_typed = sum(is_entity_tag(tag) and "-" in tag for tag in tags)
    return odd if num_typed >= max(1, len(odd)) else []


def is_entity_tag(tag: str) -> bool:
    """Returns whether a str is `O`, or a prefix, alone or with a type."""
    return _TAG.fullmatch(tag) is not None


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


@functools.lru_cache
def _split_tag(tag):
    """Returns the prefix and the type of a tag."""
    if not isinstance(tag, str) or tag[:1] not in set("OBIESMLU") or tag[1:2] not in ("", "-"):
        raise ValueError(
            "A tag must be one of the letters O, B, I, E, S, M, L, U, alone or followed by '-' and "
            f"a type, as in 'B-PER'. Received: {tag!r}. Check the column of the labels. Write a "
            "type without a prefix, such as 'PER', as 'I-PER'."
        )
    return tag[0], tag[2:] or "_"


def extract_entities(tags: Sequence[str]) -> list[tuple[str, int, int]]:
    """Reads the entities from one sentence's tags.

    Any mixture of prefixes is read as conlleval does: `B` and `S` start an entity, as do `I` and
    `E` after `O`, after a finished entity, or after another type. So `I-PER` right after `O` is an
    entity of one word.

    Unlike seqeval's default mode, `M`, `L` and `U` are read as `I`, `E` and `S`, so BMES and BILOU
    work too, and an unknown prefix is an error rather than a warning.

    Args:
        tags: list of str, one per word, such as `"B-PER"`, or `"B"` alone (type `"_"`).

    Returns:
        List of `(type, start, end)`, in order; the words are `tags[start:end]`.

    Raises:
        ValueError: a tag has an unknown prefix.

    Example:
        >>> extract_entities(["B-PER", "I-PER", "O", "B-LOC"])
        [('PER', 0, 2), ('LOC', 3, 4)]

    Reference:
        Tjong Kim Sang and De Meulder (2003), Introduction to the CoNLL-2003 shared task.
    """
    entities, before = [], ("O", "")
    for place, tag in enumerate(tags):
        prefix, kind = now = _split_tag(tag)
        if prefix in _GOES_ON and before[0] in _OPEN and kind == before[1]:
            entities[-1] = (kind, entities[-1][1], place + 1)
        elif prefix != "O":
            entities.append((kind, place, place + 1))
        before = now
    return entities
