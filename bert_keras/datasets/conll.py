"""Tagged sentences in files: CoNLL's column files, and rows with named fields."""

import dataclasses
import itertools
import os
import re
import warnings
from collections.abc import Sequence

from bert_keras.checks import check_not_empty
from bert_keras.datasets.files import read_lines
from bert_keras.datasets.label_cells import remark_on_names
from bert_keras.datasets.labelled_texts import ExampleSet
from bert_keras.datasets.tag_columns import (
    CONLL_2012_ENTITIES,
    LINES_LOOKED_AT,
    TagColumns,
    find_columns,
    hold_entity_tags,
    is_conll_2012,
    is_conllu,
)
from bert_keras.datasets.tag_records import TagFields, find_fields, has_records, read_tag_records
from bert_keras.types import Path

# Such as `# text`, `###MEDLINE:95369245` (JNLPBA), `#begin document` (CoNLL-2012), `#sent_id=1`.
_COMMENT = re.compile(r"#([\s#]|$|begin |end |\w+ ?=)")


@dataclasses.dataclass(frozen=True)
class TaggedSentences(ExampleSet):
    """Sentences as words, with one tag per word.

    Args:
        words: list of n lists of str.
        tags: list of n lists of str, as long as those of `words`; `None` if the file has no tags.
    """

    words: list[list[str]]
    tags: list[list[str]] | None = None

    columns = ("words", "tags")


def read_conll(
    path: Path,
    word_column: str | int | None = None,
    tag_column: str | int | None = None,
    segment_index: bool | None = None,
    may_lack_tags: bool = False,
    label_names: Sequence[str] | None = None,
) -> TaggedSentences:
    r"""Reads tagged sentences: a column file, or rows with named fields.

    A column file has one word and its tags per line, and a blank line after each sentence. The
    same rules read CoNLL-2003, CoNLL-2012, WNUT-17, the Broad Twitter Corpus, Wikigold, MSRA,
    People's Daily, Weibo, MIT's films and CoNLL-U:

    - Fields are separated by tabs if the first word's line has one, else by spaces and tabs.
    - A line of white space or one that begins with `-DOCSTART-` ends a sentence.
    - A line that begins with `#` and has as many fields as the first word's line is a word: tweets
      have `#\tO`. With another number of fields it is a comment if white space, another `#` or
      nothing follows the `#` (`# text = ...`), if it is `#begin` or `#end` of CoNLL-2012 or
      `#name=value`, or if the file is CoNLL-U. Anything else (`#London B-LOC` in a file with tabs)
      is an error, since tweets are full of such words.
    - In CoNLL-U (a name that ends in `.conllu`) the lines of multiword tokens (`1-2`) and of empty
      nodes (`8.1`) are skipped: the words of the former are on lines of their own, and the latter
      do not occur in the text.
    - In CoNLL-2012 the fourth column has the words and the eleventh the entities, in brackets.
    - Without `word_column` and `tag_column` the word is the first field and the tag the last,
      unless a header or the fields of the first 1,000 lines show otherwise: the first column
      numbers the words (Universal NER), or alone holds tags of entities (MIT). In doubt that is an
      error, which names these arguments.

    Rows with named fields (JSON, JSON lines, Parquet, CSV with a header) are sentences (`tokens`,
    `ner_tags`), texts with the spans of their entities (doccano, Label Studio, CLUENER), or words
    with the number of their sentence (Kaggle). Spans become IOB2 tags of words, which white space,
    punctuation and the borders of entities separate.

    Words are kept as they are, with their white space (the Broad Twitter Corpus has `"ke s"`).
    Empty words are kept, since other tools count them too, and reported in a warning.

    Args:
        path: the file, plain or gzip.
        word_column: int, the column of the words from 0; or str, the name of the field.
        tag_column: int, the column of the tags; or str. In CoNLL-U the default is the universal
            part of speech (4 is the language's own).
        segment_index: bool, whether each word ends in a digit that does not belong to it, the
            position of the character in its word (Weibo: `科0`). By default `True` if every word of
            the file has at least two characters and ends in a digit, and nine in ten digits are 0
            or one more than the digit before.
        may_lack_tags: bool. If `True`, a file of words alone holds words to tag. If `False`, it is
            an error.
        label_names: list of str, the names of tags that are numbers. A Parquet file that `datasets`
            wrote holds them itself.

    Returns:
        `TaggedSentences`.

    Raises:
        ValueError: a line has another number of fields than the first, an empty tag, or too few
            columns, a row has not one tag per word, or the file holds no words, or texts instead of
            words. The message names the file and the line.

    Example:
        ```python
        train = read_conll("wnut17train.conll")
        train.words[0][:2], train.tags[0][:2]  # (['@paulwalk', 'It'], ['O', 'O'])
        ```
    """
    sentences, empty_words = [[]], []
    for place, word, tag in _read_words(path, word_column, tag_column, may_lack_tags, label_names):
        if word is None:
            sentences.append([])
            continue
        if not word.strip():
            empty_words.append(place)
        sentences[-1].append((word, tag))
    sentences = [sentence for sentence in sentences if sentence]
    check_not_empty(sentences, f"{path} must hold words")
    if empty_words:
        warnings.warn(
            f"{path}: {len(empty_words)} words are empty ({empty_words[0]} is the first).",
            stacklevel=2,
        )
    words = [[word for word, _ in sentence] for sentence in sentences]
    _check_words(path, words)
    tags = [tag for sentence in sentences for _, tag in sentence if tag is not None]
    if len(tags) >= 20 and len({*tags}) > 0.8 * len(tags):
        raise ValueError(
            f"{path} must have a column of tags. Received: {len({*tags})} different values for "
            f"{len(tags)} words, such as {tags[0]!r}. Name the columns by word_column and "
            "tag_column."
        )
    remark_on_names(path, tags, may_be_joined=False)
    if _has_segment_index(words) if segment_index is None else segment_index:
        words = [[word[:-1] for word in sentence] for sentence in words]
    has_tags = [sentence[0][1] is not None for sentence in sentences]
    if not any(has_tags):
        return TaggedSentences(words)
    if not all(has_tags):
        raise ValueError(
            f"{path}: either all sentences have tags or none has. Received without tags: "
            f"{words[has_tags.index(False)][:8]}."
        )
    return TaggedSentences(words, [[tag for _, tag in sentence] for sentence in sentences])


