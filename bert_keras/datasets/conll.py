"""Tagged sentences in files: CoNLL's column files, and rows with named fields."""

import collections
import dataclasses
import itertools
import os
import re
from collections.abc import Sequence

from bert_keras.checks import check_not_empty
from bert_keras.datasets.files import check_at, read_lines
from bert_keras.datasets.label_parsing import FEWEST_VALUES, do_recur, remark_on_names
from bert_keras.datasets.labelled_texts import ExampleSet
from bert_keras.datasets.table import accepted_records, find_name, kind_of, warn_of_rows
from bert_keras.datasets.tag_records import (
    SENTENCE_NAMES,
    TAG_NAMES,
    WORD_NAMES,
    TagLayout,
    find_fields,
    tag_sentences,
)
from bert_keras.types import Path

# Such as `# text`, `###MEDLINE:95369245` (JNLPBA), `#sent_id=1`.
_COMMENT = re.compile(r"#([\s#]|$|\w+ ?=)")
_ENDINGS = (".conll", ".conllu", ".bio", ".iob", ".iob2", ".bmes", ".bioes", ".ann")
_LINES_LOOKED_AT = 1000
_NUMBER = re.compile(r"\d+([-.]\d+)?")  # Of a word, or of its sentence and of the word.
_ENTITY_TAG = re.compile("O|[BIESLUM][-_].+")
_NO_NUMBERS = "a column must hold words, which vary, not numbers of words"
_BLANK_LINES = "blank lines"
_ADVICE = "Name the columns, from 0, by word_column and tag_column."


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
    may_lack_tags: bool = False,
    label_names: Sequence[str] | None = None,
) -> TaggedSentences:
    r"""Reads tagged sentences: a column file, or rows with named fields.

    A column file has one word and its tags per line, and a blank line after each sentence. The
    same rules read CoNLL-2003, WNUT-17, the Broad Twitter Corpus, Wikigold, MSRA,
    People's Daily, Weibo and CoNLL-U:

    - Fields are separated by tabs if the first word's line has one, else by spaces and tabs.
    - A line of white space or one that begins with `-DOCSTART-` ends a sentence.
    - A line that begins with `#` and has as many fields as the first word's line is a word: tweets
      have `#\tO`. With another number of fields it is a comment if white space, another `#` or
      nothing follows the `#` (`# text = ...`), if it is `#name=value`, or if the file is CoNLL-U.
      Anything else (`#London B-LOC` in a file with tabs)
      is an error, since tweets are full of such words.
    - In CoNLL-U (a name that ends in `.conllu`) the lines of multiword tokens (`1-2`) and of empty
      nodes (`8.1`) are skipped: the words of the former are on lines of their own, and the latter
      do not occur in the text.
    - Without `word_column` and `tag_column` the word is the first field and the tag the last,
      unless a header names them. If the first 1,000 lines show otherwise, as in Universal NER and
      MIT's films, that is an error, which names these arguments.

    Rows with named fields (JSON, JSON lines, Parquet, CSV and Excel with a header) are sentences
    (`tokens`, `ner_tags`; GLiNER's `tokenized_text`, `ner`), texts with the spans of their entities
    (doccano, Label Studio, spaCy), or words with the number of their sentence (Kaggle). Spans
    become IOB2 tags of words, which white space, punctuation and the borders of entities separate.

    If every word of the file has at least two characters and ends in a digit, and nine in ten
    digits are 0 or one more than the digit before, the digits count characters, as in Weibo's
    `科0`, and do not belong to the words.

    Words are kept as they are, with their white space (the Broad Twitter Corpus has `"ke s"`).
    Empty words are kept, since other tools count them too, and reported in a warning.

    Args:
        path: the file, plain or gzip.
        word_column: int, the column of the words from 0; or str, the name of the field.
        tag_column: int, the column of the tags; or str. In CoNLL-U the default is the universal
            part of speech (4 is the language's own).
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
    layout = tag_layout(path, word_column, tag_column)
    records = _records_of_lines(path, layout) if layout.kind == "line" else accepted_records(path)
    found = tag_sentences(path, records, layout, label_names, may_lack_tags)
    found = check_not_empty([*filter(None, found)], f"{path} must hold words")
    empty = [place for sentence in found for place, word, _ in sentence if not word.strip()]
    warn_of_rows(path, empty, sum(map(len, found)), "with an empty word")
    words, tags = ([[row[part] for row in sentence] for sentence in found] for part in (1, 2))
    _check_words(path, words, tags)
    if _has_segment_index(words):
        words = [[word[:-1] for word in sentence] for sentence in words]
    has_tags = [None not in sentence for sentence in tags]
    untagged = [x for x, y in zip(words, has_tags, strict=True) if not y]
    rule = "either all sentences have tags or none has"
    check_at(path, not untagged or not any(has_tags), rule, untagged[:1])
    return TaggedSentences(words, tags if all(has_tags) else None)


def tag_names(*examples: TaggedSentences | Sequence[Sequence[str]]) -> tuple[str, ...]:
    """Returns the tags that occur, `"O"` first and the others in alphabetical order.

    Args:
        examples: `TaggedSentences`, or lists of lists of str.

    Returns:
        Tuple of str: a tag's position is its number.
    """
    sentences = itertools.chain(*(getattr(rows, "tags", rows) or () for rows in examples))
    found = {*itertools.chain(*sentences)}
    return tuple(sorted(found, key=lambda tag: (tag != "O", tag)))


def tag_layout(
    path: Path, word_column: str | int | None = None, tag_column: str | int | None = None
) -> TagLayout:
    """Returns where a file has its words and tags; `str` of it says so in words.

    Args:
        path: see `read_conll`.
        word_column: see `read_conll`.
        tag_column: see `read_conll`.

    Raises:
        ValueError: that is in doubt.
    """
    is_brat, advice = str(path).lower().endswith(".ann"), "Its tools/anntoconll.py writes CoNLL."
    check_at(path, not is_brat, "brat's own format is not read", ".ann", advice)
    has_names = any(isinstance(column, str) for column in (word_column, tag_column))
    if has_names or kind_of(path) != "tsv":
        return find_fields(path, word_column, tag_column)
    return _find_columns(path, _read_fields(path), word_column, tag_column)


def is_tagged(path: Path) -> bool:
    """Whether a text file has words with their tags, in columns or in rows with named fields.

    It has if its name ends with `.conll` or the like, or if its first lines hold tags of entities.
    """
    if os.fspath(path).lower().removesuffix(".gz").endswith(_ENDINGS):
        return True
    try:
        layout = tag_layout(path)
        rows = _records_of_lines(path, layout) if layout.kind == "line" and layout.tags else ()
        tags = [record[layout.tags] for _, record in itertools.islice(rows, _LINES_LOOKED_AT)]
    except ValueError:
        return False
    return layout.kind != "line" or (bool(tags) and _hold_entity_tags(tags))


def _records_of_lines(path, layout):
    """Yields the place and the fields of each word by their numbers, and its sentence's number."""
    number, is_conllu = 0, _is_conllu(path)
    rule = "the first field of CoNLL-U is a word's number, or a range such as 1-2"
    for line, fields in _read_fields(path)[layout.has_header :]:
        if fields is None:
            number += 1
        elif not is_conllu or fields[0].isdigit():
            names = (f"column {place}" for place in range(len(fields)))
            yield f"line {line}", {_BLANK_LINES: number, **dict(zip(names, fields, strict=True))}
        else:
            is_range = re.fullmatch(r"\d+[-.]\d+", fields[0])
            check_at(f"{path}, line {line}", is_range, rule, fields[0])


