"""Files of texts and labels: their columns, formats and kinds of labels."""

import json

import pytest

from bert_keras.datasets import read_texts

ROWS = [{"id": 1, "review": "good; really", "stars": 5}, {"id": 2, "review": "bad", "stars": 1}]


def test_labels_that_occur_are_the_classes(write, capsys):
    found = read_texts(write("t.csv", '"a\nb",yes\nc,no\nd,maybe\n'), ["-2"], "-1")
    assert found.label_names == ("maybe", "no", "yes") and found.labels.tolist() == [2, 1, 0]
    found = read_texts(write("t.tsv", "text\tlabel\na\t1.5\nb\t2.5\n"), ["text"], "label")
    assert found.label_names == ("1.5", "2.5")
    few = write("few.csv", "text,label\n" + "".join(f"a{n},class {n}\n" for n in range(77)))
    assert len(read_texts(few, ["text"], "label").label_names) == 77
    assert "77 labels in 77 rows, such as ['class 0'" in capsys.readouterr().out
    read_texts(few, ["text"], "label", [f"class {n}" for n in range(150)])
    assert not capsys.readouterr().out


NO_LIST = json.dumps({"rows": ROWS}, indent=1)
SCORES = "a\t1\nb\t6\nc\tfar\n"
ABSENT = r"no column 'text'.*'id.*label_column.*separator"


@pytest.mark.parametrize(
    ("name", "content", "arguments", "message"),
    [
        ("t.csv", '"a\nb",yes\nd,x\n', (["-2"], "-1", ("yes",)), r"t\.csv, line 3: .* 'x'"),
        ("s.tsv", SCORES, (["0"], "1", None, "regression", (0.0, 5.0)), "line 2: .* from 0.0 to 5"),
        ("s.tsv", SCORES, (["0"], "1", None, "regression", (0.0, 9.0)), "line 3: .* from 0.0 to 9"),
        ("s.tsv", "a\t1\nb\t1_0\n", (["0"], "1", None, "regression"), "line 2: .* number.*'1_0'"),
        ("t.tsv", "text\tlabel\na\tx\n", (["text"], "text"), r"different .*\['text', 'text'\]"),
        ("t.tsv", "text\tlabel\na\t\nb\t\n", (["text"], "label"), r"t\.tsv, line 2: .*''"),
        ("t.tsv", "text\tlabel\na\tx\nb\tx\n", (["text"], "label"), r"two classes .* \('x',\)"),
        ("t.csv", 'a,"y, n"\n', (["0"], "1", ("n",), "multi_label"), r"line 1: .*\['n'\]\. .* 'y'"),
        ("t.csv", "a,\nb,\n", (["0"], "1", None, "multi_label"), r"t\.csv must have labels"),
        ("a.csv", "id;b,c\n1;2,3\n", (["text"], "label"), ABSENT),
        ("a.jsonl", ROWS, (["text"], "label"), ABSENT),
        ("b.json", NO_LIST, (["review"], "stars"), "b.json: there must be a list .*'rows'"),
        ("p.parquet", "text", (["text"], "label"), r"p\.parquet.*footer"),
    ],
)
def test_rows_and_columns_that_are_refused(write, name, content, arguments, message):
    with pytest.raises(ValueError, match=message):
        read_texts(write(name, content), *arguments)


def test_json_has_no_separator(write):
    with pytest.raises(ValueError, match="has no delimiter"):
        read_texts(write("a.jsonl", ROWS), ["review"], "stars", separator=";")