def find_tag(
    path: Path,
    tag: str,
    word_column: str | int | None = None,
    tag_column: str | int | None = None,
    label_names: Sequence[str] | None = None,
) -> str | None:
    """Returns the first place of a file whose word has the given tag, `None` without one.

    Args:
        path: see `read_conll`.
        tag: str.
        word_column: see `read_conll`.
        tag_column: see `read_conll`.
        label_names: see `read_conll`.

    Returns:
        A str such as `"line 3"`, or `None`.
    """
    words = _read_words(path, word_column, tag_column, True, label_names)
    return next((place for place, _, found in words if found == tag), None)


def tag_names(*examples: TaggedSentences | Sequence[Sequence[str]]) -> tuple[str, ...]:
    """Returns the tags that occur, `"O"` first and the others in alphabetical order.

    Args:
        examples: `TaggedSentences`, or lists of lists of str.

    Returns:
        Tuple of str: a tag's position is its number.
    """
    found = set()
    for rows in examples:
        for tags in (rows.tags or ()) if isinstance(rows, TaggedSentences) else rows:
            found.update(tags)
    return tuple(sorted(found, key=lambda tag: (tag != "O", tag)))


def tag_layout(
    path: Path, word_column: str | int | None = None, tag_column: str | int | None = None
) -> TagColumns | TagFields:
    """Returns where a file has its words and tags; `str` of it says so in words.

    Args:
        path: see `read_conll`.
        word_column: see `read_conll`.
        tag_column: see `read_conll`.

    Raises:
        ValueError: that is in doubt.
    """
    if os.fspath(path).lower().endswith(".ann"):
        raise ValueError(
            f"{path} has brat's positions of entities in another file, {os.fspath(path)[:-4]}.txt. "
            "Export the project as CoNLL, or write rows with `text` and `spans` in JSON lines."
        )
    has_names = any(isinstance(column, str) for column in (word_column, tag_column))
    if has_names or has_records(path):
        return find_fields(path, word_column, tag_column)
    return find_columns(path, _read_fields(path), word_column, tag_column)


def is_tagged(path: Path) -> bool:
    """Whether a text file has words with their tags, in columns or in rows with named fields.

    It has if its name ends with `.conll` or the like, or if its first lines are CoNLL-2012's or
    hold tags of entities.
    """
    name = os.fspath(path).lower().removesuffix(".gz")
    if name.endswith((".conll", ".conllu", ".bio", ".iob", ".iob2", ".bmes", ".bioes")):
        return True
    try:
        layout = tag_layout(path)
        if isinstance(layout, TagFields):
            return True
        rows = itertools.islice(_read_fields(path), LINES_LOOKED_AT)
        words = [fields for _, fields in rows if fields and len(fields) > 1]
    except ValueError:
        return False
    is_2012 = bool(words) and is_conll_2012(words[0])
    return is_2012 or (bool(words) and hold_entity_tags([fields[layout.tags] for fields in words]))


