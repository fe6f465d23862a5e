"""Finds out which columns of a file hold words and which their tags."""

import collections
import itertools
import os
import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

# Names of columns in published sets and in other tools' files, the likeliest first.
SENTENCE_NAMES = ("sentence #", "sentence_id", "sentence_idx", "sent_id", "sentence")
WORD_NAMES = ("tokens", "words", "word", "token", "form")
TAG_NAMES = ("ner_tags", "ner", "tags", "labels", "tag", "label", "upos", "pos_tags", "pos")
LINES_LOOKED_AT = 1000
# Columns of CoNLL-U: ID FORM LEMMA UPOS XPOS FEATS HEAD DEPREL DEPS MISC.
_CONLLU = (1, 3)
# Columns of CoNLL-2012: document, part, number, word, ..., and entities: `(PERSON*`, `*`, `*)`.
CONLL_2012_ENTITIES = 10
_CONLL_2012 = (3, CONLL_2012_ENTITIES)
_BRACKETS = re.compile(r"(\([^()*\s]+)*\*?\)*")
_ENTITY_TAG = re.compile("O|[BIESLUM][-_].+")
# In fewer words, how often values recur does not tell words from tags.
_FEWEST_WORDS = 20
_ADVICE = "Name the columns, from 0, by word_column and tag_column."


class TagColumns(NamedTuple):
    """Where a column file has words and tags.

    Args:
        words: int, the words' column.
        tags: int, the tags' column.
        has_header: bool, whether the first line names the columns.
    """

    words: int
    tags: int
    has_header: bool = False

    def __str__(self) -> str:
        return f"words in column {self.words}, tags in column {self.tags}, counted from 0"


def find_header(fields: Sequence[str]) -> tuple[int | None, int, int] | None:
    """Returns the columns of sentence numbers, words and tags that a header names, or `None`.

    Args:
        fields: list of str, the fields of the first line.
    """
    names = [field.strip().lower() for field in fields]
    sentence, word, tag = (
        next((names.index(name) for name in wanted if name in names), None)
        for wanted in (SENTENCE_NAMES, WORD_NAMES, TAG_NAMES)
    )
    return None if word is None or tag is None else (sentence, word, tag)


def find_columns(
    path: str | os.PathLike[str],
    rows: Iterable[tuple[int, list[str] | None]],
    word_column: int | None,
    tag_column: int | None,
) -> TagColumns:
    """Returns where a column file has words and tags, from its name and its first lines.

    Args:
        path: the file, for its ending and for messages.
        rows: `(line number, fields)`, where fields are `None` at the end of a sentence.
        word_column: int, or `None` to find out.
        tag_column: int, or `None` to find out.

    Raises:
        ValueError: the columns are in doubt. The message names the arguments that decide.
    """
    rows = list(itertools.islice(rows, LINES_LOOKED_AT))
    words = [(line, fields) for line, fields in rows if fields is not None]
    first = words[0][1] if words else []
    header = find_header(first)
    if header:
        found = header[1:]
    elif is_conllu(path):
        found = _CONLLU
    elif is_conll_2012(first):
        found = _CONLL_2012
    elif word_column is None and _are_numbered(rows):
        found = _after_numbers(path, words, tag_column)
    elif word_column is None and tag_column is None:
        found = _by_content(path, [fields for _, fields in words])
    else:
        found = (0, len(first) - 1)
    word_column = found[0] if word_column is None else word_column
    tag_column = found[1] if tag_column is None else tag_column
    return TagColumns(word_column, tag_column, bool(header))


def is_conllu(path: str | os.PathLike[str]) -> bool:
    """Whether a file is CoNLL-U by the ending of its name."""
    return os.fspath(path).lower().removesuffix(".gz").endswith(".conllu")


def is_conll_2012(fields: Sequence[str]) -> bool:
    """Whether the fields of a word's line are those of CoNLL-2012."""
    if len(fields) < 12 or not (fields[1].isdigit() and fields[2].isdigit()):
        return False
    return _BRACKETS.fullmatch(fields[10]) is not None


def _are_numbered(rows):
    """Whether the first column numbers the words of each sentence."""
    number = 0
    for _, fields in rows:
        number = 0 if fields is None else number + 1
        if fields and (len(fields) < 3 or fields[0] != str(number)):
            return False
    return any(fields for _, fields in rows)


def _after_numbers(path, words, tag_column):
    wrong = [row for row in words if not _ENTITY_TAG.fullmatch(row[1][2])]
    if wrong and tag_column is None:
        line, fields = wrong[-1]
        raise ValueError(
            f"{path}, line {line}: the first column numbers the words, and the third is not the "
            f"tag of an entity. Received: {fields}. {_ADVICE}"
        )
    return 1, 2


def _by_content(path, rows):
    """Returns the columns by what they hold; words are first and tags last if nothing else is."""
    last = len(rows[0]) - 1 if rows else 0
    if not last:
        return 0, 0
    columns = list(zip(*rows, strict=True))
    tags = [place for place, column in enumerate(columns) if hold_entity_tags(column)]
    if not tags:
        _check_words_come_first(path, columns)
        return 0, last
    if 0 in tags and (len(tags) > 1 or last > 1):
        raise ValueError(
            f"{path}: the columns {tags} hold tags, so that it is in doubt which holds the words. "
            f"Received first: {rows[0]}. {_ADVICE}"
        )
    return (1, 0) if tags == [0] else (0, tags[-1])


def hold_entity_tags(column):
    """Whether a column holds tags of entities."""
    if all(_ENTITY_TAG.fullmatch(value) for value in column):
        return True
    # Tags may be types without a prefix. Then "O" is the most frequent, as in any text.
    return collections.Counter(column).most_common(1)[0][0] == "O"


def _check_words_come_first(path, columns):
    """Refuses columns if the first repeats its values like tags, and the last varies like words."""
    first, last = (len({*columns[place]}) for place in (0, -1))
    if len(columns[0]) >= _FEWEST_WORDS and 4 * first < last:
        raise ValueError(
            f"{path}: the first column has {first} different values and the last {last}, so that "
            f"it is in doubt which holds the words. Received first: "
            f"{[column[0] for column in columns]}. {_ADVICE}"
        )
