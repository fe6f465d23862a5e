import csv
import gzip

import pytest

from bert_keras.datasets import read_numbered_table, read_table


def write(path, text, encoding="utf-8"):
    path.write_bytes(text.encode(encoding))
    return path


def test_quotation_marks_in_tsv_are_letters(tmp_path):
    path = write(tmp_path / "t.tsv", 'a\tb\n"open\tthe "mid" end"\n""\t"x"\n')
    assert read_table(path) == {"a": ['"open', '""'], "b": ['the "mid" end"', '"x"']}


def test_quotes_in_csv_hold_delimiters_and_line_ends(tmp_path):
    path = write(tmp_path / "t.csv", 'text,label\r\n"one, ""two""\nthree",1\r\nfour,0\r\n')
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
def test_a_byte_order_mark_is_no_part_of_the_first_name(tmp_path, encoding):
    path = write(tmp_path / "t.tsv", "Quality\t#1 String\n1\tcafé\n", encoding)
    assert read_table(path, ["Quality", "#1 String"]) == {"Quality": ["1"], "#1 String": ["café"]}


def test_gzip_tables_keep_their_delimiter(tmp_path):
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress(b"a,b\n1,2\n"))
    assert read_table(tmp_path / "t.csv.gz") == {"a": ["1"], "b": ["2"]}


def test_columns_by_number_mean_no_header(tmp_path):
    path = write(tmp_path / "t.tsv", "gj04\t1\t\tFirst.\ngj04\t0\t*\tSecond.")
    assert read_table(path, [3, 1]) == {3: ["First.", "Second."], 1: ["1", "0"]}
    assert read_table(path, [-1]) == {-1: ["First.", "Second."]}
    assert read_table(path, 0, header=True) == {0: ["gj04"]}
    assert read_table(path, header=False)[3] == ["First.", "Second."]


def test_the_delimiter_is_a_tab_where_the_first_line_has_one(tmp_path):
    path = write(tmp_path / "sts-dev.csv", "main\t2.5\tA girl, smiling.\nmain\t3\tA boy.\n")
    assert read_table(path, [2]) == {2: ["A girl, smiling.", "A boy."]}
    path = write(tmp_path / "one_column.txt", "Hello, you\nBye\n")
    assert read_table(path, [0]) == {0: ["Hello, you", "Bye"]}
    path = write(tmp_path / "semicolons.csv", 'a;b\n1;"2;3"\n')
    assert read_table(path, delimiter=";") == {"a": ["1"], "b": ["2;3"]}


def test_white_space_inside_fields_is_kept(tmp_path):
    path = write(tmp_path / "t.tsv", "a\tb\r\n x \ty\x85z\u3000\r\n\r\n")
    assert read_table(path) == {"a": [" x "], "b": ["y\x85z\u3000"]}


def test_a_wrong_number_of_fields_is_reported_by_file_and_line(tmp_path):
    path = write(tmp_path / "t.tsv", "a\tb\n1\t2\n\n3\n")
    with pytest.raises(ValueError, match=r"t\.tsv, line 4: .* as the first, 2\. Received 1: "):
        read_table(path)


def test_a_row_is_counted_from_its_first_line(tmp_path):
    path = write(tmp_path / "t.csv", 'a,b\n"x\ny",1\n"u\nv\nw"\n')
    with pytest.raises(ValueError, match=r"t\.csv, line 4: every row"):
        read_table(path)


def test_a_quotation_mark_never_closed_in_csv_is_reported(tmp_path):
    path = write(tmp_path / "t.csv", 'a,b\n1,2\n3,"open\n4,5\n')
    with pytest.raises(ValueError, match=r"t\.csv, line 3: the row that begins here is not CSV"):
        read_table(path)


def test_a_missing_column_lists_those_that_exist(tmp_path):
    path = write(tmp_path / "t.tsv", "sentence\tlabel\nx\t1\n")
    with pytest.raises(
        ValueError, match=r"no column 'text'. Its columns are \['sentence', 'label'"
    ):
        read_table(path, ["text"])
    with pytest.raises(ValueError, match=r"has 2 columns, numbered from 0\. Received column 2"):
        read_table(path, [2])
    with pytest.raises(ValueError, match="columns are numbers"):
        read_table(path, ["label"], header=False)


def test_two_columns_of_one_name_are_refused(tmp_path):
    path = write(tmp_path / "t.tsv", "a\ta\n1\t2\n")
    with pytest.raises(ValueError, match="more than one column 'a'"):
        read_table(path, ["a"])


@pytest.mark.parametrize("content", ["", "\n\r\n", "\ufeff"])
def test_an_empty_file_is_refused(tmp_path, content):
    path = write(tmp_path / "t.tsv", content)
    with pytest.raises(ValueError, match=r"t\.tsv is empty"):
        read_table(path, ["a"])


def test_arguments_are_checked(tmp_path):
    path = write(tmp_path / "t.tsv", "a\n")
    with pytest.raises(ValueError, match="`delimiter` must be one character"):
        read_table(path, delimiter="||")
    with pytest.raises(ValueError, match="`header` must be"):
        read_table(path, header="yes")


def test_rows_know_the_line_on_which_they_begin(tmp_path):
    path = write(tmp_path / "t.csv", 'a,b\n"one\ntwo",1\n\nthree,2\n')
    table, lines = read_numbered_table(path, ["b"])
    assert table == {"b": ["1", "2"]} and lines == [2, 5]
    assert read_numbered_table(path, [0], header=False)[1] == [1, 2, 5]


def test_a_column_asked_for_twice_is_read_once(tmp_path):
    path = tmp_path / "t.tsv"
    path.write_text("a\tb\n1\t2\n3\t4\n")
    assert read_table(path, ["a", "a"]) == {"a": ["1", "3"]}