def _read_words(path, word_column, tag_column, may_lack_tags, label_names=None):
    """Yields `(place, word, tag)`; at the end of a sentence the word is `None`."""
    layout = tag_layout(path, word_column, tag_column)
    if isinstance(layout, TagFields):
        yield from read_tag_records(path, layout, label_names, may_lack_tags)
        return
    conllu, entity, skipped = is_conllu(path), None, int(layout.has_header)
    for line, fields in _read_fields(path):
        place = f"line {line}"
        if fields is None:
            entity = None
            yield place, None, None
        elif skipped:
            skipped -= 1
        elif len(fields) == 1 and may_lack_tags:
            yield place, fields[0], None
        elif not conllu or fields[0].isdigit():
            word, tag = _word_and_tag(path, line, fields, layout)
            if is_conll_2012(fields) and layout.tags == CONLL_2012_ENTITIES:
                tag, entity = _without_brackets(tag, entity)
            yield place, word, tag
        elif not re.fullmatch(r"\d+[-.]\d+", fields[0]):
            raise ValueError(
                f"{path}, line {line}: the first field of CoNLL-U is a word's number, or a "
                f"range such as 1-2. Received: {fields[0]!r}"
            )


def _without_brackets(tag, entity):
    """Returns the IOB2 tag of `(PERSON*`, `*` or `*)`, and the entity that the next word is in."""
    opened = re.match(r"\(([^()*]+)", tag)
    current = opened[1] if opened and entity is None else entity
    prefix = "B" if opened and entity is None else "I"
    closes = tag.endswith(")") and tag.count(")") >= tag.count("(")
    return f"{prefix}-{current}" if current else "O", None if closes else current


def _read_fields(path):
    """Yields `(line number, fields)`; at the end of a sentence the fields are `None`."""
    split, first = _find_separator(path)
    # In CoNLL-2012 the number of columns differs by sentence: each predicate has one.
    varies = is_conll_2012(first)
    for number, line in _numbered_lines(path):
        if _ends_sentence(line):
            yield number, None
            continue
        fields = split(line)
        if len(fields) == len(first) or (varies and is_conll_2012(fields)):
            yield number, fields
        elif not _is_comment(path, line):
            raise ValueError(
                f"{path}, line {number}: every word's line must have as many fields as the first, "
                f"{len(first)}. Received {len(fields)}: {fields}"
            )


def _find_separator(path):
    """Returns how to split lines, and the fields of the first that is not a comment."""
    for _, line in _numbered_lines(path):
        if not _ends_sentence(line) and not line.startswith("#"):
            split = _split_white_space if "\t" not in line else lambda line: line.split("\t")
            return split, split(line)
    raise ValueError(f"{path} must hold words. Received: none.")


def _check_words(path, sentences):
    """Refuses a file with texts instead of words, such as one for text classification."""
    words = [word for sentence in sentences for word in sentence]
    texts = [word for word in words if re.search(r"\S\s+\S", word)]
    if len(texts) > len(words) / 2:
        raise ValueError(
            f"{path} must hold a word and its tag per line. Received texts, such as "
            f"{texts[0][:60]!r}. Name the columns, from 0, by word_column and tag_column, or pass "
            "a file of tagged words."
        )


def _numbered_lines(path):
    for number, line in enumerate(read_lines(path), start=1):
        yield number, line.rstrip("\r\n")


def _is_comment(path, line):
    return line.startswith("#") if is_conllu(path) else bool(_COMMENT.match(line))


def _ends_sentence(line):
    return not line.strip(" \t") or line.startswith("-DOCSTART-")


def _split_white_space(line):
    # Not str.split(): words may hold U+3000 or U+00A0, which are not separators.
    return re.split("[ \t]+", line.strip(" \t"))


def _word_and_tag(path, line, fields, layout):
    fault = _fault(fields, layout.words, layout.tags)
    if fault:
        raise ValueError(f"{path}, line {line}: {fault}")
    return fields[layout.words], fields[layout.tags].strip()


def _fault(fields, word_column, tag_column):
    """Returns what is wrong with the fields of a line, `None` if they are a word and its tag."""
    for name, column in (("word_column", word_column), ("tag_column", tag_column)):
        if not -len(fields) <= column < len(fields):
            return f"there are {len(fields)} columns, numbered from 0. Received {name}={column}."
    if len(fields) == 1:
        return (
            "a line must hold a word and its tag, separated by a tab or a space. Received: "
            f"{fields[0]!r}"
        )
    if not fields[tag_column].strip():
        return f"the tag of {fields[word_column]!r} is empty."
    return None


def _has_segment_index(words):
    """Whether words end in digits that count characters, see `read_conll`."""
    digits = [[word[-1:] for word in sentence if len(word) > 1] for sentence in words]
    if any(
        len(x) < len(y) or not {*x} <= {*"0123456789"} for x, y in zip(digits, words, strict=True)
    ):
        return False
    pairs = [pair for row in digits for pair in zip(["9", *row], row, strict=False)]
    fitting = [now == "0" or int(now) == (int(before) + 1) % 10 for before, now in pairs]
    return sum(fitting) >= 0.9 * len(pairs)
