"""Files that `train` reads are rows of `tag`, `answer` and `choose` too."""

import json

import pytest

from bert_keras.cli.example_files import files_by_name
from bert_keras.cli.text_rows import Row, answers_to, read_annotated
from bert_keras.datasets.table import format_of

pytestmark = pytest.mark.once

COLUMNS = {"tag": ("text",), "answer": ("question", "context"), "choose": ("context", "choices")}
QAS = [{"id": 1, "question": "Who?", "answers": [{"text": "Ada", "answer_start": 0}]}]
SQUAD = {"data": [{"paragraphs": [{"context": "Ada.", "qas": QAS}]}]}
SWAG = "sent1,sent2,ending0,ending1,ending2,ending3\nHe sits.,She,eats.,runs.,sits.,left.\n"
SWAG_ROW = ("He sits.", "She eats.", "She runs.", "She sits.", "She left.")


@pytest.mark.parametrize(
    ("command", "name", "content", "rows"),
    [
        ("tag", "a.txt", "EU NNP B-ORG\nsays VBZ O\n\nhi UH O\n", [(["EU", "says"],), (["hi"],)]),
        ("tag", "words.conll", "EU\nsays\n", [(["EU", "says"],)]),
        ("tag", "a.jsonl", json.dumps({"tokens": ["EU"], "ner_tags": ["O"]}), [(["EU"],)]),
        ("answer", "a.json", json.dumps(SQUAD), [("Who?", "Ada.")]),
        ("choose", "a.csv", SWAG, [SWAG_ROW]),
        # What has the fields of the command, or lines of text, is read as before.
        ("tag", "a.txt", "EU says hi\nhi O\n", None),
        ("tag", "a.jsonl", json.dumps({"text": "EU", "label": []}), None),
        ("answer", "a.jsonl", json.dumps({"question": "Who?", "context": "Ada."}), None),
        ("choose", "a.txt", "He sits.\tShe eats.\tShe runs.\n", None),
        ("classify", "a.txt", "EU B-ORG\nhi O\n", None),
    ],
)
def test_rows_of_files_that_train_reads(write, command, name, content, rows):
    path = str(write(name, content))
    found = read_annotated(command, path, format_of(path, "text"), COLUMNS.get(command, ("text",)))
    assert (found if found is None else [tuple(row) for row in found]) == rows


def test_standard_input_is_read_as_before():
    assert read_annotated("tag", "-", "text", ("text",)) is None


@pytest.mark.parametrize(
    ("names", "expected", "unread"),
    [
        ("train.txt valid.txt test.txt", ["train.txt", "valid.txt", "test.txt"], ""),
        ("a-train.csv a-val.csv README", ["a-train.csv", "a-val.csv", None], ""),
        ("train-0-of-2.parquet train-1-of-2.parquet validation-0-of-1.parquet",
         ["train-0-of-2.parquet", "validation-0-of-1.parquet", None], "train-1-of-2.parquet"),
    ],
)  # fmt: skip
def test_the_files_of_a_folder_are_found_by_name(write, tmp_path, capsys, names, expected, unread):
    for name in names.split():
        write(name, "")
    files = files_by_name(tmp_path)
    paths = [files.get(part) for part in ("train", "dev", "test")]
    assert [path and str(path).removeprefix(f"{tmp_path}/") for path in paths] == expected
    printed = capsys.readouterr().out
    assert unread in printed if unread else not printed


def test_answers_stay_in_their_column_where_rows_have_different_fields(tmp_path):
    with answers_to(tmp_path / "a.csv", "csv") as write:
        for record in ({"text": "a", "label": "x"}, {"text": "b"}):
            write({"label": "yes"}, Row([record["text"]], record))
    assert (tmp_path / "a.csv").read_text() == "text,label,answer_label\na,x,yes\nb,,yes\n"
