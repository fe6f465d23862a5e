"""Tables of texts and labels: the columns that are named, and no others."""

import json

import pytest

from bert_keras.datasets import read_texts


def write(path, rows):
    path.write_text("".join(f"{row}\n" for row in rows), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("rows", "columns"),
    [
        (["a", "b"], (["0"], "1")),
        (["a", "b"], (["0"], "-1")),
        (["text", "a", "b"], (["0"], "label")),
        (["id\ttext", "1\ta", "2\tb"], (["text", None], "label")),
    ],
)
def test_files_to_predict_may_lack_labels(tmp_path, rows, columns):
    path = write(tmp_path / "test.tsv", rows)
    found = read_texts(path, *columns, ("no", "yes"), may_lack_labels=True)
    assert found.texts == ["a", "b"] and found.labels is None
    with pytest.raises(ValueError, match=r"test\.tsv"):
        read_texts(path, *columns, ("no", "yes"))


def test_labels_are_read_by_name_and_their_lines_are_known(tmp_path):
    path = write(tmp_path / "t.csv", ['"a\nb",yes', "c,no", "d,maybe"])
    with pytest.raises(ValueError, match=r"t\.csv, line 4: .*Received: 'maybe'"):
        read_texts(path, ["-2"], "-1", ("no", "yes"))
    found = read_texts(path, ["-2"], "-1")
    assert found.label_names == ("maybe", "no", "yes") and found.labels.tolist() == [2, 1, 0]
    path = write(tmp_path / "s.tsv", ["a\t1", "b\t6", "c\tnan"])
    for limits, line in (((0.0, 5.0), 2), ((0.0, 9.0), 3)):
        with pytest.raises(ValueError, match=f"line {line}: a score must be a number from 0.0"):
            read_texts(path, ["0"], "1", None, "regression", limits)


def test_columns_of_texts_and_labels_must_differ_and_hold_two_classes(tmp_path, capsys):
    path = write(tmp_path / "t.tsv", ["text\tlabel", "a\t1.5", "b\t2.5"])
    with pytest.raises(ValueError, match=r"different columns. Received: \['text', 'text'\]"):
        read_texts(path, ["text"], "text")
    assert read_texts(path, ["text"], "label").label_names == ("1.5", "2.5")
    assert "1.5 are taken for classes" in capsys.readouterr().out
    path = write(tmp_path / "t.tsv", ["text\tlabel", "a\t", "b\t"])
    with pytest.raises(ValueError, match=r"t\.tsv, line 2: .*Received: ''"):
        read_texts(path, ["text"], "label")
    path = write(tmp_path / "t.tsv", ["text\tlabel", "a\tx", "b\tx"])
    with pytest.raises(ValueError, match=r"at least two classes .* 'x' alone"):
        read_texts(path, ["text"], "label")


def test_several_labels_are_zeros_and_ones_and_their_lines_are_known(tmp_path):
    path = write(tmp_path / "t.csv", ['a,"yes, no"', "b,", "c,no"])
    found = read_texts(path, ["0"], "1", problem_type="multi_label")
    assert found.label_names == ("no", "yes") and found.problem_type == "multi_label"
    assert found.labels.tolist() == [[1, 1], [0, 0], [1, 0]]
    with pytest.raises(ValueError, match=r"t\.csv, line 1: .* \['no'\]\. Received: 'yes'"):
        read_texts(path, ["0"], "1", ("no",), "multi_label")
    path = write(tmp_path / "empty.csv", ["a,", "b,"])
    with pytest.raises(ValueError, match=r"empty\.csv has no labels"):
        read_texts(path, ["0"], "1", problem_type="multi_label")


ROWS = [{"id": 1, "review": "good; really", "stars": 5}, {"id": 2, "review": "bad", "stars": 1}]


def test_every_format_gives_the_same_texts_and_labels(tmp_path):
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame(ROWS)
    (tmp_path / "a.json").write_text(json.dumps(ROWS))
    (tmp_path / "b.json").write_text(json.dumps({"data": ROWS}, indent=1))
    (tmp_path / "c.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    (tmp_path / "d.json").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    table.to_parquet(tmp_path / "e.parquet")
    for name, separator in (("f.csv", ","), ("g.csv", ";"), ("h.csv", "|"), ("i.tsv", "\t")):
        table.to_csv(tmp_path / name, sep=separator, index=False)
    for path in sorted(tmp_path.iterdir()):
        found = read_texts(path, ["review"], "stars")
        assert found.texts == ["good; really", "bad"], path
        assert found.label_names == ("1", "5") and found.labels.tolist() == [1, 0]
    table.to_csv(tmp_path / "odd.txt", sep="^", index=False)
    assert read_texts(tmp_path / "odd.txt", ["review"], "stars", separator="^").texts[1] == "bad"


def test_columns_that_do_not_fit_are_told_with_those_that_are_there(tmp_path):
    for name, lines in (("a.csv", ["id;b,c", "1;2,3"]), ("a.jsonl", [json.dumps(ROWS[0])])):
        path = write(tmp_path / name, lines)
        with pytest.raises(ValueError, match=r"no column 'text'.*'id.*label_column.*separator"):
            read_texts(path, ["text"], "label")
    with pytest.raises(ValueError, match="has no delimiter"):
        read_texts(path, ["review"], "stars", separator=";")
    (tmp_path / "b.json").write_text(json.dumps({"rows": ROWS}, indent=1))
    with pytest.raises(ValueError, match=r"b\.json must hold a list of JSON objects.*'rows'"):
        read_texts(tmp_path / "b.json", ["review"], "stars")


def test_lists_and_truths_are_labels_in_json(tmp_path):
    rows = [{"text": "a", "label": ["x", "y"]}, {"text": "b", "label": []}]
    path = write(tmp_path / "a.jsonl", map(json.dumps, rows))
    found = read_texts(path, ["text"], "label", problem_type="multi_label")
    assert found.label_names == ("x", "y") and found.labels.tolist() == [[1, 1], [0, 0]]
    rows = [{"text": "a", "label": True}, {"text": "b", "label": False}]
    found = read_texts(write(tmp_path / "b.jsonl", map(json.dumps, rows)), ["text"], "label")
    assert found.label_names == ("false", "true")
