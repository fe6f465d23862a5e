"""Tagged sentences in rows with named fields: JSON, Parquet, and tables with a header.

A row is one of four things:

| row | fields | as in |
|---|---|---|
| a sentence | words, and a tag for each | `datasets`, run_ner.py |
| a text with spans | a text, and the characters of its entities | doccano, Label Studio, spaCy |
| words with spans | words, and the first and last word of its entities | GLiNER |
| a word | the sentence's number, the word, its tag | Kaggle, simpletransformers |
"""

import ast
import contextlib
import itertools
import json
import os
import re
import warnings
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from bert_keras.checks import check_not_empty, is_int, require
from bert_keras.datasets.files import check_at, read_lines, read_text
from bert_keras.datasets.table import (
    as_text,
    find_name,
    kind_of,
    read_records,
    without_rejected,
)
from bert_keras.tokenizers.words import find_words, number_words
from bert_keras.types import Path

# Names of columns in published sets and in other tools' files, the likeliest first.
SENTENCE_NAMES = ("sentence #", "sentence_id", "sentence_idx", "sent_id", "sentence")
WORD_NAMES = ("tokens", "words", "word", "token", "form")
TAG_NAMES = ("ner_tags", "ner", "tags", "labels", "tag", "label", "upos", "pos_tags", "pos")
_TEXT_NAMES = ("text", "data", "sentence", "content")
_SPAN_NAMES = ("label", "labels", "entities", "spans", "annotations")
# The keys of a span that is a JSON object.
_START = ("start_offset", "start", "begin")
_END = ("end_offset", "end", "stop")
_TYPE = ("label", "labels", "type", "entity", "tag", "entity_group")


class TagLayout(NamedTuple):
    """Where a file has words and tags.

    Args:
        kind: `"line"`, `"sentence"`, `"text"`, `"spans"` or `"word"`, what a row is: a word and its
            tags in columns, a sentence, a text with spans, words with spans, or a word with named
            fields.
        words: str, the field of the words, of the text, or of the word; int, the column.
        tags: str, the field of the tags, or of the spans; int, the column; `None` without one.
        sentence: str, the field of the sentence's number, if a row is a word.
        has_header: bool, whether the first line names the columns.
    """

    kind: str
    words: str | int
    tags: str | int | None
    sentence: str | None = None
    has_header: bool = False

    def __str__(self) -> str:
        words = "texts" if self.kind == "text" else "words"
        tags = "spans" if self.kind in ("text", "spans") else "tags"
        if self.kind == "line":
            return f"words in column {self.words}, tags in column {self.tags}, counted from 0"
        of_sentence = f", sentences by {self.sentence!r}" if self.sentence else ""
        return f"{words} in {self.words!r}, {tags} in {self.tags!r}{of_sentence}"


def has_records(path: Path) -> bool:
    """Whether a file of tagged words has rows with named fields, from its name and first line."""
    if kind_of(path) != "tsv" or _is_brat(path):
        return True
    first = next((line for line in read_lines(path) if line.strip()), "").strip()
    rule = "a file of JSON lines must have a name that ends in .jsonl"
    check_at(path, not first.startswith('{"'), rule, first)
    names = first.replace('"', "").split("\t")
    return all(find_name(names, *wanted) for wanted in (SENTENCE_NAMES, WORD_NAMES, TAG_NAMES))


