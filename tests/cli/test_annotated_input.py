"""Files that `train` and `tag` read, and answers of rows with different fields."""

import pytest
from checks import cases

from bert_keras.cli.example_files import files_by_name
from bert_keras.cli.text_rows import answers_to, rows_of_tagged

pytestmark = pytest.mark.once


def test_the_words_of_tagged_sentences_are_rows(write):
    rows = list(rows_of_tagged(write("a.txt", "EU NNP B-ORG\nsays VBZ O\n\nhi UH O\n")))
    assert rows == [((["EU", "says"],), {"text": "EU says"}), ((["hi"],), {"text": "hi"})]


@cases(
    ("train.txt valid.txt test.txt", ["train.txt", "valid.txt", "test.txt"], ""),
    (".DS_Store .only.tsv.swp only.tsv", ["only.tsv", None, None], ""),
    ("a-train.csv a-val.csv README", ["a-train.csv", "a-val.csv", None], ""),
    ("train-0-of-2.parquet train-1-of-2.parquet validation-0-of-1.parquet",
     ["train-0-of-2.parquet", "validation-0-of-1.parquet", None], "train-1-of-2.parquet"),
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
            write({"label": "yes"}, [record["text"]], record)
    assert (tmp_path / "a.csv").read_text() == "text,label,answer_label\na,x,yes\nb,,yes\n"
