"""Question answering sets: SQuAD's JSON format, and rows of a question, a context and answers."""

import dataclasses
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from bert_keras.checks import check_not_empty, is_int
from bert_keras.datasets.files import check_at, read_lines
from bert_keras.datasets.table import kind_of, read_records, with_fields
from bert_keras.tasks.question_examples import Answer, QuestionExample
from bert_keras.types import Path

# The fields of rows, of contexts and of articles. Without one of these layouts, names are read in
# any case and form.
_LAYOUTS = (
    ("question", "context", "answers"),
    ("question", "context", "answer_text", "answer_start"),
    ("question", "context", "answer", "answer_start"),
    ("context", "qas"),
    ("paragraphs",),
    ("question", "context", "answers", "is_impossible"),
)
# How tables write `is_impossible`.
_FLAGS = {"true": True, "1": True, "false": False, "0": False, "": False}


class AnswerMismatch(NamedTuple):
    """An answer that is not in the context at its start, where `found` is instead."""

    question_id: str
    text: str
    start: int
    found: str


class QuestionSet(NamedTuple):
    """The result of `read_squad`: a list of `QuestionExample` and one of `AnswerMismatch`."""

    examples: list[QuestionExample]
    mismatches: list[AnswerMismatch]


def read_squad(path: Path) -> QuestionSet:
    """Reads questions on contexts and checks every answer against its span.

    The layouts are SQuAD's JSON (SQuAD 1.1 and 2.0, CMRC 2018, DRCD); a list of its articles or of
    its contexts alone; MRQA's contexts in lines; and rows with `question`, `context`, and `answers`
    as `datasets` has them, or `answer_text` and `answer_start`, in JSON, JSON lines, Parquet, Excel
    or CSV.

    Answers that are not at their start, 200 of the 9,657 in CMRC 2018's dev file, are reported in
    `mismatches`. They stay in `answers`, since the official scores compare texts, but not in
    `QuestionExample.spans`, which training uses. The context is not searched for them: the same
    text elsewhere may be another answer.

    In a file with answers, a row without any is an impossible question if it has a field for them:
    `answers` or `answer_start`.

    Args:
        path: the file, plain or gzip.

    Returns:
        `QuestionSet(examples, mismatches)`.

    Raises:
        ValueError: the file is not in one of these layouts, an id occurs twice, or a context is
            blank. The message names the file and the place in it.

    Example:
        ```python
        examples, mismatches = read_squad("cmrc2018_dev.json")
        len(examples), len(mismatches)  # (3219, 200)
        ```

    Reference: Rajpurkar et al., "SQuAD: 100,000+ Questions for Machine Comprehension of Text",
    EMNLP 2016, https://arxiv.org/abs/1606.05250
    """
    examples, mismatches, ids, unanswered = [], [], set(), []
    for place, context, record in _questions(path):
        example = _example(f"{path}, {place}", context, record)
        check_at(f"{path}, {place}", example.id not in ids, "an id must occur once", example.id)
        ids.add(example.id)
        for answer in example.answers:
            if not answer.stands_in(context):
                text, start = answer
                found = context[start : start + len(text)] if start >= 0 else ""
                mismatches.append(AnswerMismatch(example.id, text, start, found))
        if not example.answers and _may_be_impossible(record):
            unanswered.append(len(examples))
        examples.append(example)
    check_not_empty(examples, f"{path} must hold questions")
    if len(unanswered) < len(examples):  # Otherwise it is a test set, without any answer.
        for index in unanswered:
            examples[index] = dataclasses.replace(examples[index], is_impossible=True)
    return QuestionSet(examples, mismatches)