def find_fields(
    path: Path, word_column: str | int | None = None, tag_column: str | int | None = None
) -> TagLayout:
    """Returns which fields of a file's rows hold words and tags.

    Args:
        path: see `read_conll`.
        word_column: str, or int from 0, or `None` to find out by name and content.
        tag_column: str, or int from 0, or `None` to find out by name and content.

    Raises:
        ValueError: there are no such fields. The message lists the fields of the first row.
    """
    place, record = next(_records(path), ("", {}))
    check_not_empty(record, f"{path} must hold rows")
    names = list(record)

    def find_field(wanted, column, fits=lambda value: True):
        """Returns the field that `column` gives, else the first of those wanted that fits."""
        if is_int(column) and -len(record) <= column < len(record):
            return names[column]
        if column is not None:
            places = find_name(names, column)
            return names[places[0]] if len(places) == 1 else None
        found = (names[place] for name in wanted for place in find_name(names, name)[:1])
        return next((name for name in found if fits(record[name])), None)

    words = find_field(WORD_NAMES, word_column, _is_list)
    tags = find_field(TAG_NAMES, tag_column, _is_list)
    text = find_field(_TEXT_NAMES, word_column, lambda value: isinstance(value, str))
    spans = find_field(_SPAN_NAMES, tag_column, _are_spans)
    if words and _is_list(record[words]):
        return TagLayout("sentence", words, tags or tag_column)
    if text and spans and _are_spans(record[spans]):
        return TagLayout("text", text, spans)
    gliner = [*map(find_field, (("tokenized_text",), ("ner",)), (word_column, tag_column))]
    is_unnamed = word_column is None and tag_column is None
    if is_unnamed and None not in gliner and _are_lists(record[gliner[1]]):
        return TagLayout("spans", *gliner)
    if text and tags and _is_list(record[tags]):
        return TagLayout("sentence", text, tags)
    word, tag = find_field(WORD_NAMES, word_column), find_field(TAG_NAMES, tag_column)
    sentence = find_field(SENTENCE_NAMES, None)
    if word and tag and sentence and sentence not in (word, tag):
        return TagLayout("word", word, tag, sentence)
    rule = (
        "a row must have words and their tags (`tokens`, `ner_tags`), a text and the spans of its "
        "entities (`text`, `label`), or one word of a numbered sentence"
    )
    advice = "Name the fields to read by word_column and tag_column."
    check_at(f"{path}, {place}", False, rule, [*record], advice)


def tag_sentences(
    path: Path,
    fields: TagLayout,
    label_names: Sequence[str] | None = None,
    may_lack_tags: bool = False,
) -> Iterator[list[tuple[str, str, str | None]]]:
    """Yields sentences, lists of `(place, word, tag)`.

    Args:
        path: see `read_conll`.
        fields: the result of `find_fields`.
        label_names: list of str, the names of tags that are numbers.
        may_lack_tags: bool, whether rows may have no tags.

    Raises:
        ValueError: a row does not fit. The message names the file and the place.
    """
    names = label_names or _names_in_parquet(path, fields.tags)
    last, sentence, cut_places = None, [], []
    for place, record in _records(path):
        where = f"{path}, {place}"
        check_at(where, fields.words in record, f"a row must have {fields.words!r}", [*record])
        words, tags = record[fields.words], record.get(fields.tags)
        if fields.kind == "word":
            number = record.get(fields.sentence)
            if last is not None and number not in (None, "", last):
                yield sentence
                sentence = []
            last = last if number in (None, "") else number
            sentence.append((place, as_text(words, where), _tag_name(where, tags, names)))
            continue
        if fields.kind == "text":
            words, tags, num_cut = _tag_words(where, words, tags)
            cut_places += [place] * num_cut
        elif fields.kind == "spans":
            words = _as_words(where, words)
            tags = _tags_of_gliner(where, words, tags)
        else:
            words, tags = _as_words(where, words), as_list(where, tags)
        has_tags, advice = tags is not None or may_lack_tags, "Name their field by tag_column."
        check_at(where, has_tags, "there are no tags", [*record], advice)
        fits = tags is None or len(tags) == len(words)
        check_at(where, fits, "each word needs one tag", {"words": words, "tags": tags})
        tags = [tags and _tag_name(where, tag, names) for tag in tags or [None] * len(words)]
        yield [(place, word, tag) for word, tag in zip(words, tags, strict=True)]
    yield sentence
    if cut_places:
        warnings.warn(
            f"{path}: {len(cut_places)} borders of entities lie inside a word ({cut_places[0]} is "
            "the first). Offsets count characters from 0; an end is the character after the last.",
            stacklevel=2,
        )


