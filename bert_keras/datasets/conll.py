"""Column files of words and tags: CoNLL-2003, similar formats, and CoNLL-U."""

import dataclasses
import itertools
import os
import re
import warnings
from collections.abc import Sequence

from bert_keras.checks import check_not_empty
from bert_keras.datasets.files import read_lines
from bert_keras.datasets.labelled_texts import ExampleSet
from bert_keras.types import Path

# Columns of CoNLL-U: ID FORM LEMMA UPOS XPOS FEATS HEAD DEPREL DEPS MISC.
_CONLLU_WORD, _CONLLU_TAG = 1, 3
# Also `###MEDLINE:95369245` of JNLPBA, `#begin document` of CoNLL-2012 and `#sent_id=1`.
_COMMENT = re.compile(r"#([\s#]|$|begin |end |\w+ ?=)")
_ENTITY_TAG = re.compile("O|[BIESLUM]-.+")
_LINES_LOOKED_AT = 1000


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
    word_column: int | None = None,
    tag_column: int | None = None,
    segment_index: bool | None = None,
    may_lack_tags: bool = False,
) -> TaggedSentences:
    r"""Reads a column file: one word and its tags per line, and a blank line after each sentence.

    The same rules read CoNLL-2003, WNUT-17, the Broad Twitter Corpus, Wikigold, MSRA, People's
    Daily, Weibo and CoNLL-U:

    - Fields are separated by tabs if the first word's line has one, else by spaces and tabs.
    - A line of white space or one that begins with `-DOCSTART-` ends a sentence.
    - A line that begins with `#` and has as many fields as the first word's line is a word: tweets
      have `#\tO`. With another number of fields it is a comment if white space, another `#` or
      nothing follows (`# text = ...`), if it is `#begin` or `#end` of CoNLL-2012 or `#name=value`,
      or in CoNLL-U. Any other (`#London B-LOC` among tabs) is an error, since tweets are full
      of such words.
    - In CoNLL-U (by the name's ending, `.conllu`) the lines of multiword tokens (`1-2`) and of
      empty nodes (`8.1`) are skipped: their words are on lines of their own, or do not occur in
      the text.
    - If the first field of each line is the word's number in its sentence, the word is the
      second field and the tag the third, as in Universal NER (`.iob2`), if that marks entities.

    Words are kept as they are, with their white space (the Broad Twitter Corpus has `"ke s"`).
    Empty words are kept, since other tools count them too, and reported in a warning.

    Args:
        path: the file, plain or gzip.
        word_column: int, column of the words from 0. By default the first, with the exceptions
            above; in CoNLL-U the second.
        tag_column: int, column of the tags. By default the last, with the exceptions above; in
            CoNLL-U the fourth, the universal part of speech (4 is the language's own).
        segment_index: bool, whether each word ends in a digit that does not belong to it, the
            position of the character in its word (Weibo: `科0`). By default `True` if every word of
            the file has at least two characters and ends in a digit.
        may_lack_tags: bool, whether a file with a single column holds words to tag, or is an error.

    Returns:
        `TaggedSentences`.

    Raises:
        ValueError: a line has another number of fields than the first, an empty tag, or too few
            columns, or the file holds no words, or texts instead of words. The message names the
            file and the line.

    Example:
        ```python
        train = read_conll("wnut17train.conll")
        train.words[0][:2], train.tags[0][:2]  # (['@paulwalk', 'It'], ['O', 'O'])
        ```
    """
    sentences, empty_lines = [[]], []
    for line, word, tag in _read_words(path, word_column, tag_column, may_lack_tags):
        if word is None:
            sentences.append([])
            continue
        if not word.strip():
            empty_lines.append(line)
        sentences[-1].append((word, tag))
    sentences = [sentence for sentence in sentences if sentence]
    check_not_empty(sentences, f"{path} must hold words")
    if empty_lines:
        warnings.warn(
            f"{path}: {len(empty_lines)} words are empty (line {empty_lines[0]} is the first).",
            stacklevel=2,
        )
    words = [[word for word, _ in sentence] for sentence in sentences]
    _check_words(path, words)
    if _has_segment_index(words) if segment_index is None else segment_index:
        words = [[word[:-1] for word in sentence] for sentence in words]
    # Each line has as many fields as the first, so either all words have tags or none has one.
    if sentences[0][0][1] is None:
        return TaggedSentences(words)
    return TaggedSentences(words, [[tag for _, tag in sentence] for sentence in sentences])


