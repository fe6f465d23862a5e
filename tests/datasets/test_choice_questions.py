"""Multiple choice sets: each published layout, and rows that are refused."""

import pytest

from bert_keras.datasets import read_multiple_choice

HEADER = ",video-id,fold-ind,startphrase,sent1,sent2,gold-source,ending0,ending1,ending2,ending3"
SWAG = {"sent1": "A.", "sent2": "B", "label": 3} | {f"ending{i}": f"e{i}" for i in range(4)}
JOINED = {"startphrase": "A. B", "answer": 1, "choices": ["w", "x"]}
CAUSE = {"premise": "It rains.", "hypothesis1": "a", "hypothesis2": "b", "label": 1}
CAUSE |= {"ask-for": "cause"}


def commonsense(num_choices, key):
    choices = [{"label": letter, "text": f"text {letter}"} for letter in "ABCDE"[:num_choices]]
    record = {"id": "1", "question": {"stem": "Where?", "choices": choices}}
    return record | ({} if key is None else {"answerKey": key})


@pytest.mark.parametrize(
    ("name", "content", "contexts", "choices", "labels"),
    [
        (
            "swag.csv",
            f'{HEADER},label\n0,anet,1,He sits. She,"He sits, ""there"".",She,gold,'
            'stands.,runs.,"eats, then drinks.",left.,2\n',
            ['He sits, "there".'],
            [["She stands.", "She runs.", "She eats, then drinks.", "She left."]],
            [2],
        ),
        ("test.csv", f"{HEADER}\n0,a,1,A. B,A.,B,gold,c,d,e,f\n", ["A."],
         [["B c", "B d", "B e", "B f"]], None),
        ("swag.json", [SWAG], ["A."], [["B e0", "B e1", "B e2", "B e3"]], [3]),
        ("joined.jsonl", [JOINED], ["A. B"], [["w", "x"]], [1]),
        ("numpy.jsonl", [JOINED | {"choices": "['w' 'x']"}], ["A. B"], [["w", "x"]], [1]),
        ("goals.csv", "Goal ,SOL1,sol2,Label\nCook.,w,x,1\n", ["Cook."], [["w", "x"]], [1]),
        ("a.jsonl", [{"context": "Cook.", "choices": ["w", "x"], "label": 1, "Question": "?"}],
         ["Cook."], [["w", "x"]], [1]),
        ("commonsense.jsonl", [commonsense(3, "C"), commonsense(3, "A")], ["Where?"] * 2,
         [["text A", "text B", "text C"]] * 2, [2, 0]),
        ("test.jsonl", [commonsense(2, None)], ["Where?"], [["text A", "text B"]], None),
        ("e-care.jsonl", [CAUSE, CAUSE | {"ask-for": "effect"}],
         ["It rains. What is the cause?", "It rains. What is the effect?"], [["a", "b"]] * 2,
         [1, 1]),
        (
            "cosmos.csv",
            "id,context,question,answer0,answer1,answer2,answer3,label\n"
            '1,"It rained, hard.",Why?,a,b,c,d,2\n',
            ["It rained, hard. Why?"],
            [["a", "b", "c", "d"]],
            [2],
        ),
    ],
)  # fmt: skip
def test_contexts_choices_and_labels_of_each_layout(
    write, name, content, contexts, choices, labels
):
    examples = read_multiple_choice(write(name, content))
    assert (examples.contexts, examples.choices) == (contexts, choices)
    assert examples.num_choices == len(choices[0]) and len(examples) == len(contexts)
    assert examples.labels is labels is None or examples.labels.tolist() == labels
    assert labels is None or examples.labels.dtype == "int32"


@pytest.mark.parametrize(
    "records, message",
    [
        ([{"a": 1}], "line 1: .*a row must have the fields of one of these layouts"),
        ([commonsense(3, "D")], r"line 1: .*must be one of .*Received: 'D'"),
        ([commonsense(3, "A"), commonsense(3, None)], "line 2: .*either all rows have a label"),
        ([JOINED | {"answer": 2}], r"must be one of \['0', '1'\]\. Received: 2"),
        ([JOINED | {"answer": -2}], r"must be one of \['0', '1'\]\. Received: -2"),
        ([JOINED, JOINED | {"answer": -1}], "line 2: .*either all rows have a label"),
        ([JOINED | {"answer": True}], "Received: True"),
        ([JOINED | {"choices": ["x", 5]}], "choices must be texts"),
        ([JOINED | {"choices": []}], "choices must be texts"),
        ([JOINED | {"choices": "wx"}], "choices must be texts"),
        (
            [{"question": {"choices": [{"label": "A", "text": "x"}]}}],
            "line 1: contexts and choices must be texts.*None",
        ),
        ([JOINED | {"startphrase": 7}], "contexts and choices must be texts"),
        ([{"question": "Where?"}], "line 1: a row must have the fields of one of these layouts"),
        ([CAUSE | {"ask-for": "why"}], "line 1: .*must be 'cause' or 'effect'.*'why'"),
        ([CAUSE | {"premise": None}], "be texts"),
        ([SWAG | {"sent2": None}], "line 1: .*be texts"),
        ([SWAG | {"ending3": 3}], "line 1: .*be texts"),
        ([SWAG | {"sent2": "", "ending2": " "}], r"must not be blank\. .*'e1', ' ', 'e3'"),
        ([JOINED | {"choices": ["x", ""]}], r"must not be blank\. .*'x', ''"),
        ([], "must hold examples. Received: none"),
    ],
)
def test_wrong_rows_are_refused_by_file_and_line(write, records, message):
    with pytest.raises(ValueError, match=rf"t\.jsonl.*{message}"):
        read_multiple_choice(write("t.jsonl", records))


def test_taking_examples_keeps_choices_and_labels_together(write):
    examples = read_multiple_choice(write("c.jsonl", [commonsense(3, x) for x in "ABC"]))
    assert examples.take([2, 0]).labels.tolist() == [2, 0]
    assert examples.take(slice(0, 1)).num_choices == 3
