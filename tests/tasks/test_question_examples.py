import pytest

from bert_keras.datasets import QuestionExample
from bert_keras.datasets.squad import Answer
from bert_keras.tasks.question_examples import as_columns, read_answers

pytestmark = pytest.mark.once

CONTEXT = "Normandy is in France."


def test_examples_have_their_answers():
    example = QuestionExample("q", "Where?", CONTEXT, (("France", 3), ("France", 15)))
    columns = (["Where?"], [CONTEXT])
    assert as_columns([example]) == (columns, [Answer("France", 15)])
    with pytest.raises(ValueError, match="Leave it out"):
        as_columns([example], [None])


def test_answers_are_read_in_every_form():
    answers = [("France", 15), None, [], [("France", 3), ["is", 9]], Answer("N", 0)]
    answers += [("France", 14), ("", 3)]
    starts, ends, unusable = read_answers([CONTEXT] * 7, answers)
    assert starts.tolist() == [15, -1, -1, 9, 0, -1, -1]
    assert ends[:5].tolist() == [21, -1, -1, 11, 1]
    assert unusable == {5, 6}


@pytest.mark.parametrize("answer", [("France", -1), ("France", 17), ("x", 22)])
def test_spans_outside_the_context_are_errors(answer):
    with pytest.raises(ValueError, match=r"must lie in its context.* index 1"):
        read_answers([CONTEXT] * 2, [None, answer])


@pytest.mark.parametrize("answer", ["France", 15, ("France",), ("France", "15"), [("x", True)]])
def test_other_forms_are_errors(answer):
    with pytest.raises(TypeError, match=r"\(text, start character\)"):
        read_answers([CONTEXT], [answer])
