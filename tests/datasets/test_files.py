"""Bytes to lines of text: encodings, line ends, gzip, JSON, and the places of errors."""

import gzip

import pytest
from checks import refused

from bert_keras.datasets import read_records
from bert_keras.datasets.files import parse_json, read_lines


def read_json_lines(path):
    return read_records(path, kind="jsonl")


def test_only_newline_ends_a_line_and_a_mark_inside_the_text_is_kept(write):
    lines = ["a\x85b\u2028c\x0cd\x1ce\n", "\ufeffb\n", "\u00a0f"]
    assert list(read_lines(write("t.txt", "".join(lines)))) == lines


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_other_bytes_are_reported_by_file_line_and_byte(write, mark):
    content = mark + "é fine\n".encode() + "caf\xe9\n".encode("latin1")
    message = f"mixed.txt, line 2, byte {content.rindex(0xE9)}: 0xe9 is not UTF-8"
    with pytest.raises(ValueError, match=message):
        list(read_lines(write("mixed.txt", content)))


def test_json_lines_carry_line_numbers_and_skip_blank_lines(write):
    path = write("t.jsonl", '{"a": 1}\n\n{"a": "\\ud83d\\ude42"}\n')
    assert list(read_json_lines(path)) == [("line 1", {"a": 1}), ("line 3", {"a": "🙂"})]


@refused(
    (read_lines, "one\ntwo".encode("utf-16") + b"\x00", "cannot be read .*utf-16.*byte 0x00"),
    (read_lines, "a".encode("utf-16-le"), "line 1, .*is UTF-16, name its `encoding` .--encoding"),
    (read_lines, gzip.compress(b"text\n" * 10000)[:-20], "cannot be read .*EOF.* compress it"),
    (read_lines, gzip.compress(b"text\n")[:-8] + b"x" * 8, "cannot be read .*GzipF.* compress"),
    (read_json_lines, "{}\n[1]", "line 2: each line must be one JSON object. Received: \\[1\\]"),
    (read_json_lines, '{}\n"a"', "line 2: each line must be one JSON object. Received: 'a'"),
    (read_json_lines, "{}\n{", "line 2, column 2: not JSON"),
    (
        read_json_lines,
        '{}\n{"a": "\\uD83D"}',
        "line 2: not JSON that can be read .*surrogates not allowed",
    ),
    (lambda path: parse_json('{"a": 1,\n "b": }', path), "", "line 2, column 7: not JSON"),
    (
        lambda path: parse_json("[" * 200000, path),
        "",
        "line 1: not JSON that can be read .*recursion",
    ),
    prefix=r"t\.txt.*",
)
def test_damaged_files_are_refused_by_file_and_line(write, read, content):
    list(read(write("t.txt", content)))


@refused(("", IsADirectoryError, "directory"), ("absent.txt", FileNotFoundError, "absent"))
def test_folders_and_absent_files_are_refused(tmp_path, name):
    list(read_lines(tmp_path / name))
