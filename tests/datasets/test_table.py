"""Tables: delimiters, quotation marks, columns by name and by number, and the lines of rows."""

import csv
import gzip

import pytest

from bert_keras.datasets import read_rows, read_table


def test_quotation_marks_in_tsv_are_letters(write):
    path = write("t.tsv", 'a\tb\n"open\tthe "mid" end"\n""\t"x"\n')
    assert read_table(path) == {"a": ['"open', '""'], "b": ['the "mid" end"', '"x"']}


def test_quotes_in_csv_hold_delimiters_and_line_ends(write):
    path = write("t.csv", 'text,label\r\n"one, ""two""\nthree",1\r\nfour,0\r\n')
    table = read_table(path, columns=["label", "text"])
    assert table == {"label": ["1", "0"], "text": ['one, "two"\nthree', "four"]}


def test_csv_equals_what_the_csv_module_wrote(tmp_path):
    rows = [["a", "b"], ['"', ","], ["\n", ""], ["x" * 300_000, "\u2028 \x85"], [" ", "''"]]
    with open(tmp_path / "t.csv", "w", newline="", encoding="utf-8") as stream:
        csv.writer(stream).writerows(rows)
    limit = csv.field_size_limit()
    table = read_table(tmp_path / "t.csv")
    assert [[*row] for row in zip(table["a"], table["b"], strict=True)] == rows[1:]
    assert csv.field_size_limit() == limit


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_a_byte_order_mark_is_not_part_of_the_first_name(write, encoding):
    path = write("t.tsv", "Quality\t#1 String\n1\tcafé\n".encode(encoding))
    assert read_table(path, ["Quality", "#1 String"]) == {"Quality": ["1"], "#1 String": ["café"]}


def test_columns_by_number_mean_no_header(write):
    path = write("t.tsv", "gj04\t1\t\tFirst.\ngj04\t0\t*\tSecond.")
    assert read_table(path, [3, 1]) == {3: ["First.", "Second."], 1: ["1", "0"]}
    assert read_table(path, [-1]) == {-1: ["First.", "Second."]}
    assert read_table(path, 0, header=True) == {0: ["gj04"]}
    assert read_table(path, header=False)[3] == ["First.", "Second."]
    assert read_table(write("u.tsv", "a\tb\n1\t2\n3\t4\n"), ["a", "a"]) == {"a": ["1", "3"]}


def test_the_delimiter_is_a_tab_if_the_first_line_has_one(write):
    path = write("sts-dev.csv", "main\t2.5\tA girl, smiling.\nmain\t3\tA boy.\n")
    assert read_table(path, [2]) == {2: ["A girl, smiling.", "A boy."]}
    path = write("one_column.txt", "Hello, you\nBye\n")
    assert read_table(path, [0]) == {0: ["Hello, you", "Bye"]}
    path = write("semicolons.csv", 'a;b\n1;"2;3"\n')
    assert read_table(path, delimiter=";") == {"a": ["1"], "b": ["2;3"]}
    path = write("t.csv.gz", gzip.compress(b"a,b\n1,2\n"))
    assert read_table(path) == {"a": ["1"], "b": ["2"]}


def test_white_space_inside_fields_is_kept(write):
    path = write("t.tsv", "a\tb\r\n x \ty\x85z\u3000\r\n\r\n")
    assert read_table(path) == {"a": [" x "], "b": ["y\x85z\u3000"]}


def test_rows_know_the_line_on_which_they_begin(write):
    path = write("t.csv", '\na,b\n"one\ntwo",1\n\nthree,2\n')
    assert [place for place, _ in read_rows(path)] == ["line 2", "line 3", "line 6"]
    assert [fields for _, fields in read_rows(path)] == [
        ["a", "b"],
        ["one\ntwo", "1"],
        ["three", "2"],
    ]


@pytest.mark.parametrize(
    ("name", "content", "options", "message"),
    [
        ("t.tsv", "a\tb\n1\t2\n\n3\n", {}, r"line 4: .* as the first, 2\. Received 1: "),
        ("t.csv", 'a,b\n"x\ny",1\n"u\nv\nw"\n', {}, "line 4: every row"),
        ("t.csv", 'a,b\n1,2\n3,"open\n4,5\n', {}, "line 3: the row that begins here is not CSV"),
        ("t.tsv", "a\tb\nx\t1\n", {"columns": ["c"]}, r"no column 'c'\. .* 2 columns: \['a', 'b'"),
        ("t.tsv", "a\tb\n1\t2\n", {"columns": [2]}, "no column 2. .* 2 columns"),
        ("t.tsv", "a\n1\n", {"columns": ["a"], "header": False}, "columns are numbers"),
        ("t.tsv", "a\ta\n1\t2\n", {"columns": ["a"]}, "more than one column 'a'"),
        ("t.tsv", "", {}, "t.tsv is empty"),
        ("t.tsv", "\n\r\n", {}, "t.tsv is empty"),
        ("t.tsv", "\ufeff", {}, "t.tsv is empty"),
        ("t.tsv", "a\n", {"delimiter": "||"}, "`delimiter` must be one character"),
        ("t.tsv", "a\n", {"header": "yes"}, "`header` must be"),
    ],
)
def test_tables_and_arguments_that_are_refused(write, name, content, options, message):
    with pytest.raises(ValueError, match=message):
        read_table(write(name, content), **options)
