"""Question answering files: SQuAD's format and its neighbours, spans, and what is refused."""

import copy
import json

import pytest
from checks import refused

from bert_keras.datasets import read_squad

CONTEXT = "Normandy is in France 🙂, a région of Europe."
START = CONTEXT.index("région")


def question(number, *answers, **other):
    answers = [{"text": text, "answer_start": start} for text, start in answers]
    return {"id": f"q{number}", "question": f"Question {number}?", "answers": answers, **other}


def paragraph(*questions):
    return {"context": CONTEXT, "qas": list(questions), "id": "P0"}


def squad(*questions):
    return {"version": "v1.0", "data": [{"title": "T", "paragraphs": [paragraph(*questions)]}]}


def row(**changes):
    answers = {"text": ["région"], "answer_start": [START]}
    return {"id": "1", "context": CONTEXT, "question": "Where?", "answers": answers, **changes}


ASKED = question(1, ("région", START))
IMPOSSIBLE = {"text": [], "answer_start": []}
TABLE = f'question,context,answer,answer_start\nWhere?,"{CONTEXT}",région,{START}\n'
WITH_BOOLS = TABLE.replace("\n", ",is_impossible\n", 1).replace(f"{START}\n", f"{START},False\n")
OF_MRQA = {
    **{"qid": "a", "question": "Where?", "answers": ["RÉGION"]},
    "detected_answers": [{"text": "région", "char_spans": [[START, START + 5]]}],
}
BLANK = [{"text": "", "answer_start": -1}]
ONE, NONE, UNKNOWN = (START, False), (None, True), (None, False)
# The file's name and content; for each question where its answer starts, and if it has none.
LAYOUTS = {
    "ids that are numbers": ("a.json", squad({**ASKED, "id": 1}), [ONE]),
    "a list of contexts": ("a.json", json.dumps([paragraph(ASKED)]), [ONE]),
    "contexts in lines": ("a.jsonl", [paragraph(ASKED)], [ONE]),
    "rows of `datasets`": ("a.jsonl", [row(), row(id=2, answers=IMPOSSIBLE)], [ONE, NONE]),
    "a list of rows": ("a.json", json.dumps([row()]), [ONE]),
    "rows under a key": ("a.json", {"data": [row()]}, [ONE]),
    "without ids and answers": ("a.jsonl", [{"context": "c", "question": "?"}], [UNKNOWN]),
    "CSV": ("a.csv", TABLE, [ONE]),
    "names in another form": ("a.csv", TABLE.replace("question,co", "Question ,\uff23o"), [ONE]),
    "fields beside the exact ones": ("a.jsonl", [row(Answers=["x"], Answer="x")], [ONE]),
    "CSV, no answer": ("a.csv", f"{TABLE}Who?,a text,,\n", [ONE, NONE]),
    "a column of False and True": (
        *("a.csv", f"{WITH_BOOLS}Who?,a text,,,TRUE\nWhat?,a text,,,0\n"),
        [ONE, NONE, UNKNOWN],
    ),
    "floats of pandas": ("a.json", squad(question(1, ("région", float(START)))), [ONE]),
    "a blank answer": ("a.json", squad({**ASKED, "answers": BLANK, "is_impossible": True}), [NONE]),
    "MRQA": ("a.jsonl", [{"header": {"dataset": "x"}}, paragraph(OF_MRQA)], [ONE]),
    "null for answers": ("a.json", squad({**ASKED, "answers": None}), [UNKNOWN]),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_each_layout_of_questions_is_read(write, layout):
    name, content, expected = LAYOUTS[layout]
    examples, mismatches = read_squad(write(name, content))
    starts = [e.spans[0].start if e.spans else None for e in examples]
    assert list(zip(starts, (e.is_impossible for e in examples), strict=True)) == expected
    assert mismatches == [] and all(isinstance(e.id, str) for e in examples)


def test_questions_have_contexts_and_answers_in_characters_unless_they_are_unanswerable(write):
    plausible = [{"text": "x", "answer_start": 0}]
    content = squad(
        question(1, ("France", 15), ("région", 27), is_impossible=False),
        question(2, is_impossible=True, plausible_answers=plausible),
    )
    (example, impossible), mismatches = read_squad(write("t.json", content))
    assert (example.id, example.question, example.context) == ("q1", "Question 1?", CONTEXT)
    assert example.spans == example.answers == (("France", 15), ("région", 27))
    assert impossible.answers == impossible.spans == () and mismatches == []
    assert (example.is_impossible, impossible.is_impossible) == (False, True)


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


@refused(
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
    (lambda c, p: p["qas"][0].update(is_impossible=True), r"qas\[0\]: an impossible .* no answers"),
    *(
        (lambda c, p, x=x: p["qas"][0]["answers"][0].update(answer_start=x), message)
        for x, message in [
            ("x15", r"qas\[0\].answers\[0\]: 'answer_start' must be of type int. .*: 'x15'"),
            (True, "'answer_start' must be of type int. Received: True"),
        ]
    ),
    prefix=r"t\.json.*",
)
def test_files_in_another_layout_are_refused_by_place(write, change):
    read_squad(write("t.json", changed(change) if callable(change) else change))


@refused(
    (row(answers={"text": ["a"], "answer_start": [1, 2]}), "as many 'text' as 'answer_start'"),
    (row(answers="région"), "'answers' must be of type list. Received: 'région'"),
    (
        paragraph({**ASKED, "is_impossible": "no"}),
        "'is_impossible' must be true or false. Received: 'no'",
    ),
    (paragraph({**ASKED, "id": 1.5}), "'id' must be of type str"),
    (row(context=" "), "context must not be blank"),
    (
        {"Context": "c", "question": "?", "answer": "c"},
        r"an answer must have an 'answer_start'.*Received: \['id', 'context', 'question'",
    ),
    prefix=r"a\.jsonl, line 1.*",
)
def test_wrong_rows_of_questions_are_refused_by_line(write, content):
    read_squad(write("a.jsonl", [content]))
