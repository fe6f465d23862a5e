"""Tagged sentences in rows with named fields: JSON, Parquet, and tables with a header.

A row is one of four things:

| row | fields | as in |
|---|---|---|
| a sentence | words, and a tag for each | `datasets`, run_ner.py |
| a text with spans | a text, and the characters of its entities | doccano, Label Studio, spaCy |
| words with spans | words, and the first and last word of its entities | GLiNER |
| a word | the sentence's number, the word, its tag | Kaggle, simpletransformers |
"""

import itertools
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from bert_keras.checks import check_not_empty, is_int, require
from bert_keras.datasets.files import check_at
from bert_keras.datasets.table import accepted_records, as_list, as_text, find_name, warn_of_rows
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


# What a row is, the names of its words and tags, and the forms that these have; no form stands for
# any. The last are words to tag.
_LAYOUTS = (
    ("sentence", WORD_NAMES, TAG_NAMES, "list empty", "list empty"),
    ("text", _TEXT_NAMES, _SPAN_NAMES, "text list", "spans empty"),
    ("spans", ("tokenized_text",), ("ner",), "list", "spans empty null"),
    ("sentence", _TEXT_NAMES, TAG_NAMES, "text", "list"),
    ("word", WORD_NAMES, TAG_NAMES, "", ""),
    ("sentence", WORD_NAMES, (), "list", ""),
)


def _has_form(value, forms):
    """Whether a field has one of the forms: a list, which may be written as text, a text, spans."""
    form = "text" if isinstance(value, str) else "null" if value is None else "spans"
    if isinstance(value, list) and not any(isinstance(x, (list, dict)) for x in value):
        form = "list" if value else "empty"
    if form == "text" and value.strip().startswith("["):
        form = "list"
    return form in forms.split() or not forms


class TagLayout(NamedTuple):
    """Where a file has words and tags.

    Args:
        kind: `"line"`, `"sentence"`, `"text"`, `"spans"` or `"word"`, what a row is: a word and its
            tags in columns, a sentence, a text with spans, words with spans, or a word with named
            fields.
        words: str, the field of the words, of the text, or of the word.
        tags: str, the field of the tags, or of the spans; `None` without one.
        sentence: str, the field of the sentence's number, if a row or a line is a word.
        has_header: bool, whether the first line names the columns.
    """

    kind: Literal["line", "sentence", "text", "spans", "word"]
    words: str
    tags: str | None
    sentence: str | None = None
    has_header: bool = False

    def __str__(self) -> str:
        words, tags = ("texts", "spans") if self.kind == "text" else ("words", "tags")
        tags = "no tags" if self.tags is None else f"{tags} in {self.tags!r}"
        of_sentence = f", sentences by {self.sentence!r}" if self.sentence else ""
        return f"{words} in {self.words!r}, {tags}{of_sentence}"


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
    place, record = next(accepted_records(path), ("", {}))
    header = [*check_not_empty(record, f"{path} must hold rows")]

    def fields_of(names, column):
        """Returns the fields that `column` gives, else those that have one of the names."""
        if is_int(column):
            return [x for n, x in enumerate(header) if column in (n, n - len(header))]
        wanted = names if column is None else (column,)
        return [header[place] for name in wanted for place in find_name(header, name)[:1]]

    for kind, word_names, tag_names, form, tag_form in _LAYOUTS:
        words = [x for x in fields_of(word_names, word_column) if _has_form(record[x], form)]
        tags = [x for x in fields_of(tag_names, tag_column) if _has_form(record[x], tag_form)]
        numbers = [x for x in fields_of(SENTENCE_NAMES, None) if x not in (*words, *tags)]
        if words and (tags or not tag_names) and (numbers or kind != "word"):
            sentence = numbers[0] if kind == "word" else None
            return TagLayout(kind, words[0], tags[0] if tags else tag_column, sentence)
    rule = "a row must have words and tags, a text and spans, or a word of a numbered sentence"
    advice = "Name the fields by word_column and tag_column. In Label Studio, export JSON-MIN."
    check_at(f"{path}, {place}", False, rule, header, advice)


