import json

import pytest

from bert_keras.datasets import read_multiple_choice

SWAG_HEADER = (
    ",video-id,fold-ind,startphrase,sent1,sent2,gold-source,ending0,ending1,ending2,ending3"
)


SWAG_RECORD = {"sent1": "A.", "sent2": "B", "label": 0} | {f"ending{i}": f"c{i}" for i in range(4)}


def write_lines(path, *records):
    path.write_text("\n".join(map(json.dumps, records)) + "\n", encoding="utf-8")
    return path


def test_swag_csv_puts_the_second_sentence_together(tmp_path):
    path = tmp_path / "val.csv"
    path.write_text(
        f'{SWAG_HEADER},label\n0,anet,1,He sits. She,"He sits, ""there"".",She,gold,'
        'stands.,runs.,"eats, then drinks.",left.,2\n',
        encoding="utf-8",
    )
    examples = read_multiple_choice(path)
    assert examples.contexts == ['He sits, "there".']
    assert examples.choices == [["She stands.", "She runs.", "She eats, then drinks.", "She left."]]
    assert examples.labels.tolist() == [2] and examples.labels.dtype == "int32"
    assert examples.num_choices == 4 and len(examples) == 1


def test_swag_test_csv_has_no_labels(tmp_path):
    path = tmp_path / "test.csv"
    path.write_text(f"{SWAG_HEADER}\n0,a,1,A. B,A.,B,gold,c,d,e,f\n", encoding="utf-8")
    assert read_multiple_choice(path).labels is None


def test_swag_json_lines_equal_the_csv(tmp_path):
    record = {"sent1": "A.", "sent2": "B", "label": 3}
    record |= {f"ending{number}": f"e{number}" for number in range(4)}
    examples = read_multiple_choice(write_lines(tmp_path / "s.json", record))
    assert examples.contexts == ["A."] and examples.choices == [["B e0", "B e1", "B e2", "B e3"]]
    assert examples.labels.tolist() == [3]


def test_swag_with_joined_sentences(tmp_path):
    record = {"startphrase": "A. B", "answer": 1, "choices": ["w", "x", "y", "z"]}
    examples = read_multiple_choice(write_lines(tmp_path / "s.jsonl", record))
    assert (examples.contexts, examples.choices) == (["A. B"], [["w", "x", "y", "z"]])
    assert examples.labels.tolist() == [1]


def commonsense(num_choices, key):
    choices = [{"label": letter, "text": f"text {letter}"} for letter in "ABCDE"[:num_choices]]
    record = {"id": "1", "question": {"stem": "Where?", "choices": choices}}
    return record | ({} if key is None else {"answerKey": key})


@pytest.mark.parametrize("num_choices", [3, 5])
def test_commonsense_qa_letters_become_numbers(tmp_path, num_choices):
    records = [commonsense(num_choices, "C"), commonsense(num_choices, "A")]
    examples = read_multiple_choice(write_lines(tmp_path / "c.jsonl", *records))
    assert examples.contexts == ["Where?", "Where?"]
    assert examples.num_choices == num_choices and examples.labels.tolist() == [2, 0]
    assert examples.choices[0][2] == "text C"


def test_commonsense_qa_test_set_has_no_labels(tmp_path):
    path = write_lines(tmp_path / "c.jsonl", commonsense(5, None))
    assert read_multiple_choice(path).labels is None


def test_e_care_asks_for_the_cause_or_the_effect(tmp_path):
    record = {"premise": "It rains.", "hypothesis1": "a", "hypothesis2": "b", "label": 1}
    path = write_lines(
        tmp_path / "e.jsonl", record | {"ask-for": "cause"}, record | {"ask-for": "effect"}
    )
    examples = read_multiple_choice(path)
    assert examples.contexts == ["It rains. What is the cause?", "It rains. What is the effect?"]
    assert examples.choices == [["a", "b"], ["a", "b"]] and examples.labels.tolist() == [1, 1]


@pytest.mark.parametrize(
    "records, message",
    [
        ([{"a": 1}], "line 1: a row must have the fields of one of these layouts"),
        ([commonsense(3, "D")], r"line 1: .*must be one of .*Received: 'D'"),
        ([commonsense(3, "A"), commonsense(5, "A")], r"line 2: .*as the first, 3\. Received 5"),
        ([commonsense(3, "A"), commonsense(3, None)], "line 2: either all rows have a label"),
        ([{"startphrase": "a", "answer": 2, "choices": ["x", "y"]}], "from 0 to 1. Received: 2"),
        ([{"startphrase": "a", "answer": -1, "choices": ["x", "y"]}], "from 0 to 1"),
        ([{"startphrase": "a", "answer": True, "choices": ["x", "y"]}], "Received: True"),
        ([{"startphrase": "a", "answer": 0, "choices": ["x", 5]}], "choices must be texts"),
        ([{"startphrase": "a", "answer": 0, "choices": []}], "choices must be texts"),
        ([{"question": {"choices": [{"label": "A", "text": "x"}]}}], "line 1: .*'stem'"),
        ([{"startphrase": 7, "answer": 0, "choices": ["x"]}], "contexts and choices must be texts"),
        ([{"question": "Where?"}], "line 1: not a row of this layout"),
        ([{"premise": "a", "ask-for": "why", "hypothesis1": "b"}], "'cause' or 'effect'"),
        (
            [{"premise": None, "ask-for": "cause", "hypothesis1": "b", "hypothesis2": "c"}],
            "be texts",
        ),
        ([SWAG_RECORD | {"sent2": None}], "line 1: .*be texts"),
        ([SWAG_RECORD | {"ending3": 3}], "line 1: .*be texts"),
        ([SWAG_RECORD | {"sent2": "", "ending2": " "}], "the choice 2, counted from 0, is blank"),
        ([{"startphrase": "a", "answer": 0, "choices": ["x", ""]}], "choice 1, .* is blank"),
        ([], "holds no examples"),
    ],
)
def test_wrong_rows_are_refused_by_file_and_line(tmp_path, records, message):
    with pytest.raises(ValueError, match=rf"t\.jsonl.*{message}"):
        read_multiple_choice(write_lines(tmp_path / "t.jsonl", *records))


def test_a_csv_row_cut_short_is_refused(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(f"{SWAG_HEADER}\n0,a\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"line 2: a row must have 11 fields\. Received 2"):
        read_multiple_choice(path)


def test_taking_examples_keeps_choices_and_labels_together(tmp_path):
    records = [commonsense(3, letter) for letter in "ABC"]
    examples = read_multiple_choice(write_lines(tmp_path / "c.jsonl", *records))
    assert examples.take([2, 0]).labels.tolist() == [2, 0]
    assert examples.take(slice(0, 1)).num_choices == 3


def test_cosmos_qa_is_read_from_csv(tmp_path):
    path = tmp_path / "valid.csv"
    names = "id,context,question,answer0,answer1,answer2,answer3,label"
    path.write_text(f'{names}\n1,"It rained, hard.",Why?,a,b,c,d,2\n', encoding="utf-8")
    examples = read_multiple_choice(path)
    assert examples.contexts == ["It rained, hard. Why?"]
    assert examples.choices == [["a", "b", "c", "d"]] and examples.labels.tolist() == [2]
