"""Multiple choice sets: each published layout, and rows that are refused."""

import pytest
from checks import refused

from bert_keras.datasets import read_multiple_choice

HEADER = ",video-id,fold-ind,startphrase,sent1,sent2,gold-source,ending0,ending1,ending2,ending3"
SWAG = {"sent1": "A.", "sent2": "B", "label": 3} | {f"ending{i}": f"e{i}" for i in range(4)}
OF_SWAG = 'He sits. She,"He sits, ""there"".",She,gold,stands.,runs.,"eats, then drinks.",left.'
ENDINGS = "She stands.|She runs.|She eats, then drinks.|She left."
COSMOS = "id,context,question,answer0,answer1,answer2,answer3,label\n"
JOINED = {"startphrase": "A. B", "answer": 1, "choices": ["w", "x"]}
CAUSE = {"premise": "It rains.", "hypothesis1": "a", "hypothesis2": "b", "label": 1}
CAUSE |= {"ask-for": "cause"}
COPA = {"premise": "P.", "choice1": "a", "choice2": "b", "question": "effect", "label": 1}
ASKED = {"question": "Why?"}
OF_DATASETS = {"choices": {"text": ["tA", "tB"], "label": ["A", "B"]}, "answerKey": "B"}
OWN = {"context": "Cook.", "choices": ["w", "x"], "label": 1, "Question": "?"}


def commonsense(letters, key):
    choices = [{"label": letter, "text": f"t{letter}"} for letter in letters]
    record = {"id": "1", "question": {"stem": "Where?", "choices": choices}}
    return record | ({} if key is None else {"answerKey": key})


def keys(*labels):
    return ASKED | {"choices": {"text": ["a", "b"], "label": [*labels]}, "answerKey": 1}


# The file's name and content, and the context, the choices and the label of each of its rows.
LAYOUTS = {
    "SWAG": ("a.csv", f"{HEADER},label\n0,anet,1,{OF_SWAG},2\n",
     [('He sits, "there".', ENDINGS, 2)]),
    "SWAG's test set": ("a.csv", f"{HEADER}\n0,a,1,A. B,A.,B,gold,c,d,e,f\n",
     [("A.", "B c|B d|B e|B f", None)]),
    "SWAG in lines": ("a.json", [SWAG], [("A.", "B e0|B e1|B e2|B e3", 3)]),
    "SWAG, joined": ("a.jsonl", [JOINED], [("A. B", "w|x", 1)]),
    "NumPy's lists": ("a.jsonl", [JOINED | {"choices": "['w' 'x']"}], [("A. B", "w|x", 1)]),
    "PIQA's table": ("a.csv", "Goal ,SOL1,sol2,Label\nCook.,w,x,1\n", [("Cook.", "w|x", 1)]),
    "PIQA": ("a.jsonl", [{"goal": "G", "sol1": "a", "sol2": "b", "label": 0}], [("G", "a|b", 0)]),
    "your own": ("a.jsonl", [OWN], [("Cook.", "w|x", 1)]),
    "CommonsenseQA": ("a.jsonl", [commonsense("ABC", "C"), commonsense("ABC", "A")],
     [("Where?", "tA|tB|tC", 2), ("Where?", "tA|tB|tC", 0)]),
    "its test set": ("a.jsonl", [commonsense("AB", None)], [("Where?", "tA|tB", None)]),
    "ARC": ("a.jsonl", [commonsense("1234", "4"), commonsense("ABC", "B")],
     [("Where?", "t1|t2|t3|t4", 3), ("Where?", "tA|tB|tC", 1)]),
    "ARC of `datasets`": ("a.jsonl", [ASKED | OF_DATASETS], [("Why?", "tA|tB", 1)]),
    "labels and keys that are numbers": ("a.jsonl", [keys(1, 2), keys("1", "2"), keys("A", "B")],
     [("Why?", "a|b", 0), ("Why?", "a|b", 0), ("Why?", "a|b", 1)]),
    "OpenBookQA": ("a.jsonl", [{"question_stem": "Q", **OF_DATASETS}], [("Q", "tA|tB", 1)]),
    "e-CARE": ("a.jsonl", [CAUSE, CAUSE | {"ask-for": "effect"}],
     [("It rains. What is the cause?", "a|b", 1), ("It rains. What is the effect?", "a|b", 1)]),
    "Cosmos QA": ("a.csv", f'{COSMOS}1,"It rained, hard.",Why?,a,b,c,d,2\n',
     [("It rained, hard. Why?", "a|b|c|d", 2)]),
    "RACE of `datasets`": ("a.jsonl",
     [ASKED | {"article": "T.", "options": ["a", "b"], "answer": "B"}],
     [("T.", "Why? a|Why? b", 1)]),
    "HellaSwag": ("a.jsonl", [{"ctx": "C", "endings": ["a", "b"], "label": "1"}],
     [("C", "a|b", 1)]),
    "COPA": ("a.jsonl", [COPA], [("P. What is the effect?", "a|b", 1)]),
    "COPA's test set": ("a.jsonl", [COPA | {"label": -1}],
     [("P. What is the effect?", "a|b", None)]),
    "MMLU": ("a.jsonl", [ASKED | {"choices": ["a", "b"], "answer": 1}], [("Why?", "a|b", 1)]),
}  # fmt: skip


@pytest.mark.parametrize("layout", LAYOUTS)
def test_each_layout_gives_contexts_choices_and_labels(write, layout):
    name, content, rows = LAYOUTS[layout]
    contexts, choices, labels = map(list, zip(*rows, strict=True))
    found = read_multiple_choice(write(name, content))
    assert (found.contexts, ["|".join(texts) for texts in found.choices]) == (contexts, choices)
    assert found.num_choices == choices[0].count("|") + 1 and len(found) == len(rows)
    if labels[0] is None:
        assert found.labels is None
    else:
        assert found.labels.tolist() == labels and found.labels.dtype == "int32"


@refused(
    ([{"a": 1}], "line 1: .*a row must have the fields of one of these layouts"),
    ([commonsense("ABC", "D")], r"line 1: .*must be one of .*Received: 'D'"),
    ([commonsense("ABC", "A"), commonsense("ABC", None)], "line 2: .*either all rows have a label"),
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
    prefix=r"t\.jsonl.*",
)
def test_wrong_rows_are_refused_by_file_and_line(write, records):
    read_multiple_choice(write("t.jsonl", records))


def test_taking_examples_keeps_choices_and_labels_together(write):
    examples = read_multiple_choice(write("c.jsonl", [commonsense("ABC", x) for x in "ABC"]))
    assert examples.take([2, 0]).labels.tolist() == [2, 0]
    assert examples.take(slice(0, 1)).num_choices == 3
