"""Question answering sets in SQuAD's JSON format: SQuAD 1.1 and 2.0, CMRC 2018, DRCD."""

from typing import NamedTuple

from bert_keras.checks import check_not_empty, describe
from bert_keras.datasets.files import parse_json, read_text
from bert_keras.tasks.question_examples import Answer, QuestionExample
from bert_keras.types import Path


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
    """Reads a file in SQuAD's JSON format and checks every answer against its span.

    In CMRC 2018's dev file, 200 of 9,657 answers have the start -1 or another text than the context
    at their start. They are reported in `mismatches` and kept in `answers`, since the official
    scores compare texts; `QuestionExample.spans`, which training uses, leaves them out. Nothing is
    repaired: the same text elsewhere in the context may be another answer.

    Args:
        path: the `.json` file, plain or gzip.

    Returns:
        `QuestionSet(examples, mismatches)`.

    Raises:
        ValueError: the file is not JSON in this layout, an id occurs twice, or a context is blank.
            The message names the file and the place in it.

    Example:
        ```python
        examples, mismatches = read_squad("cmrc2018_dev.json")
        len(examples), len(mismatches)  # (3219, 200)
        ```

    Reference: Rajpurkar et al., "SQuAD: 100,000+ Questions for Machine Comprehension of Text",
    EMNLP 2016, https://arxiv.org/abs/1606.05250
    """
    content = parse_json(read_text(path), path)
    examples, mismatches, ids = [], [], set()
    for place, context, record in _questions(path, content):
        example = _example(f"{path}, {place}", context, record)
        if example.id in ids:
            raise ValueError(f"{path}, {place}: the id {example.id!r} occurs twice.")
        ids.add(example.id)
        examples.append(example)
        mismatches += [
            AnswerMismatch(example.id, answer.text, answer.start, _span(context, answer))
            for answer in example.answers
            if not answer.stands_in(context)
        ]
    check_not_empty(examples, f"{path} must hold questions")
    return QuestionSet(examples, mismatches)


def _questions(path, content):
    """Yields `(place, context, question record)` for each question."""
    articles = _get(path, content, "data", list)
    for i, article in enumerate(articles):
        place = f"data[{i}]"
        for j, paragraph in enumerate(_get(f"{path}, {place}", article, "paragraphs", list)):
            place = f"data[{i}].paragraphs[{j}]"
            context = _get(f"{path}, {place}", paragraph, "context", str)
            if not context.strip():
                raise ValueError(f"{path}, {place}: the context is blank.")
            for k, record in enumerate(_get(f"{path}, {place}", paragraph, "qas", list)):
                yield f"{place}.qas[{k}]", context, record


def _example(place, context, record):
    answers = tuple(
        Answer(
            _get(f"{place}.answers[{number}]", answer, "text", str),
            _get(f"{place}.answers[{number}]", answer, "answer_start", int),
        )
        for number, answer in enumerate(_get(place, record, "answers", list, default=[]))
    )
    is_impossible = _get(place, record, "is_impossible", bool, default=False)
    if is_impossible and answers:
        raise ValueError(f"{place}: an impossible question must have no answers.")
    return QuestionExample(
        id=_get(place, record, "id", str),
        question=_get(place, record, "question", str),
        context=context,
        answers=answers,
        is_impossible=is_impossible,
    )


def _get(place, record, key, kind, default=None):
    if not isinstance(record, dict):
        raise ValueError(f"{place}: a JSON object is needed. Received: {describe(record)}.")
    value = record.get(key, default)
    # In Python a bool is an int, in this format it is not.
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        found = "nothing" if value is None else describe(value)
        raise ValueError(f"{place}: {key!r} must be of type {kind.__name__}. Received: {found}.")
    return value


def _span(context, answer):
    end = answer.start + len(answer.text)
    return context[answer.start : end] if answer.start >= 0 else ""
