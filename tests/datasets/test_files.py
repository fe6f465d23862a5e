import gzip

import pytest

from bert_keras.datasets.files import read_json, read_json_lines, read_lines, read_text


def write(path, content):
    path.write_bytes(content)
    return path


def test_only_newline_ends_a_line(tmp_path):
    text = "a\x85b\u2028c\x0cd\x1ce\n\u00a0f"
    path = write(tmp_path / "t.txt", text.encode())
    assert list(read_lines(path)) == ["a\x85b\u2028c\x0cd\x1ce\n", "\u00a0f"]


@pytest.mark.parametrize(
    "encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-be-bom", "utf-32", "gzip"]
)
def test_encodings_announced_by_a_mark_give_the_same_text(tmp_path, encoding):
    text = "naïve café\r\n中文 🙂\nlast"
    encoded = {
        "utf-16-be-bom": lambda: b"\xfe\xff" + text.encode("utf-16-be"),
        "gzip": lambda: gzip.compress(text.encode("utf-8-sig")),
    }.get(encoding, lambda: text.encode(encoding))()
    path = write(tmp_path / "t.txt", encoded)
    assert list(read_lines(path)) == ["naïve café\r\n", "中文 🙂\n", "last"]
    assert read_text(str(path)) == text


def test_a_mark_inside_the_text_is_kept(tmp_path):
    path = write(tmp_path / "t.txt", "a\n\ufeffb\n".encode())
    assert list(read_lines(path)) == ["a\n", "\ufeffb\n"]


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_other_bytes_are_reported_by_file_line_and_byte(tmp_path, mark):
    content = mark + "é fine\n".encode() + "caf\xe9\n".encode("latin1")
    path = write(tmp_path / "mixed.txt", content)
    with pytest.raises(ValueError) as error:
        list(read_lines(path))
    position = content.rindex(b"\xe9")
    assert f"mixed.txt, line 2, byte {position}: 0xe9 is not UTF-8" in str(error.value)


def test_broken_utf16_is_reported_by_file_and_line(tmp_path):
    path = write(tmp_path / "t.txt", "one\ntwo".encode("utf-16") + b"\x00")
    with pytest.raises(ValueError, match=r"t\.txt, line 2, byte \d+: not UTF-16"):
        list(read_lines(path))


def test_utf16_without_a_mark_is_refused(tmp_path):
    path = write(tmp_path / "t.txt", "plain".encode("utf-16-le"))
    with pytest.raises(ValueError, match="line 1: holds NUL characters"):
        list(read_lines(path))


def test_replacing_bad_bytes_counts_the_lines(tmp_path):
    path = write(tmp_path / "t.txt", b"a\xffb\nfine\n\xe4\xb8\n")
    with pytest.warns(UserWarning, match="2 lines hold bytes that are not UTF-8"):
        lines = list(read_lines(path, errors="replace"))
    assert lines == ["a\ufffdb\n", "fine\n", "\ufffd\n"]


def test_a_cut_gzip_file_is_refused(tmp_path):
    path = write(tmp_path / "t.gz", gzip.compress(b"text\n" * 10000)[:-20])
    with pytest.raises(ValueError, match=r"t\.gz is not a complete gzip file"):
        list(read_lines(path))


def test_a_folder_and_a_missing_file_are_refused(tmp_path):
    with pytest.raises(ValueError, match="is a folder"):
        list(read_lines(tmp_path))
    with pytest.raises(FileNotFoundError):
        list(read_lines(tmp_path / "absent.txt"))
    with pytest.raises(ValueError, match="`errors` must be"):
        list(read_lines(tmp_path / "absent.txt", errors="ignore"))


def test_json_errors_name_file_line_and_column(tmp_path):
    path = write(tmp_path / "t.json", b'{"a": 1,\n "b": }')
    with pytest.raises(ValueError, match=r"t\.json, line 2, column 7: not JSON"):
        read_json(path)
    path = write(tmp_path / "deep.json", b"[" * 200000)
    with pytest.raises(ValueError, match=r"deep\.json"):
        read_json(path)


def test_json_lines_carry_line_numbers_and_pass_over_blank_lines(tmp_path):
    path = write(tmp_path / "t.jsonl", b'{"a": 1}\n\n{"a": 2}\n')
    assert list(read_json_lines(path)) == [(1, {"a": 1}), (3, {"a": 2})]


@pytest.mark.parametrize(
    "line, message",
    [
        (b"[1]", "line 2: each line must be one JSON object. Received a list"),
        (b'"text"', "line 2: each line must be one JSON object. Received a str"),
        (b"{", "line 2, column 2: not JSON"),
    ],
)
def test_a_line_that_is_no_json_object_is_refused(tmp_path, line, message):
    path = write(tmp_path / "t.jsonl", b"{}\n" + line)
    with pytest.raises(ValueError, match=rf"t\.jsonl, {message}"):
        list(read_json_lines(path))


def test_half_a_surrogate_pair_is_refused_and_a_whole_one_read(tmp_path):
    path = write(tmp_path / "t.jsonl", b'{"a": "\\ud83d\\ude42"}\n{"a": "\\uD83D"}\n')
    lines = read_json_lines(path)
    assert next(lines) == (1, {"a": "🙂"})
    with pytest.raises(ValueError, match=r"t\.jsonl, line 2: holds half of a surrogate pair"):
        next(lines)
