"""Vocabulary files: one token per line, in UTF-8."""

import pytest

from bert_keras.tokenizers import WordPieceTokenizer
from bert_keras.tokenizers.vocabulary import looks_lowercased, read_vocabulary, write_vocabulary

SPECIAL_TOKENS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


def test_only_newlines_end_lines_and_spaces_are_cut_only_at_the_end(tmp_path):
    tokens = ["a", "\u2028", "##\u2028", "\x85", " b ", "\u3000", "", "\x0b", "c"]
    write_vocabulary(tmp_path / "vocab.txt", tokens)
    tokens[4] = " b"
    assert read_vocabulary(tmp_path / "vocab.txt") == tokens
    assert (tmp_path / "vocab.txt").read_bytes().endswith(b"\nc\n")


def test_a_file_is_written_whole_or_not_at_all(tmp_path):
    def tokens():
        yield "c"
        raise KeyError

    write_vocabulary(tmp_path / "vocab.txt", ["a", "b"])
    with pytest.raises(KeyError):
        write_vocabulary(tmp_path / "vocab.txt", tokens())
    assert read_vocabulary(tmp_path / "vocab.txt") == ["a", "b"]
    assert [path.name for path in tmp_path.iterdir()] == ["vocab.txt"]


@pytest.mark.parametrize(
    "raw",
    [b"a\nb\n", b"a\nb", b"a\r\nb\r\n", b"\xef\xbb\xbfa\nb\n"],
    ids=["newline at the end", "no newline at the end", "Windows", "byte order mark"],
)
def test_line_ends_and_byte_order_mark_do_not_matter(tmp_path, raw):
    (tmp_path / "vocab.txt").write_bytes(raw)
    assert read_vocabulary(tmp_path / "vocab.txt") == ["a", "b"]


def test_files_that_are_empty_or_not_utf_8_are_refused(tmp_path):
    for data, message in [
        ("a\né\n".encode("latin-1"), "0xe9 in position 2"),
        ("a\nb\n".encode("utf-16"), "utf-8"),
        (b"", "empty"),
    ]:
        (tmp_path / "vocab.txt").write_bytes(data)
        with pytest.raises(ValueError, match=message):
            read_vocabulary(tmp_path / "vocab.txt")
    with pytest.raises(ValueError, match="Read a folder with"):
        read_vocabulary(tmp_path)
    with pytest.raises(FileNotFoundError):
        read_vocabulary(tmp_path / "missing.txt")


def test_a_vocabulary_must_be_texts_without_line_ends_and_have_special_tokens():
    for tokens, message in [
        ([*SPECIAL_TOKENS, 3], r"vocabulary\[5\] is 3"),
        ([*SPECIAL_TOKENS, "a\nb"], "line end"),
        ([], "Missing"),
    ]:
        with pytest.raises((TypeError, ValueError), match=message):
            WordPieceTokenizer(tokens)


def test_a_lowercased_vocabulary_is_recognized():
    assert looks_lowercased([*SPECIAL_TOKENS, "<S>", "[unused1]", "a", "##é", "中", ""])
    assert not looks_lowercased([*SPECIAL_TOKENS, "a", "##B"])
    assert not looks_lowercased(["Österreich"])