def find_tag(
    path: Path, tag: str, word_column: int | None = None, tag_column: int | None = None
) -> int | None:
    """Returns the first line of a column file whose word has the given tag, `None` without one.

    Args:
        path: see `read_conll`.
        tag: str.
        word_column: see `read_conll`.
        tag_column: see `read_conll`.
    """
    words = _read_words(path, word_column, tag_column, may_lack_tags=True)
    return next((line for line, _, found in words if found == tag), None)


def tag_names(*parts: TaggedSentences | Sequence[Sequence[str]]) -> tuple[str, ...]:
    """Returns the tags that occur, `"O"` first and the others in alphabetical order.

    Args:
        parts: `TaggedSentences`, or lists of lists of str.

    Returns:
        Tuple of str: a tag's position is its number.
    """
    found = set()
    for part in parts:
        for tags in (part.tags or ()) if isinstance(part, TaggedSentences) else part:
            found.update(tags)
    return tuple(sorted(found, key=lambda tag: (tag != "O", tag)))


def _read_words(path, word_column, tag_column, may_lack_tags):
    """Yields `(line number, word, tag)`; at the end of a sentence the word is `None`."""
    is_conllu = _is_conllu(path)
    usual = (_CONLLU_WORD, _CONLLU_TAG) if is_conllu else (0, -1)
    if not is_conllu and word_column is None:
        usual = _numbered_columns(path, tag_column) or usual
    word_column = usual[0] if word_column is None else word_column
    tag_column = usual[1] if tag_column is None else tag_column
    for line, fields in _read_fields(path):
        if fields is None:
            yield line, None, None
        elif len(fields) == 1 and may_lack_tags:
            yield line, fields[0], None
        elif not is_conllu or fields[0].isdigit():
            yield line, *_word_and_tag(path, line, fields, word_column, tag_column)
        elif not re.fullmatch(r"\d+[-.]\d+", fields[0]):
            raise ValueError(
                f"{path}, line {line}: the first field of CoNLL-U is a word's number, or a "
                f"range such as 1-2. Received: {fields[0]!r}"
            )


def _read_fields(path):
    """Yields `(line number, fields)`; at the end of a sentence the fields are `None`."""
    split, num_fields = _find_columns(path)
    for number, line in _numbered_lines(path):
        if _ends_sentence(line):
            yield number, None
            continue
        fields = split(line)
        if len(fields) == num_fields:
            yield number, fields
        elif not _is_comment(path, line):
            raise ValueError(
                f"{path}, line {number}: every word's line must have as many fields as the first, "
                f"{num_fields}. Received {len(fields)}: {fields}"
            )


def _find_columns(path):
    """Returns how to split lines, and into how many fields, by the first that is not a comment."""
    for _, line in _numbered_lines(path):
        if not _ends_sentence(line) and not line.startswith("#"):
            split = _split_white_space if "\t" not in line else lambda line: line.split("\t")
            return split, len(split(line))
    raise ValueError(f"{path} must hold words. Received: none.")


def _numbered_columns(path, tag_column):
    """Returns the columns of word and tag if the first holds the words' numbers, else `None`."""
    number, place, columns = 0, None, None
    for line, fields in itertools.islice(_read_fields(path), _LINES_LOOKED_AT):
        number = 0 if fields is None else number + 1
        if fields and (len(fields) < 3 or fields[0] != str(number)):
            return None
        if fields and tag_column is None and not _ENTITY_TAG.fullmatch(fields[2]):
            place, columns = line, fields
    if place is None:
        return 1, 2
    raise ValueError(
        f"{path}, line {place}: the first column numbers the words, and the third is not the tag "
        f"of an entity. Received: {columns}. Name the columns, from 0, by word_column and "
        "tag_column."
    )


def _check_words(path, sentences):
    """Refuses a file with texts instead of words, as in text classification."""
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


def _is_conllu(path):
    return os.fspath(path).lower().removesuffix(".gz").endswith(".conllu")


def _is_comment(path, line):
    return line.startswith("#") if _is_conllu(path) else bool(_COMMENT.match(line))


def _ends_sentence(line):
    return not line.strip(" \t") or line.startswith("-DOCSTART-")


def _split_white_space(line):
    # Not str.split(): words may hold U+3000 or U+00A0, which are not separators.
    return re.split("[ \t]+", line.strip(" \t"))


def _word_and_tag(path, line, fields, word_column, tag_column):
    fault = _fault(fields, word_column, tag_column)
    if fault:
        raise ValueError(f"{path}, line {line}: {fault}")
    return fields[word_column], fields[tag_column].strip()


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
    return all(
        len(word) > 1 and word[-1] in "0123456789" for sentence in words for word in sentence
    )