def _questions(path: Path) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yields `(place, context, question record)` for each question."""
    kind = kind_of(path)
    if kind == "tsv":  # A name without an ending says nothing, and no header begins like JSON.
        first = next(filter(str.strip, read_lines(path)), "")
        kind = "json" if first.lstrip()[:1] in ("{", "[") else kind
    for place, record in read_records(path, kind=kind):
        contexts = [(place, record := with_fields(record, _LAYOUTS))]
        if "paragraphs" in record:
            contexts = _nested(path, place, record, "paragraphs")
        for where, row in contexts:
            context = _checked(f"{path}, {where}", row, "context", str)
            check_at(f"{path}, {where}", context.strip(), "a context must not be blank", context)
            is_flat = "question" in row and "qas" not in row
            rows = [(where, {"id": where, **row})] if is_flat else _nested(path, where, row, "qas")
            for at, question in rows:
                yield at, context, question


def _nested(path, place, record, key):
    """Yields the place and the value of each record in a list under a key."""
    for number, row in enumerate(_checked(f"{path}, {place}", record, key, list)):
        yield f"{place}.{key}[{number}]", row


def _example(place, context, record):
    question, flag = _checked(place, record, "question", str), record.get("is_impossible")
    if isinstance(flag, str):  # In a table.
        flag = _FLAGS.get(flag.strip().lower(), flag)
    fits = flag is None or isinstance(flag, (bool, int))
    check_at(place, fits, "'is_impossible' must be of type bool", flag)
    answers = tuple(_answers(place, record))
    if flag and (answers := tuple(answer for answer in answers if answer.text.strip())):
        check_at(place, False, "an impossible question must have no answers", answers)
    identifier = record.get("id", record.get("qid"))
    identifier = str(identifier) if is_int(identifier) else identifier
    identifier = _checked(place, {"id": identifier}, "id", str)
    return QuestionExample(identifier, question, context, answers, bool(flag))


def _answers(place, record):
    """Yields the answers: objects, an object of lists, a column for each part, or MRQA's spans."""
    found, text = record.get("answers"), record.get("answer_text", record.get("answer"))
    if "detected_answers" in record:
        spans = _checked(place, record, "detected_answers", list)
        found = [
            {"text": x.get("text"), "answer_start": start}
            for x in spans
            for start, _ in _checked(place, x, "char_spans", list)
        ]
    elif found is None and "answer_start" in record:
        found = [{"text": text, "answer_start": record["answer_start"]}] if text else []
    elif found is None:
        rule = "an answer must have an 'answer_start', which counts characters from 0"
        check_at(place, not text, rule, [*record])
    elif isinstance(found, dict):
        columns = [found.get("text"), found.get("answer_start")]
        columns = [[x] if isinstance(x, (str, int)) else x for x in columns]
        fits = all(isinstance(x, list) for x in columns) and len({*map(len, columns)}) == 1
        check_at(place, fits, "'answers' must have as many 'text' as 'answer_start'", found)
        found = [{"text": x, "answer_start": y} for x, y in zip(*columns, strict=True)]
    is_table, found = "answers" not in record, [] if found is None else found
    for number, answer in enumerate(_checked(place, {"answers": found}, "answers", list)):
        where = f"{place}.answers[{number}]"
        text, start = _checked(where, answer, "text", str), answer.get("answer_start")
        is_whole = isinstance(start, float) and start.is_integer()  # pandas
        if is_whole or (is_table and isinstance(start, str) and re.fullmatch("[0-9]+", start)):
            start = int(start)
        yield Answer(text, _checked(where, {"answer_start": start}, "answer_start", int))


def _may_be_impossible(record):
    """Whether an empty list of answers may mean that a row's question is impossible."""
    has_field = record.get("answers") is not None or "answer_start" in record
    return "context" in record and "is_impossible" not in record and has_field


def _checked(place, record, key, kind):
    """Returns a field of a record; raises `ValueError` unless it is of a kind."""
    check_at(place, isinstance(record, dict), "a JSON object is needed", record)
    value = record.get(key)
    # In Python a bool is an int, in this format it is not.
    fits = is_int(value) if kind is int else isinstance(value, kind)
    check_at(place, fits, f"{key!r} must be of type {kind.__name__}", value)
    return value