def _read_fields(path):
    """Returns `(line number, fields)` of each line; at the end of a sentence fields are `None`."""
    lines = [(n, line.rstrip("\r\n")) for n, line in enumerate(read_lines(path), 1)]
    is_end = re.compile(r"[ \t]*\Z|-DOCSTART-").match
    first = next((line for _, line in lines if line[:1] != "#" and not is_end(line)), "")
    check_not_empty(first, f"{path} must hold words")
    # Not str.split(): words may hold U+3000 or U+00A0, which are not separators.
    separator, blanks = ("\t", "") if "\t" in first else ("[ \t]+", " \t")
    size, rows = len(re.split(separator, first.strip(blanks))), []
    is_comment = re.compile("#").match if _is_conllu(path) else _COMMENT.match
    rule = f"every word's line must have as many fields as the first, {size}"
    for number, line in lines:
        fields = None if is_end(line) else re.split(separator, line.strip(blanks))
        if fields is None or len(fields) == size:
            rows.append((number, fields))
        else:
            check_at(f"{path}, line {number}", is_comment(line), rule, fields)
    return rows


def _is_conllu(path):
    return os.fspath(path).lower().removesuffix(".gz").endswith(".conllu")


# Which columns hold words and tags


def _find_columns(path, rows, word_column, tag_column):
    """Returns where a column file has words and tags, from its name and its first lines."""
    rows = [fields for _, fields in rows[:_LINES_LOOKED_AT] if fields is not None]
    size = len(rows[0])
    if size == 1:
        return TagLayout("line", "column 0", None, _BLANK_LINES)
    names = (WORD_NAMES, TAG_NAMES, SENTENCE_NAMES)
    *found, number = [next(iter(find_name(rows[0], *wanted)), None) for wanted in names]
    has_header = None not in found
    sentence = f"column {number}" if has_header and number is not None else _BLANK_LINES
    if not has_header:
        # CoNLL-U: ID FORM LEMMA UPOS XPOS FEATS HEAD DEPREL DEPS MISC.
        found = (1, 3) if _is_conllu(path) else (0, size - 1)
    columns = [y if x is None else x for x, y in zip((word_column, tag_column), found, strict=True)]
    rule = f"there are {size} columns, numbered from 0"
    for column in columns:
        check_at(path, -size <= column < size, rule, column, _ADVICE)
    values = [*zip(*rows, strict=True)]
    if word_column is None and not has_header:
        tags = [place for place, column in enumerate(values) if _hold_entity_tags(column)]
        fits = tag_column is not None or not tags or (size - 1 in tags and 0 not in tags)
        rule = f"words must be first and tags last, but the columns {tags} hold tags"
        check_at(path, fits or _is_conllu(path), rule, rows[0], _ADVICE)
        words = values[columns[0]]
        are_numbers = size > 2 and all(map(_NUMBER.fullmatch, words))
        check_at(path, not are_numbers, _NO_NUMBERS, words[:5], _ADVICE)
    words, tags = (f"column {column % size}" for column in columns)
    return TagLayout("line", words, tags, sentence, has_header)


