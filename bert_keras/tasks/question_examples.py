"""Turns every form of questions, contexts and answers into columns for `QuestionAnswering`."""

import dataclasses
import warnings
from typing import NamedTuple

import numpy as np

from bert_keras.checks import check_has_labels, is_int, raise_at_first, refuse_options


class Answer(NamedTuple):
    """An answer's text, and the character of the context at which it starts."""

    text: str
    start: int

    def stands_in(self, context: str) -> bool:
        """Whether the context has the text at that character."""
        end = self.start + len(self.text)
        return bool(self.text) and self.start >= 0 and context[self.start : end] == self.text


@dataclasses.dataclass(frozen=True)
class QuestionExample:
    """A question about a context, with the answers that people gave.

    Args:
        id: str, the question's own.
        question: str.
        context: str.
        answers: tuple of `Answer`, or of `(text, start)`, as in the file; empty for unanswerable
            questions and for unlabelled sets.
        is_impossible: bool, whether the context does not answer the question, as in SQuAD 2.0.
    """

    id: str
    question: str
    context: str
    answers: tuple[Answer, ...] = ()
    is_impossible: bool = False

    @property
    def spans(self) -> tuple[Answer, ...]:
        """The `answers` whose text is in the context at their `start`: those to train on."""
        answers = (Answer(*answer) for answer in self.answers)
        return tuple(answer for answer in answers if answer.stands_in(self.context))


# Takes the place of an answer that cannot be trained on: it stands in no context.
UNUSABLE = Answer("", 0)


def are_examples(x):
    """Whether `x` is a list of `QuestionExample`."""
    return isinstance(x, (list, tuple)) and any(isinstance(row, QuestionExample) for row in x[:1])


def as_columns(x, y=None):
    """Returns questions and contexts as two columns, and answers as a third.

    Args:
        x: a list of `QuestionExample`, or anything else, which is returned unchanged, except that a
            pair of str becomes two columns with one entry each.
        y: answers or `None`; must be `None` for examples, which have their own.

    Returns:
        `x` and `y`.

    Raises:
        ValueError: `y` comes with examples.
    """
    if not are_examples(x):
        if isinstance(x, tuple) and len(x) == 2 and all(isinstance(text, str) for text in x):
            x = tuple([text] for text in x)
        return x, y
    advice = "Leave it out, or pass `(questions, contexts)` and answers."
    refuse_options("A list of QuestionExample has its answers in it", {"y": y}, advice)
    columns = ([example.question for example in x], [example.context for example in x])
    return columns, [_answer_of(example) for example in x]


def _answer_of(example):
    is_answered = example.answers or not example.is_impossible
    return (example.spans or (UNUSABLE,))[0] if is_answered else None


def read_answers(contexts, answers):
    """Returns where the answers lie, in characters.

    Args:
        contexts: list of str.
        answers: column of `(text, start)`; `None` for no answer; a list of such pairs for several
            right answers, of which the first that is in the context counts.

    Returns:
        starts: int64 `(num_examples,)`, first characters; -1 for no answer.
        ends: int64 `(num_examples,)`, characters after the last; -1 for no answer.
        unusable: set of the indices of answers that cannot be trained on.

    Raises:
        TypeError: an answer has another form.
        ValueError: a span reaches outside its context.
    """
    starts = np.full(len(contexts), -1, np.int64)
    ends = np.full(len(contexts), -1, np.int64)
    unusable = set()
    for index, (context, answer) in enumerate(zip(contexts, answers, strict=True)):
        candidates = _candidates(answer, index)
        for text, start in candidates:
            if start < 0 or start + len(text) > len(context):
                raise ValueError(
                    f"An answer must lie in its context. Received at the index {index} the "
                    f"characters {start} to {start + len(text)} of a context of {len(context)}."
                )
        matches = [candidate for candidate in candidates if candidate.stands_in(context)]
        if matches:
            starts[index] = matches[0].start
            ends[index] = matches[0].start + len(matches[0].text)
        elif candidates:
            unusable.add(index)
    return starts, ends, unusable


def _candidates(answer, index):
    if answer is None:
        return []
    is_one = isinstance(answer, (list, tuple)) and len(answer) == 2 and isinstance(answer[0], str)
    rows = [answer] if is_one else answer
    if not isinstance(rows, (list, tuple)) or not all(map(_is_answer, rows)):
        raise TypeError(
            "An answer must be (text, start character), None where there is none, or a list of "
            f"such pairs. Received at the index {index}: {answer!r}."
        )
    return [Answer(*row) for row in rows]


def _is_answer(row):
    is_pair = isinstance(row, (list, tuple)) and len(row) == 2
    return is_pair and isinstance(row[0], str) and is_int(row[1])


def report(unusable, num_examples):
    """Warns about the examples that are left out.

    Args:
        unusable: set of their indices.
        num_examples: int, the number of all examples.

    Raises:
        ValueError: nothing is left.
    """
    if not unusable:
        return
    message = (
        f"{len(unusable)} of {num_examples} examples left out, the first at the index "
        f"{min(unusable)}: a text is blank, the tokenizer leaves nothing of it, or the answer "
        "is not in the context at its start, covers no token, or fits into no window. "
        "Without an answer, an example must be impossible."
    )
    if len(unusable) == num_examples:
        raise ValueError(f"{message} At least one usable example is needed.")
    warnings.warn(message, stacklevel=2)


def right_answers(x, y):
    """Returns the texts of all right answers, a list of str for each example.

    Args:
        x: a list of `QuestionExample`, or anything else.
        y: `None` for examples; otherwise a column of answers, see `read_answers`.

    Raises:
        ValueError: a `QuestionExample` is neither answered nor impossible.
    """
    if are_examples(x):
        wrong = [not (example.answers or example.is_impossible) for example in x]
        rule = "Every question must have an answer or be impossible"
        raise_at_first(wrong, [example.question for example in x], rule, "Leave it out.")
        return [[answer.text for answer in example.answers] for example in x]
    check_has_labels(y, "QuestionAnswering", "Pass the answers to each question.")
    return [[a.text for a in _candidates(answer, index)] for index, answer in enumerate(y)]
