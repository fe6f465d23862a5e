"""Question answering files in SQuAD's format: answers, spans, and what is refused."""

import copy

import pytest

from bert_keras.datasets import read_squad

CONTEXT = "Normandy is in France 🙂, a région of Europe."


def question(number, *answers, **other):
    answers = [{"text": text, "answer_start": start} for text, start in answers]
    return {"id": f"q{number}", "question": f"Question {number}?", "answers": answers, **other}


def squad(*questions, context=CONTEXT):
    paragraph = {"context": context, "qas": list(questions), "id": "P0"}
    return {"version": "v1.0", "data": [{"title": "T", "paragraphs": [paragraph]}]}


def test_questions_have_contexts_and_answers_in_characters(write):
    content = squad(question(1, ("France", 15), ("région", 27)))
    examples, mismatches = read_squad(write("t.json", content))
    (example,) = examples
    assert (example.id, example.question, example.context) == ("q1", "Question 1?", CONTEXT)
    assert example.answers == (("France", 15), ("région", 27))
    assert example.spans == example.answers and mismatches == []
    assert not example.is_impossible


def test_unanswerable_questions_have_no_answers(write):
    content = squad(
        question(1, is_impossible=True, plausible_answers=[{"text": "x", "answer_start": 0}]),
        question(2, ("France", 15), is_impossible=False),
    )
    examples, _ = read_squad(write("t.json", content))
    assert [example.is_impossible for example in examples] == [True, False]
    assert examples[0].answers == examples[0].spans == ()


def test_answers_that_are_not_at_their_start_are_reported_and_not_trained_on(write):
    content = squad(
        question(1, ("France", 15), ("France", 14), ("Spain", -1), ("Europe", 400), ("", 3)),
        # At -7 stands "Europe." by Python's rule, which is not the format's.
        question(2, ("Europe.", -7)),
    )
    examples, mismatches = read_squad(write("t.json", content))
    assert examples[0].spans == (("France", 15),) and len(examples[0].answers) == 5
    assert examples[1].spans == ()
    assert mismatches == [
        ("q1", "France", 14, " Franc"),
        ("q1", "Spain", -1, ""),
        ("q1", "Europe", 400, ""),
        ("q1", "", 3, ""),
        ("q2", "Europe.", -7, ""),
    ]


def changed(change):
    content = copy.deepcopy(squad(question(1, ("France", 15))))
    change(content, content["data"][0]["paragraphs"][0])
    return content


@pytest.mark.parametrize(
    "change, message",
    [
        ("[1]", "must be a list of JSON objects"),
        ('{"data": [', "line 1, column 11"),
        (lambda c, p: c.pop("data"), "'context' is missing. Received: .'version'"),
        (lambda c, p: c.update(data={}), "must be a list of JSON objects"),
        (lambda c, p: c.update(data=[]), "must hold questions"),
        (lambda c, p: c.update(data=["x"]), "must be a list of JSON objects"),
        (lambda c, p: p.pop("context"), r"row 1.paragraphs\[0\]: 'context' is missing"),
        (lambda c, p: p.update(context=" "), r"row 1.paragraphs\[0\]: a context must not be blank"),
        (lambda c, p: p["qas"][0].pop("id"), r"paragraphs\[0\].qas\[0\]: 'id' must be of type str"),
        (lambda c, p: p["qas"].append(5), r"qas\[1\]: a JSON object is needed. Received: 5"),
        (lambda c, p: p["qas"][0].update(answers=""), "'answers' must be of type list"),
        (lambda c, p: p["qas"].append(p["qas"][0]), r"qas\[1\]: an id must occur once.*'q1'"),
        (
            lambda c, p: p["qas"][0].update(is_impossible=True),
            r"qas\[0\]: an impossible .* no answers",
        ),
        *(
            (lambda c, p, x=x: p["qas"][0]["answers"][0].update(answer_start=x), message)
            for x, message in [
                ("x15", r"qas\[0\].answers\[0\]: 'answer_start' must be of type int. .*: 'x15'"),
                (True, "'answer_start' must be of type int. Received: True"),
            ]
        ),
    ],
)
def test_files_in_another_layout_are_refused_by_place(write, change, message):
    with pytest.raises(ValueError, match=rf"t\.json.*{message}"):
        read_squad(write("t.json", changed(change) if callable(change) else change))
