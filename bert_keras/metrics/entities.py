"""Named entities: from tags to spans, and precision, recall and F1 of whole spans.

A tag is a prefix that says where in an entity the word stands, and the entity's type: `B-PER`.

| scheme | prefixes | an entity is |
|---|---|---|
| IOB1 | I O B | `I I I`; `B` only where it touches an entity of its own type before it |
| IOB2 | I O B | `B I I` |
| IOE2 | I O E | `I I E` |
| IOBES, BIOES | I O B E S | `B I E`, or `S` for one word |
| BMES | M O B E S | `B M E`, or `S` for one word |
| BILOU | I O B L U | `B I L`, or `U` for one word |

An entity counts as found only if its type, first and last word are all right. The numbers equal
seqeval's: without a scheme its default mode, which is conlleval's; with one its strict mode.
"""

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from bert_keras.checks import check_choice
from bert_keras.types import Scheme

# Prefixes by position in these tables. M, L and U are other names for I, E and S.
_PREFIXES = "OBIES"
_SYNONYMS = {"M": "I", "L": "E", "U": "S"}

# What each scheme accepts, as conditions on the prefix of the word before, of the word now, and
# whether both have the same type: an entity starts at a word, goes on at a word, or, the word now
# not going on, was complete with the word before.
_RULES = {
    None: (
        lambda before, now, same: now in "BS" or (now in "IE" and (before in "OES" or not same)),
        lambda before, now, same: now in "IE" and before in "BI" and same,
        lambda before, now, same: True,
    ),
    "IOB1": (
        lambda before, now, same: (
            (now == "I" and not (before == "I" and same))
            or (now == "B" and before in "BI" and same)
        ),
        lambda before, now, same: now == "I" and before in "BI" and same,
        lambda before, now, same: not (before == "B" and now == "B" and not same),
    ),
    "IOB2": (
        lambda before, now, same: now == "B",
        lambda before, now, same: now == "I" and before in "BI" and same,
        lambda before, now, same: True,
    ),
    "IOE2": (
        lambda before, now, same: now in "IE" and not (before == "I" and same),
        lambda before, now, same: now in "IE" and before == "I" and same,
        lambda before, now, same: before == "E",
    ),
    "IOBES": (
        lambda before, now, same: now in "BS",
        lambda before, now, same: now in "IE" and before in "BI" and same,
        lambda before, now, same: before in "ES",
    ),
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


def _truth_table(rule):
    """The rule's answers as an array indexed by prefix before, prefix now, same type."""
    return np.array(
        [
            [[rule(before, now, same) for same in (False, True)] for now in _PREFIXES]
            for before in _PREFIXES
        ]
    )


_TABLES = {name: tuple(map(_truth_table, rules)) for name, rules in _RULES.items()}


def _split_tag(tag, scheme):
    """Returns the prefix's position in `_PREFIXES` and the type."""
    letters, _ = _LETTERS[scheme]
    if not isinstance(tag, str) or not tag or tag[0] not in letters or tag[1:2] not in ("", "-"):
        raise ValueError(
            f"A tag must be one of the letters {', '.join(letters)}, alone or followed by '-' and "
            f"a type, as in 'B-PER'"
            + (f", in scheme {scheme}. " if scheme else ". ")
            + f"Received: {tag!r}. Check the column and the scheme of the labels."
        )
    prefix = _SYNONYMS.get(tag[0], tag[0])
    return _PREFIXES.index(prefix), tag[2:] or "_"


def find_odd_tags(tags: Sequence[str], scheme: Scheme | None = None) -> list[str]:
    """Returns the tags that mark no place in an entity, though the others do: typing errors.

    Without a scheme at least half of the tags other than `O` must be a prefix with a type, as in
    `"B-PER"`; in other sets, such as parts of speech, no tag is odd.

    Args:
        tags: sequence of different str, such as a tagger's `label_names`.
        scheme: as in `extract_entities`; where it is given, all tags that it lacks are odd.

    Returns:
        List of str, in the order of `tags`.

    Raises:
        ValueError: the scheme is unknown.

    Example:
        >>> find_odd_tags(["0", "B-PER", "I-PER"]), find_odd_tags(["NOUN", "VERB"])
        (['0'], [])
    """
    check_choice("scheme", scheme, _LETTERS)
    odd = [tag for tag in tags if not is_entity_tag(tag, scheme)]
    num_typed = sum(is_entity_tag(tag, scheme) and "-" in tag for tag in tags)
    return odd if scheme or num_typed >= max(1, len(odd)) else []


def is_entity_tag(tag: str, scheme: Scheme | None = None) -> bool:
    """Whether a str is `O`, or a prefix of a scheme, alone or with a type."""
    letters = _LETTERS[scheme][0].replace("O", "")
    return re.fullmatch(f"O|[{letters}](-.+)?", tag) is not None


def _find_spans(sentences, scheme, type_ids):
    """Finds the entities of all sentences at once.

    Works on one long array, each sentence preceded and the last followed by an `O`, so that no
    entity crosses a border.

    Args:
        sentences: list of lists of tags.
        scheme: a key of `_LETTERS`.
        type_ids: dict from type to id, extended in place with types not yet in it.

    Returns:
        Three integer arrays: type ids, starts and ends (exclusive) of the spans.
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
    # A run is a word and those that go on from it; its entity begins at the run's first start.
    run = np.cumsum(~continues)
    candidates = np.flatnonzero(starts)
    _, first = np.unique(run[candidates], return_index=True)
    begins = candidates[first]
    run_ends = np.append(np.flatnonzero(~continues), len(continues))
    ends = run_ends[run[begins]]
    complete = completes[ends]
    begins, ends = begins[complete], ends[complete]
    return kinds[begins + 1], begins, ends


def extract_entities(
    tags: Sequence[str], scheme: Scheme | None = None
) -> list[tuple[str, int, int]]:
    """Reads the entities out of one sentence's tags.

    Without a scheme any mixture of prefixes is read as conlleval does: `B` and `S` start an
    entity, and so do `I` and `E` after `O`, after a finished entity, or after another type. So
    `I-PER` right after `O` is an entity of one word. With a scheme, only sequences that the
    scheme allows are entities; in IOB2 that `I-PER` is none.

    Unlike seqeval's default mode, `M`, `L` and `U` are read as `I`, `E` and `S`, so BMES and
    BILOU work without a scheme too, and an unknown prefix is an error rather than a warning.

    Args:
        tags: list of strings, one per word, such as `"B-PER"`, or `"B"` alone (type `"_"`).
        scheme: None, `"IOB1"`, `"IOB2"`, `"IOE2"`, `"IOBES"`, `"BIOES"`, `"BMES"` or `"BILOU"`.

    Returns:
        List of `(type, start, end)`, in order; words `tags[start:end]`, as in a slice.

    Raises:
        ValueError: on an unknown scheme, or a prefix that the scheme does not have.

    Example:
        >>> extract_entities(["B-PER", "I-PER", "O", "B-LOC"])
        [('PER', 0, 2), ('LOC', 3, 4)]

    Reference:
        Tjong Kim Sang and De Meulder (2003), Introduction to the CoNLL-2003 shared task.
    """
    check_choice("scheme", scheme, _LETTERS)
    type_ids = {}
    kinds, begins, ends = _find_spans([tags], scheme, type_ids)
    names = list(type_ids)
    return [
        (names[kind], begin, end)
        for kind, begin, end in zip(kinds.tolist(), begins.tolist(), ends.tolist(), strict=True)
    ]


def _check_sentences(true, predicted):
    if len(true) != len(predicted):
        raise ValueError(
            "True and predicted tags must have the same number of sentences. "
            f"Received: {len(true)} true, {len(predicted)} predicted."
        )
    if len(true) == 0:
        raise ValueError("Entity scores need at least one sentence. Received: none.")
    for index, (expected, found) in enumerate(zip(true, predicted, strict=True)):
        if isinstance(expected, str) or isinstance(found, str):
            raise ValueError(
                "Tags must be a list of sentences, each a list of tags. Received: a string as "
                f"sentence {index}. For one sentence, pass `[tags]`."
            )
        if len(expected) != len(found):
            raise ValueError(
                "Each word needs one true and one predicted tag. Received: "
                f"{len(expected)} true and {len(found)} predicted tags in sentence {index}. "
                "Predict words beyond the length limit too, or leave them out of both."
            )


def _scores(right, predicted, true):
    """Precision, recall and F1; 0 where one is 0/0."""
    precision = right / predicted if predicted else 0.0
    recall = right / true if true else 0.0
    f1 = 2 * right / (predicted + true) if right else 0.0
    return {"precision": precision, "recall": recall, "f1": f1}


def entity_scores(
    true: Sequence[Sequence[str]], predicted: Sequence[Sequence[str]], scheme: Scheme | None = None
) -> dict[str, Any]:
    """Precision, recall and F1 of whole entities, over all types and for each.

    An entity is right if a true one has the same type, start and end. With `right` of them,
    precision = right / predicted, recall = right / true, F1 = 2 right / (predicted + true).
    A fraction 0/0 is 0. CoNLL-2003 and WNUT-17 report the first three numbers, which are of all
    entities together (micro average).

    Args:
        true: list of sentences, each a list of tags.
        predicted: the same with the model's tags.
        scheme: as in `extract_entities`: None for seqeval's default mode, a name for its
            `mode="strict"`.

    Returns:
        Dict with `precision`, `recall`, `f1` (micro), `macro_precision`, `macro_recall`,
        `macro_f1` (means over the types that occur in either), `support` (number of true
        entities), and `types`: a dict from type, sorted, to its `precision`, `recall`, `f1`,
        `support`. All 0 if there is no entity at all.

    Raises:
        ValueError: on sentences of unequal number or length, no sentences, or unknown tags.

    Example:
        >>> scores = entity_scores([["B-PER", "I-PER", "O"]], [["B-PER", "O", "O"]])
        >>> scores["f1"], scores["support"]
        (0.0, 1)

    Reference:
        https://github.com/chakki-works/seqeval
    """
    check_choice("scheme", scheme, _LETTERS)
    _check_sentences(true, predicted)
    type_ids = {}
    true_spans = _find_spans(true, scheme, type_ids)
    predicted_spans = _find_spans(predicted, scheme, type_ids)
    num_types, length = len(type_ids), sum(map(len, true)) + len(true) + 1

    def as_numbers(spans):
        kinds, begins, ends = spans
        return (begins * length + ends) * num_types + kinds

    common = np.intersect1d(as_numbers(true_spans), as_numbers(predicted_spans))
    counts = [
        np.bincount(kinds, minlength=num_types).tolist()
        for kinds in (common % max(num_types, 1), predicted_spans[0], true_spans[0])
    ]
    types = {}
    for name, type_id in sorted(type_ids.items()):
        right, found, expected = (count[type_id] for count in counts)
        if found or expected:
            types[name] = _scores(right, found, expected) | {"support": expected}
    result = _scores(*(sum(count) for count in counts))
    for name in ("precision", "recall", "f1"):
        values = [scores[name] for scores in types.values()]
        result[f"macro_{name}"] = sum(values) / len(values) if values else 0.0
    return result | {"support": sum(counts[2]), "types": types}
