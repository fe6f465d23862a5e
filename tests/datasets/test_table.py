"""Tables: columns by name and by number, and the lines of rows.

What separates columns, quotes fields and encodes text is in test_file_layouts.py.
"""

import csv
import tracemalloc

import pytest
from checks import cases, refused

from bert_keras.datasets import read_records, table
from bert_keras.datasets.table import find_column


def read_columns(path, columns=None, **options):
    records = [record for _, record in read_records(path, names=columns or (), **options)]
    header = list(records[0])
    keys = {name: header[find_column(path, header, name)] for name in columns or header}
    return {name: [record[key] for record in records] for name, key in keys.items()}


STARRED = "gj04\t1\t\tFirst.\ngj04\t0\t*\tSecond."


@cases(
    ("t.tsv", 'a\tb\n"open\tthe "mid" end"\n""\t"x"\n', {},
     {"a": ['"open', '""'], "b": ['the "mid" end"', '"x"']}),
    # Columns by number mean that there is no header.
    ("t.tsv", STARRED, {"columns": [3, 1]}, {3: ["First.", "Second."], 1: ["1", "0"]}),
    ("t.tsv", STARRED, {"columns": [-1]}, {-1: ["First.", "Second."]}),
    ("t.tsv", STARRED, {"columns": [0], "header": True}, {0: ["gj04"]}),
    ("t.tsv", "a\tb\n", {"header": False}, {"0": ["a"], "1": ["b"]}),
    ("u.tsv", "a\tb\n1\t2\n3\t4\n", {"columns": ["a", "a"]}, {"a": ["1", "3"]}),
    # The delimiter is a tab if the first line has one.
    ("sts-dev.csv", "main\t2.5\tA girl, smiling.\n", {"columns": [2]},
     {2: ["A girl, smiling."]}),
    ("one_column.txt", "Hello, you\nBye\n", {"columns": [0]}, {0: ["Hello, you", "Bye"]}),
    ("t.tsv", "a\tb\r\n x \ty\x85z\u3000\r\n\r\n", {}, {"a": [" x "], "b": ["y\x85z\u3000"]}),
)  # fmt: skip
def test_a_table_is_read_by_columns(write, name, content, arguments, expected):
    assert read_columns(write(name, content), **arguments) == expected


def test_columns_of_one_name_are_numbered_as_in_pandas(write):
    path = write("t.csv", "text,a,a,a.1,a\nx,1,2,3,4\n")
    [(_, record)] = read_records(path, names=["text", "a.3"])
    assert record == {"text": "x", "a": "1", "a.2": "2", "a.1": "3", "a.3": "4"}
    assert {*record} == {*pytest.importorskip("pandas").read_csv(path)}


def test_records_on_lines_may_have_a_list_under_data(write):
    records = [{"a": 1, "data": [{"x": 1}]}, {"a": 2, "data": []}]
    assert [record for _, record in read_records(write("t.jsonl", records))] == records


def test_csv_equals_what_the_csv_module_wrote(tmp_path):
    rows = [["a", "b"], ['"', ","], ["\n", ""], ["x" * 300_000, "\u2028 \x85"], [" ", "''"]]
    with open(tmp_path / "t.csv", "w", newline="", encoding="utf-8") as stream:
        csv.writer(stream).writerows(rows)
    limit = csv.field_size_limit()
    table = read_columns(tmp_path / "t.csv")
    assert [[*row] for row in zip(table["a"], table["b"], strict=True)] == rows[1:]
    assert csv.field_size_limit() == limit


def test_rows_know_the_line_on_which_they_begin(write):
    rows = dict(read_records(write("t.csv", '\na,b\n"one\ntwo",1\n\nthree,2\n')))
    assert rows == {"line 3": {"a": "one\ntwo", "b": "1"}, "line 6": {"a": "three", "b": "2"}}


@refused(
    ("t.tsv", "a\tb\n1\t2\n\n3\n", {}, r"line 4: .* as the first, 2, not 1\."),
    ("t.csv", 'a,b\n"x\ny",1\n"u\nv\nw"\n', {}, "line 4: every row"),
    ("t.csv", 'a,b\n1,2\n3,"open\n4,5\n', {}, "line 3: the row that begins here is not CSV"),
    ("t.tsv", "a\tb\nx\t1\n", {"columns": ["c"]}, r"no column 'c'\. Received: \['a', 'b'\]"),
    ("t.tsv", "a\tb\n1\t2\n", {"columns": [2]}, r"no column 2\. Received: \['0', '1'\]"),
    ("t.tsv", "a\n1\n", {"columns": ["a"], "header": False}, "columns are numbers"),
    ("t.tsv", "", {}, "t.tsv is empty"),
    ("t.tsv", "\n\r\n", {}, "t.tsv is empty"),
    ("t.tsv", "\ufeff", {}, "t.tsv is empty"),
    ("t.tsv", "a\n", {"delimiter": "||"}, "--separator.* must be a character"),
)
def test_tables_and_arguments_that_are_refused(write, name, content, options):
    read_columns(write(name, content), **options)


@pytest.mark.parametrize("name", ["t.parquet", "t.csv", "t.tsv", "t.jsonl"])
def test_the_memory_for_reading_does_not_depend_on_the_number_of_rows(tmp_path, name, monkeypatch):
    pandas, path = pytest.importorskip("pandas"), tmp_path / name
    rows = [("a text of many words " * 10, "yes")] * 6_000
    frame = pandas.DataFrame(rows, columns=["text", "label"])
    if path.suffix == ".parquet":
        frame.to_parquet(path)
    elif path.suffix == ".jsonl":
        frame.to_json(path, orient="records", lines=True)
    else:
        frame.to_csv(path, index=False, sep="\t" if path.suffix == ".tsv" else ",")
    monkeypatch.setattr(table, "_CHARACTERS_LOOKED_AT", 10_000)
    tracemalloc.start()
    assert sum(1 for _ in read_records(path)) == len(rows)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1e6


def test_a_quoted_field_may_be_cut_where_looking_for_quotation_marks_ends(write, monkeypatch):
    rows = 'text\tlabel\n"a ""b"" c"\tyes\n"d\ne"\tno\n'
    for size in range(len("text\tlabel\n"), len(rows) + 1):
        monkeypatch.setattr(table, "_CHARACTERS_LOOKED_AT", size)
        records = [record for _, record in read_records(write("t.tsv", rows))]
        assert [record["text"] for record in records] == ['a "b" c', "d\ne"]