def _records(path):
    """Yields the place and the fields of each row."""
    if _is_brat(path):
        yield from _records_of_brat(path)
        return
    yield from without_rejected(path, read_records(path))


def _tags_of_gliner(where, words, entities):
    """Returns the tags of words from entities, of which GLiNER names the first and last word."""
    rule = "entities must be a list of lists"
    check_at(where, entities is not None and _are_lists(entities), rule, entities)
    tags = ["O"] * len(words)
    for number, entity in enumerate(entities):
        is_triple = len(entity) == 3 and isinstance(entity[2], str)
        fits = is_triple and all(map(is_int, entity[:2])) and 0 <= entity[0] <= entity[1]
        rule = "an entity must have the numbers of its first and last word, and a type"
        check_at(where, fits and entity[1] < len(words), rule, entity)
        if entity in entities[:number]:
            continue
        first, last, kind = entity
        rule = "a word can have one tag, so entities must not overlap"
        check_at(where, {*tags[first : last + 1]} == {"O"}, rule, entity, "Leave one out.")
        tags[first : last + 1] = [f"B-{kind}"] + [f"I-{kind}"] * (last - first)
    return tags


def _is_brat(path):
    return os.fspath(path).lower().endswith(".ann")


def _records_of_brat(path):
    """Yields the lines of a text beside brat's file, with the spans of their entities."""
    text, spans = read_text(f"{os.fspath(path)[:-4]}.txt"), []
    for number, line in enumerate(read_lines(path), 1):
        if found := re.match(r"T\S*\t(\S+) (\d+(?: \d+;\d+)* \d+)\t", line):
            start, *between, end = map(int, re.findall(r"\d+", found[2]))
            gaps = zip(between[::2], between[1::2], strict=True)
            fits = end <= len(text) and not any(text[left:right].strip() for left, right in gaps)
            rule = "an entity must be one stretch of the text"
            check_at(f"{path}, line {number}", fits, rule, line.strip(), "Leave it out.")
            spans.append((start, end, found[1]))
    begin = 0
    for number, match in enumerate(re.finditer("\n|$", text), 1):
        place = match.start()
        if any(start <= place < end for start, end, _ in spans):
            continue  # An entity goes on in the next line.
        inside = [[x - begin, y - begin, kind] for x, y, kind in spans if begin <= x <= place]
        if text[begin:place].strip():
            yield f"line {number}", {"text": text[begin:place], "spans": inside}
        begin = match.end()


# Values


def as_list(where: str, value: Any) -> Any:
    """Returns the list that a cell of text holds; returns anything else unchanged.

    Args:
        where: str, the file and the place, for the message.
        value: the value of a field.

    Raises:
        ValueError: the text begins like a list and is none.
    """
    if not isinstance(value, str) or not value.strip().startswith("["):
        return value
    found = None
    with contextlib.suppress(ValueError, SyntaxError, RecursionError, MemoryError):
        try:  # JSON first: in it, unlike in Python, two escapes may stand for one character.
            found = json.loads(value)
        except ValueError:
            # Python would join the neighbours in `['a' 'b']`, as NumPy writes arrays.
            if not re.search(r"""['"]\s+['"]""", value):
                found = ast.literal_eval(value.strip())
    rule = "a list in a cell must be written as Python or JSON writes it, ['EU', 'rejects']"
    check_at(where, isinstance(found, list), rule, value)
    return found


def _is_list(value):
    """Whether a field may hold words or tags: a list without lists, or one written as text."""
    if isinstance(value, str):
        return value.strip().startswith("[")
    return isinstance(value, list) and all(isinstance(x, (str, int, float)) for x in value)


def _are_lists(value):
    """Whether a field may hold GLiNER's entities: lists, none, or null."""
    return value is None or (isinstance(value, list) and all(isinstance(x, list) for x in value))


def _are_spans(value):
    parts = value if isinstance(value, list) else [value]
    return all(isinstance(span, (list, dict)) for span in parts)


