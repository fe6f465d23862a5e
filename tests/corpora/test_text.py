import gzip
import os

import pytest

from bert_keras.corpora import find_text_files, read_documents


def test_a_book_is_one_document_of_unwrapped_paragraphs(write):
    path = write("book.txt", "\r\nCHAPTER I\r\n\r\n\r\n  Alice was\r\nvery tired. \r\n \t\r\nSo")
    assert list(read_documents(path)) == [["CHAPTER I", "Alice was very tired.", "So"]]


def test_a_line_can_be_a_passage(write):
    path = write("novel.txt", "第一回\n\n话说\n天下\n")
    assert list(read_documents(path, passages="line")) == [["第一回", "话说", "天下"]]


def test_blank_lines_end_documents_in_berts_own_format(write):
    path = write("wiki.txt", "\nOne.\nTwo.\n\n\nThree.\n\n")
    documents = list(read_documents(path, documents="blank_line", passages="line"))
    assert documents == [["One.", "Two."], ["Three."]]
    documents = list(read_documents(path, documents="blank_line"))
    assert documents == [["One. Two."], ["Three."]]


def test_files_end_documents_whatever_the_convention(write, tmp_path):
    write("a.txt", "one")
    write("b.txt", "two")
    for documents in ("file", "blank_line"):
        assert list(read_documents(tmp_path, documents=documents)) == [["one"], ["two"]]


def test_folders_are_read_in_the_order_of_their_paths(write, tmp_path):
    write("b.txt", "b")
    write("a/z.TXT", "z")
    write("notes.md", "no")
    write("c.txt.gz", gzip.compress("é".encode()))
    names = ["a/z.TXT", "b.txt", "c.txt.gz"]
    assert find_text_files(tmp_path) == [str(tmp_path / name) for name in names]
    assert [document[0] for document in read_documents(str(tmp_path))] == ["z", "b", "é"]
    chosen = [tmp_path / "notes.md", tmp_path / "b.txt"]
    assert [document[0] for document in read_documents(chosen)] == ["no", "b"]


def test_files_without_text_give_no_document(write, tmp_path):
    write("empty.txt", "")
    write("blank.txt", " \n\n\t\n")
    assert list(read_documents(tmp_path)) == []


def test_a_line_of_megabytes_is_one_passage(write):
    line = "word \x85\u2028 " * 500_000
    path = write("long.txt", f"first\n\n{line}\n")
    ((first, second),) = read_documents(path)
    assert first == "first" and second == line.strip()


@pytest.mark.parametrize(
    ("name", "options", "error", "message"),
    [
        ("a.txt", {"documents": "folder"}, ValueError, "`documents` must be one of"),
        ("a.txt", {"passages": "sentence"}, ValueError, "`passages` must be one of"),
        ("absent", {}, FileNotFoundError, "must be in files"),
        ("folder", {}, FileNotFoundError, "folder, which holds none"),
    ],
)
def test_arguments_are_checked_at_the_call(write, tmp_path, name, options, error, message):
    write("a.txt", "a")
    (tmp_path / "folder").mkdir()
    with pytest.raises(error, match=message):
        read_documents(tmp_path / name, **options)


def test_a_file_whose_name_has_brackets_is_no_pattern(write, tmp_path):
    path = str(write("book[1].txt", "one"))
    write("book1.txt", "two")
    assert find_text_files([path]) == [path]
    assert find_text_files(f"{tmp_path}/*1.txt") == [f"{tmp_path}/book1.txt"]


def test_folders_that_a_pattern_matches_are_read_and_a_folder_is_no_file(write, tmp_path):
    (tmp_path / "c" / "one" / "e.txt").mkdir(parents=True)
    paths = [str(write(f"c/{name}", "text")) for name in ("b.md", "one/a.txt", "one/e.txt/f.txt")]
    assert find_text_files(f"{tmp_path}/c/*") == paths
    (tmp_path / "c" / "two").mkdir()
    with pytest.raises(FileNotFoundError, match="two, which holds none"):
        find_text_files(f"{tmp_path}/c/*")


def test_a_table_is_refused(write):
    with pytest.raises(ValueError, match=r"plain text, not a table.*corpus\.jsonl.*\.txt file"):
        find_text_files(write("corpus.jsonl", '{"text": "one"}'))


def test_a_pipe_is_refused(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    with pytest.raises(FileNotFoundError, match=r"must be in files.*pipe, which holds none"):
        find_text_files(path)
