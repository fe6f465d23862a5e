"""Question answering sets: SQuAD's JSON format, and rows of a question, a context and answers."""

import dataclasses
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from bert_keras.checks import check_not_empty, is_int
from bert_keras.datasets.files import check_at
from bert_keras.datasets.table import read_records, with_known_names
from bert_keras.tasks.question_examples import Answer, QuestionExample
from bert_keras.types import Path

# How tables write `is_impossible`.
_FLAGS = {"true": True, "1": True, "false": False, "0": False, "": False, "none": False}


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
        example = _example(place, context, record)
        check_at(place, example.id not in ids, "an id must occur once", example.id)
        ids.add(example.id)
        for answer in example.answers:
            if not answer.stands_in(context):
                text, start = answer
                found = context[start : start + len(text)] if start >= 0 else ""
                mismatches.append(AnswerMismatch(example.id, text, start, found))
        has_field = record.get("answers") is not None or "answer_start" in record
        is_row = "context" in record and "is_impossible" not in record
        if not example.answers and is_row and has_field:
            unanswered.append(len(examples))
        examples.append(example)
    check_not_empty(examples, f"{path} must hold questions")
    if len(unanswered) < len(examples):  # Otherwise it is a test set, without any answer.
        for index in unanswered:
            examples[index] = dataclasses.replace(examples[index], is_impossible=True)
    return QuestionSet(examples, mismatches)


def _questions(path: Path) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yields `(place, context, question record)` for each question."""
    for place, record in read_records(path):
        contexts = [(f"{path}, {place}", record := with_known_names(record))]
        if "paragraphs" in record:
            contexts = _nested(*contexts[0], "paragraphs")
        for where, row in contexts:
            context = _checked(where, row, "context", str)
            check_at(where, context.strip(), "a context must not be blank", context)
            is_flat = "question" in row and "qas" not in row
            rows = [(where, {"id": place, **row})] if is_flat else _nested(where, row, "qas")
            yield from ((at, context, question) for at, question in rows)


def _nested(place, record, key):
    """Yields the place and the value of each record in a list under a key."""
    for number, row in enumerate(_checked(place, record, key, list)):
        yield f"{place}.{key}[{number}]", row


def _example(place, context, record):
    question, value = _checked(place, record, "question", str), record.get("is_impossible")
    flag = _FLAGS.get(str(value).strip().lower())
    check_at(place, flag is not None, "'is_impossible' must be true or false", value)
    answers = tuple(_answers(place, record))
    if flag and (answers := tuple(answer for answer in answers if answer.text.strip())):
        check_at(place, False, "an impossible question must have no answers", answers)
    identifier = record.get("id", record.get("qid"))
    identifier = str(identifier) if is_int(identifier) else identifier
    identifier = _checked(place, {"id": identifier}, "id", str)
    return QuestionExample(identifier, question, context, answers, flag)


def _answers(place, record):
    """Yields the answers: objects, an object of lists, a column for each part, or MRQA's spans."""
    found, text = record.get("answers"), record.get("answer_text", record.get("answer"))
    if "detected_answers" in record:
        found = [
            {"text": answer.get("text"), "answer_start": span}
            for answer in _checked(place, record, "detected_answers", list)
            for span in _checked(place, answer, "char_spans", list)
        ]
    elif found is None and text:
        rule = "an answer must have an 'answer_start', which counts characters from 0"
        check_at(place, "answer_start" in record, rule, [*record])
        found = [{"text": text, "answer_start": record["answer_start"]}]
    elif isinstance(found, dict):
        columns = [found.get("text"), found.get("answer_start")]
        fits = all(isinstance(x, list) for x in columns) and len({*map(len, columns)}) == 1
        check_at(place, fits, "'answers' must have as many 'text' as 'answer_start'", found)
        found = [{"text": x, "answer_start": y} for x, y in zip(*columns, strict=True)]
    found = [] if found is None else found
    for number, answer in enumerate(_checked(place, {"answers": found}, "answers", list)):
        where = f"{place}.answers[{number}]"
        text, start = _checked(where, answer, "text", str), answer.get("answer_start")
        start = start[0] if isinstance(start, list) and start else start  # MRQA's span.
        if re.fullmatch(r"[0-9]+(\.0)?", str(start)):  # Text in tables, floats of pandas.
            start = int(str(start).removesuffix(".0"))
        yield Answer(text, _checked(where, {"answer_start": start}, "answer_start", int))


def _checked(place, record, key, kind):
    """Returns a field of a record; raises `ValueError` unless it is of a kind."""
    check_at(place, isinstance(record, dict), "a JSON object is needed", record)
    check_at(place, key in record, f"{key!r} is missing", [*record])
    # In Python a bool is an int, in this format it is not.
    fits = is_int(record[key]) if kind is int else isinstance(record[key], kind)
    check_at(place, fits, f"{key!r} must be of type {kind.__name__}", record[key])
    return record[key]