def _as_words(where, value):
    value = as_list(where, value)
    if isinstance(value, str):
        return value.split()
    check_at(where, isinstance(value, list), "words must be a list", value)
    return [as_text(word, where) for word in value]


def _tag_name(where, tag, names):
    """Returns a tag's name."""
    if is_int(tag):
        names = names or ()
        advice = "Pass the names in their order: --label_names O,B-PER,..., or label_names=[...]."
        rule = f"tags that are numbers need names, and there are {len(names)} label_names"
        check_at(where, 0 <= tag < len(names), rule, tag, advice)
        return names[tag]
    check_at(where, isinstance(tag, str) and tag.strip(), "a tag must be a str", tag)
    return tag.strip()


def _names_in_parquet(path, column):
    """Returns the names of numbered tags that `datasets` wrote to a Parquet file, or `None`."""
    if not str(path).lower().endswith(".parquet"):
        return None
    schema = require("pyarrow.parquet", f"read {path}").read_schema(path)
    try:
        feature = json.loads(schema.metadata[b"huggingface"])["info"]["features"][column]
        return feature.get("feature", feature)["names"]
    except (KeyError, TypeError, ValueError, AttributeError):
        return None


# Spans of entities as tags of words


def _tag_words(where, text, spans):
    """Returns the words of a text, their IOB2 tags, and how many borders of entities cut a word.

    Words are split at white space and punctuation, and where an entity begins or ends. In a script
    without spaces, each character is a word.
    """
    check_at(where, isinstance(text, str), "a text must be a str", text)
    spans = sorted({_checked_span(where, text, span) for span in _read_spans(spans)})
    rule = "a word can have one tag, so entities must not overlap"
    for (start, end, kind), (second, last, other) in itertools.pairwise(spans):
        both = (text[start:end], kind), (text[second:last], other)
        check_at(where, end <= second, rule, both, "Leave one out.")
    places = _split(text, {place for start, end, _ in spans for place in (start, end)})
    num_cut = len(places) - len(_split(text, ())) if spans else 0
    span_at, tags = {x: span for span in spans for x in range(*span[:2])}, []
    for start, _ in places:
        first, _, kind = span_at.get(start, (start, None, None))
        begins = not text[first:start].strip()
        tags.append(f"{'B' if begins else 'I'}-{kind}" if kind else "O")
    return [text[start:end] for start, end in places], tags, num_cut


def _split(text, borders):
    """Returns `(start, end)` of each word; words end at the given borders too."""
    ids, number = [], 0
    for place, character in enumerate(text):
        continues_word = character.isalnum() and place > 0 and text[place - 1].isalnum()
        number += place in borders or not continues_word
        ids.append(number)
    offsets = [(place, place + 1) for place in range(len(text))]
    return find_words(text, number_words(text, ids, offsets), offsets) if text else []


def _read_spans(spans):
    """Yields `(start, end, type, text)` of each span, unchecked; `None` for what it lacks."""
    for span in spans or [] if isinstance(spans, list) else [spans]:
        if isinstance(span, dict):
            start, end, kind = (
                next((span[key] for key in keys if key in span), None)
                for keys in (_START, _END, _TYPE)
            )
            kind = kind[0] if isinstance(kind, list) and len(kind) == 1 else kind
            yield start, end, kind, span.get("text")
        else:
            is_triple = isinstance(span, list) and len(span) == 3
            yield (*span, None) if is_triple else (span, None, None, None)


def _checked_span(where, text, span):
    start, end, kind, written = span
    fits = is_int(start) and is_int(end) and isinstance(kind, str) and kind.strip()
    check_at(where, fits, 'a span must be a start, an end and a type, [0, 2, "ORG"]', span[:3])
    found = text[start:end] if 0 <= start < end <= len(text) else ""
    fits = found.strip() and written in (None, found)
    rule = f"{written or 'an entity'!r} ({kind}) must stand at the characters {start} to {end}"
    advice = "Offsets count characters from 0, and the end is the character after the last."
    check_at(where, fits, f"{rule} of a text of {len(text)}", found, advice)
    return start, end, kind.strip()
