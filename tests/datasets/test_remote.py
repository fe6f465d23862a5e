"""Texts of other machines are read as those of this one; what must be mapped is refused."""

import functools
import gzip
import http.server
import pathlib
import sys
import threading

import fsspec
import pytest

from bert_keras.corpora import (
    create_pretraining_data,
    find_text_files,
    read_documents,
    read_manifest,
)
from bert_keras.corpora.shards import file_sha256
from bert_keras.corpora.text_files import expand
from bert_keras.datasets.remote import file_name
from bert_keras.tokenizers import WordPieceTokenizer

TEXTS = {"a.txt": "The sea.\n\nA ship.", "more/b.txt.gz": "A man.\nA \u5929.\n\nThe ship."}
VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "a", "sea", "ship", "man", "."]


@pytest.fixture
def local(tmp_path):
    for name, text in (TEXTS | {"notes.md": "Nothing."}).items():
        path = tmp_path / "texts" / name
        path.parent.mkdir(exist_ok=True, parents=True)
        data = text.encode()
        path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    return tmp_path / "texts"


@pytest.fixture(params=["memory", "http"])
def address(request, local):
    if request.param == "memory":
        system = fsspec.filesystem("memory")
        for path in filter(pathlib.Path.is_file, local.rglob("*")):
            system.pipe(f"/texts/{path.relative_to(local)}", path.read_bytes())
        yield "memory://texts"
        system.rm("/texts", recursive=True)
        return
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=local)
    handler.log_message = handler.func.log_message = lambda *_: None
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_remote_texts_equal_local_texts(local, address, tmp_path):
    files = [f"{address}/{name}" for name in TEXTS]
    found = find_text_files(f"{address}/")
    assert [name.rpartition("/")[2] for name in found] == ["a.txt", "b.txt.gz"]
    assert list(read_documents(files)) == list(read_documents(local))
    assert list(map(file_sha256, files)) == [file_sha256(local / name) for name in TEXTS]
    tokenizer = WordPieceTokenizer(VOCABULARY)
    made = [
        create_pretraining_data(source, tokenizer, tmp_path / str(number), sequence_length=16)
        for number, source in enumerate((local, f"{address}/"))
    ]
    assert made[0] == made[1]


def test_addresses_without_files_are_reported(address):
    with pytest.raises(FileNotFoundError, match=r"no file .*/c\.txt. The address of a folder ends"):
        find_text_files(f"{address}/c.txt")
    with pytest.raises(FileNotFoundError, match="no file"):
        find_text_files([f"{address}/nothing/"])


def test_a_pattern_of_addresses_names_files():
    fsspec.filesystem("memory").pipe({"/some/b.txt": b"b", "/some/a.txt": b"a", "/some/c": b"c"})
    found = find_text_files(expand("--input", ["memory://some/*.txt", "memory://some/c"]))
    assert found == [f"memory:///some/{name}" for name in ("a.txt", "b.txt", "c")]


def test_a_missing_package_for_addresses_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "fsspec.core", None)
    with pytest.raises(ImportError, match=r"s3://bucket/books/, .*pip install '\.\[remote\]"):
        find_text_files("s3://bucket/books/")


@pytest.mark.parametrize("folder", ["s3://bucket/data", pathlib.Path("gs://bucket/data")])
def test_data_must_be_written_to_and_read_from_this_machine(local, folder):
    message = r"must be on this machine.*//?bucket/data.*copy it there"
    with pytest.raises(ValueError, match=message):
        create_pretraining_data(local, WordPieceTokenizer(VOCABULARY), folder)
    with pytest.raises(ValueError, match=message):
        read_manifest(folder)
    assert not pathlib.Path(str(folder)).exists()


def test_the_signature_in_an_address_is_not_part_of_the_file_name():
    assert file_name("https://host/books/a.txt.gz?X-Signature=secret#part") == "a.txt.gz"
    assert file_name("folder/what?.txt") == "what?.txt"
