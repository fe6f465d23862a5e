import warnings

import pytest

from bert_keras.answers.span_search import check_not_blank
from bert_keras.datasets import QuestionExample
from bert_keras.datasets.squad import Answer
from bert_keras.tasks.question_examples import (
    UNUSABLE,
    as_columns,
    read_answers,
    report,
    right_answers,
)

pytestmark = pytest.mark.once

CONTEXT = "Normandy is in France."


def example(*answers, question="Where?", is_impossible=False):
    return QuestionExample("q", question, CONTEXT, tuple(map(Answer._make, answers)), is_impossible)


def test_examples_give_the_first_answer_that_stands_in_the_context():
    rows = [
        example(("France", 14), ("France", 15)),
        example(is_impossible=True),
        example(("Spain", -1)),
        example(("France", 15), question=" "),
    ]
    (questions, contexts), answers = as_columns(rows)
    assert questions == ["Where?", "Where?", "Where?", " "]
    assert contexts == [CONTEXT] * 4
    assert answers == [("France", 15), None, UNUSABLE, UNUSABLE]
    assert right_answers(rows, None) == [["France", "France"], [], ["Spain"], ["France"]]


def test_an_unlabelled_example_is_not_unanswerable():
    _, answers = as_columns([example()])
    assert answers == [UNUSABLE]


def test_examples_with_further_answers_are_refused():
    with pytest.raises(ValueError, match="Leave it out"):
        as_columns([example()], [None])


def test_answers_are_read_in_every_form():
    answers = [("France", 15), None, [], [("France", 3), ["is", 9]], Answer("N", 0)]
    starts, ends, unusable = read_answers([CONTEXT] * 5, answers)
    assert starts.tolist() == [15, -1, -1, 9, 0]
    assert ends.tolist() == [21, -1, -1, 11, 1]
    assert unusable == set()


def test_an_answer_that_differs_from_the_context_is_unusable():
    starts, _, unusable = read_answers([CONTEXT] * 2, [("France", 14), ("", 3)])
    assert unusable == {0, 1}
    assert starts.tolist() == [-1, -1]


@pytest.mark.parametrize("answer", [("France", -1), ("France", 17), ("x", 22)])
def test_spans_outside_the_context_are_errors(answer):
    with pytest.raises(ValueError, match=r"must lie in its context.* index 1"):
        read_answers([CONTEXT] * 2, [None, answer])


@pytest.mark.parametrize("answer", ["France", 15, ("France",), ("France", "15"), [("x", True)]])
def test_other_forms_are_errors(answer):
    with pytest.raises(TypeError, match=r"\(text, start character\)"):
        read_answers([CONTEXT], [answer])


def test_blank_texts_are_refused_with_their_index():
    with pytest.raises(ValueError, match=r"question needs text\. Received ' ' at the index 1"):
        check_not_blank(["a", " "], ["a", "a"])
    with pytest.raises(ValueError, match=r"context needs text\. Received '\\n' at the index 0"):
        check_not_blank(["a"], ["\n"])
    check_not_blank([" "], ["a"], unusable={0})


def test_left_out_examples_are_counted():
    with pytest.warns(UserWarning, match="3 of 5 .*the first at the index 1"):
        report({1, 2, 4}, 5)
    with pytest.raises(ValueError, match="2 of 2"):
        report({0, 1}, 2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        report(set(), 5)
