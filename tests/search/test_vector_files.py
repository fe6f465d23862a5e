"""Vectors of a long stream of texts reach the file once each."""

import numpy as np
import pytest
from checks import refused
from tiny import tiny_task

from bert_keras.answers.text_vectors import EmbedAnswerer
from bert_keras.search import write_vectors

pytestmark = pytest.mark.once
TEXTS = [f"{'a' * (1 + n % 5)} {n}" for n in range(41)]


class Dense:
    """Embeds texts by their characters, and counts the texts."""

    answerers, count = (EmbedAnswerer,), 0

    def embed(self, texts, prompt=None, batch_size=32):
        self.count += len(texts)
        shift = len(prompt or "")
        return np.array([[len(x) + shift, ord(x[-1])] for x in texts], "float32")


def read(path):
    return list(np.load(path, mmap_mode="r"))


def expected(texts=TEXTS, *prompt):
    return list(Dense().embed(texts, *prompt))


def test_texts_are_embedded_in_parts(tmp_path):
    path, embedder, messages = tmp_path / "x.npy", Dense(), []
    assert write_vectors(embedder, iter(TEXTS), path, batch_size=1, progress=messages.append) == 41
    assert embedder.count == 41
    assert messages == [f"{count} texts embedded" for count in (16, 32, 41)]
    np.testing.assert_equal(read(path), expected())
    write_vectors(embedder, iter(TEXTS[:3]), path, "document")
    np.testing.assert_equal(read(path), expected(TEXTS[:3], "document"))
    assert [x.name for x in tmp_path.iterdir()] == [path.name]


def test_a_run_that_ends_early_leaves_the_old_file(tmp_path):
    def ended():
        yield from TEXTS[:20]
        raise KeyboardInterrupt

    write_vectors(Dense(), TEXTS, path := tmp_path / "x.NPY")
    with pytest.raises(KeyboardInterrupt):
        write_vectors(Dense(), ended(), path, batch_size=1)
    np.testing.assert_equal(read(path), expected())
    assert [x.name for x in tmp_path.iterdir()] == [path.name]


@pytest.fixture
def empty(tmp_path):
    """A folder in which the test must leave no file."""
    yield tmp_path
    assert not [*tmp_path.iterdir()]


@refused(
    ([], "x.npy", ValueError, "must be texts"),
    (["a", 3], "x.npy", TypeError, r"texts\[1\] is 3"),
    (["a"] * 513 + [3], "x.npy", TypeError, r"texts\[512:\]\[1\] is 3"),
    ("text", "x.npy", TypeError, "`texts` must be a list"),
    (["a"], "x.npz", ValueError, r"a \.npy file"),
)
def test_wrong_calls_leave_no_file(empty, texts, path):
    write_vectors(Dense(), texts, empty / path)


@pytest.mark.parametrize("name", ["MaskedLM", "SparseTextEmbedder", "MultiVectorEmbedder"])
def test_tasks_without_one_vector_for_each_text_are_refused(tmp_path, name):
    options = {"query_length": 8, "query_expansion": 8} if name[:5] == "Multi" else {}
    with pytest.raises(ValueError, match="by a `TextEmbedder`"):
        write_vectors(tiny_task(name, **options), ["a"], tmp_path / "x.npy")
