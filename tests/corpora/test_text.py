import gzip
import os

import pytest
from checks import cases, refused

from bert_keras.corpora import find_text_files, read_documents


@cases(
    # A book is one document of unwrapped paragraphs.
    ("\r\nCHAPTER I\r\n\r\n\r\n  Alice was\r\nvery tired. \r\n \t\r\nSo", {},
     [["CHAPTER I", "Alice was very tired.", "So"]]),
    ("第一回\n\n话说\n天下\n", {"passages": "line"}, [["第一回", "话说", "天下"]]),
    # Blank lines end documents in BERT's own format.
    ("\nOne.\nTwo.\n\n\nThree.\n\n", {"documents": "blank_line", "passages": "line"},
     [["One.", "Two."], ["Three."]]),
    ("\nOne.\nTwo.\n\n\nThree.\n\n", {"documents": "blank_line"}, [["One. Two."], ["Three."]]),
)  # fmt: skip
def test_a_text_is_cut_into_documents_and_passages(write, text, options, documents):
    assert list(read_documents(write("a.txt", text), **options)) == documents


def test_a_line_of_megabytes_is_one_passage(write):
    line = "word \x85\u2028 " * 500_000
    documents = read_documents(write("long.txt", f"first\n\n{line}\n"))
    assert list(documents) == [["first", line.strip()]]


def test_files_end_documents_and_those_without_text_give_none(write, tmp_path):
    for name, text in (("a", "one"), ("b", "two"), ("empty", ""), ("blank", " \n\n\t\n")):
        write(f"{name}.txt", text)
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


@refused(
    ("a.txt", {"documents": "folder"}, ValueError, "`documents` must be one of"),
    ("a.txt", {"passages": "sentence"}, ValueError, "`passages` must be one of"),
    ("a.jsonl", {}, ValueError, r"plain text, not a table.*a\.jsonl.*\.txt file"),
    ("absent", {}, "must be in files"),
    ("folder", {}, "folder, which holds none"),
    ("pipe", {}, r"must be in files.*pipe, which holds none"),
    error=FileNotFoundError,
)
def test_arguments_are_checked_at_the_call(write, tmp_path, name, options):
    write("a.txt", "a")
    write("a.jsonl", [{"text": "one"}])
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
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