def tag_sentences(
    path: Path,
    records: Iterable[tuple[str, Mapping[Any, Any]]],
    layout: TagLayout,
    label_names: Sequence[str] | None = None,
    may_lack_tags: bool = False,
) -> Iterator[list[tuple[str, str, str | None]]]:
    """Yields sentences, lists of `(place, word, tag)`; some may be empty.

    Args:
        path: see `read_conll`.
        records: the place and the fields of each row.
        layout: where these have words and tags.
        label_names: list of str, the names of tags that are numbers.
        may_lack_tags: bool, whether rows may have no tags.

    Raises:
        ValueError: a row does not fit. The message names the file and the place.
    """
    names = label_names or _names_in_parquet(path, layout.tags) or ()
    last, sentence, cut_places, count = None, [], [], 0
    for count, (place, record) in enumerate(records, 1):  # noqa: B007
        where = f"{path}, {place}"
        check_at(where, layout.words in record, f"a row must have {layout.words!r}", [*record])
        words, tags = record[layout.words], record.get(layout.tags)
        if layout.sentence is not None:
            words, tags = [as_text(words, where)], None if tags is None else [tags]
        elif layout.kind == "text":
            check_at(where, isinstance(words, str), "a text must be a str", words)
            spans = {*_spans_of_text(where, words, tags)}
            borders = {place for start, end, _ in spans for place in (start, end)}
            places = _split(words, borders)
            cut_places += [place] if len(places) > len(_split(words, ())) else []
            tags = _tags_of_spans(where, spans, [start for start, _ in places])
            words = [words[start:end] for start, end in places]
        else:
            words = _as_words(where, words)
            if layout.kind == "spans":
                spans = _spans_of_words(where, words, tags)
                tags = _tags_of_spans(where, spans, range(len(words)))
            tags = as_list(tags)
        advice = "Name their field by tag_column."
        check_at(where, tags is not None or may_lack_tags, "there are no tags", words, advice)
        fits = tags is None or (isinstance(tags, list) and len(tags) == len(words))
        check_at(where, fits, "each word needs one tag", {"words": words, "tags": tags})
        tags = [tags and _tag_name(where, tag, names) for tag in tags or [None] * len(words)]
        rows = [(place, word, tag) for word, tag in zip(words, tags, strict=True)]
        if layout.sentence is None:
            yield rows
            continue
        number = record.get(layout.sentence)
        if number not in (None, "", last):
            yield sentence
            last, sentence = number, []
        sentence += rows
    yield sentence
    warn_of_rows(path, cut_places, count, "whose entities begin or end inside a word")


# Values


def _as_words(where, value):
    value = as_list(value)
    if isinstance(value, str):
        return value.split()
    check_at(where, isinstance(value, list), "words must be a list", value)
    return [as_text(word, where) for word in value]


def _tag_name(where, tag, names):
    """Returns a tag's name."""
    if is_int(tag):
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


def _tags_of_spans(where, spans, starts):
    """Returns the IOB2 tags of words.

    Args:
        where: str, the file and the place, for messages.
        spans: `(start, end, type)` of each entity; equal ones are one.
        starts: where each word begins, counted like the spans.
    """
    spans = sorted({*spans})
    rule = "a word can have one tag, so entities must not overlap"
    for one, other in itertools.pairwise(spans):
        check_at(where, one[1] <= other[0], rule, (one, other), "Leave one out.")
    span_at, tags, before = {x: span for span in spans for x in range(*span[:2])}, [], None
    for start in starts:
        span = span_at.get(start)
        tags.append(f"{'I' if span == before else 'B'}-{span[2]}" if span else "O")
        before = span
    return tags


def _is_span(value):
    """Whether a value is a list of two numbers and a type."""
    is_list = isinstance(value, list) and len(value) == 3 and all(map(is_int, value[:2]))
    return is_list and isinstance(value[2], str) and bool(value[2].strip())


def _spans_of_words(where, words, entities):
    """Returns the spans of entities, of which GLiNER names the first and last word."""
    rule = "an entity must be a list of the numbers of its first and last word, and a type"
    for entity in entities if isinstance(entities, list) else [entities]:
        fits = _is_span(entity) and 0 <= entity[0] <= entity[1] < len(words)
        check_at(where, fits, rule, entity)
    return [(first, last + 1, kind) for first, last, kind in entities]


def _spans_of_text(where, text, spans):
    """Yields `(start, end, type)` of each span of a text: a list of the three, or an object."""
    rule = 'a span must be a start, an end and a type, [0, 2, "ORG"]'
    advice = "Offsets count characters from 0, and the end is the character after the last."
    for span in spans or [] if isinstance(spans, list) else [spans]:
        written = None
        if isinstance(span, dict):
            written, fields = span.get("text"), (_START, _END, _TYPE)
            span = [next((span[key] for key in keys if key in span), None) for keys in fields]
            span[2:] = span[2] if isinstance(span[2], list) else span[2:]
        check_at(where, _is_span(span), rule, span)
        start, end, kind = span
        found = text[start:end] if 0 <= start < end <= len(text) else ""
        stands = f"{kind} must stand at the characters {start} to {end} of a text of {len(text)}"
        fits = found.strip() and written in (None, found)
        check_at(where, fits, stands, written or found, advice)
        yield start, end, kind.strip()


def _split(text, borders):
    """Returns `(start, end)` of each word: at white space, punctuation and the borders.

    In a script without spaces, each character is a word.
    """
    ids, number = [], 0
    for place, character in enumerate(text):
        continues_word = character.isalnum() and place > 0 and text[place - 1].isalnum()
        number += place in borders or not continues_word
        ids.append(number)
    offsets = [(place, place + 1) for place in range(len(text))]
    return find_words(text, number_words(text, ids, offsets), offsets) if text else []