def _hold_entity_tags(column):
    """Whether a column holds tags of entities."""
    if all(_ENTITY_TAG.fullmatch(value) for value in column):
        return True
    # Tags may be types without a prefix. Then "O" is the most frequent, as in any text.
    return collections.Counter(column).most_common(1)[0][0] == "O"


def _check_words(path, words, tags):
    """Refuses a file with texts instead of words, or without tags; remarks on odd tags."""
    words, tags = ([x for row in rows for x in row if x is not None] for rows in (words, tags))
    texts = [word for word in words if re.search(r"\S\s+\S", word)]
    rule = "each line must hold a word and its tag"
    check_at(path, len(texts) <= len(words) / 2, rule, texts[:1], _ADVICE)
    do_vary = len({*words}) > 1 and 4 * len({*words}) >= len({*tags})
    check_at(path, len(words) < FEWEST_VALUES or do_vary, _NO_NUMBERS, words[:5], _ADVICE)
    rule = "there must be a column of tags, whose values recur"
    check_at(path, do_recur(tags), rule, tags[:5], _ADVICE)
    remark_on_names(path, tags, may_be_joined=False)


def _has_segment_index(words):
    """Whether words end in digits that count characters, see `read_conll`."""
    if not all(re.fullmatch("(?s).+[0-9]", word) for sentence in words for word in sentence):
        return False
    digits = [[word[-1] for word in sentence] for sentence in words]
    pairs = [pair for row in digits for pair in zip(["9", *row], row, strict=False)]
    fitting = [now == "0" or int(now) == (int(before) + 1) % 10 for before, now in pairs]
    return sum(fitting) >= 0.9 * len(pairs)
