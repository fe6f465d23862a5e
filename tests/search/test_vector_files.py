"""Vectors of a long stream of texts reach the file once each."""

import numpy as np
import pytest
import scipy.sparse
from tiny import tiny_task

from bert_keras.answers.text_vectors import EmbedAnswerer, SparseAnswerer, TokenVectorsAnswerer
from bert_keras.search import read_multi_vectors, write_vectors

pytestmark = pytest.mark.once
TEXTS = [f"{'a' * (1 + n % 5)} {n}" for n in range(41)]


class Dense:
    """Embeds texts by their characters, and counts the texts."""

    answerers, count = (EmbedAnswerer,), 0

    def embed(self, texts, prompt=None, batch_size=32):
        self.count += len(texts)
        shift = len(prompt or "")
        return np.array([[len(x) + shift, ord(x[-1])] for x in texts], "float32")


class Sparse(Dense):
    answerers, dim = (SparseAnswerer,), 300

    def embed(self, texts, prompt=None, batch_size=32):
        rows = scipy.sparse.lil_array((len(texts), self.dim), dtype="float32")
        for row, vector in enumerate(super().embed(texts, prompt)):
            rows[row, ord(texts[row][-1])] = vector[0]
        return rows.tocsr()


class MultiVector(Dense):
    answerers = (TokenVectorsAnswerer,)

    def embed(self, texts, kind="document", batch_size=32):
        vectors = super().embed(texts, kind)
        return [np.repeat(v[None], len(x), axis=0) for v, x in zip(vectors, texts, strict=True)]


KINDS = {Dense: ".npy", Sparse: ".npz", MultiVector: ".npz"}


def read(kind, path):
    """Returns the vectors of a file as a list of arrays."""
    if kind is Sparse:
        return list(scipy.sparse.load_npz(path).toarray())
    return list(np.load(path, mmap_mode="r")) if kind is Dense else read_multi_vectors(path)


def expected(kind, texts=TEXTS, *prompt):
    vectors = kind().embed(texts, *prompt)
    return list(vectors.toarray()) if kind is Sparse else list(vectors)


def same(found, wanted):
    assert len(found) == len(wanted)
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_texts_are_embedded_in_parts(tmp_path, kind):
    path, embedder, shown = tmp_path / f"x{KINDS[kind]}", kind(), []
    assert write_vectors(embedder, iter(TEXTS), path, batch_size=1, progress=shown.append) == 41
    assert embedder.count == 41
    assert shown == [f"{count} texts embedded" for count in (16, 32, 41)]
    same(read(kind, path), expected(kind))
    write_vectors(embedder, iter(TEXTS[:3]), path, "document")
    same(read(kind, path), expected(kind, TEXTS[:3], "document"))
    assert [x.name for x in tmp_path.iterdir()] == [path.name]


def test_a_run_that_ends_early_leaves_the_old_file(tmp_path):
    def ended():
        yield from TEXTS[:20]
        raise KeyboardInterrupt

    write_vectors(Dense(), TEXTS, path := tmp_path / "x.npy")
    with pytest.raises(KeyboardInterrupt):
        write_vectors(Dense(), ended(), path, batch_size=1)
    same(read(Dense, path), expected(Dense))
    assert [x.name for x in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize(
    ("texts", "path", "error", "message"),
    [
        ([], "x.npy", ValueError, "must be texts"),
        (["a", 3], "x.npy", TypeError, r"texts\[1\] is 3"),
        (["a"] * 513 + [3], "x.npy", TypeError, r"texts\[512:\]\[1\] is 3"),
        ("text", "x.npy", TypeError, "`texts` must be a list"),
        (["a"], "x.npz", ValueError, r"a \.npy file"),
    ],
)
def test_wrong_calls_leave_no_file(tmp_path, texts, path, error, message):
    with pytest.raises(error, match=message):
        write_vectors(Dense(), texts, tmp_path / path)
    assert not [*tmp_path.iterdir()]


def test_tasks_that_embed_nothing_are_refused(tmp_path):
    with pytest.raises(ValueError, match="by an embedder"):
        write_vectors(tiny_task("MaskedLM"), ["a"], tmp_path / "x.npy")


@pytest.mark.parametrize("name", ["TextEmbedder", "SparseTextEmbedder", "MultiVectorEmbedder"])
def test_embedders_write_what_embed_returns(tmp_path, name):
    kind = {"T": Dense, "S": Sparse, "M": MultiVector}[name[0]]
    options = {"query_length": 8, "query_expansion": 8} if kind is MultiVector else {}
    embedder, texts = tiny_task(name, **options), ["a b c", "", "h g f e d"]
    path = tmp_path / f"x{KINDS[kind]}"
    write_vectors(embedder, texts, path)
    vectors = embedder.embed(texts)
    same(read(kind, path), list(vectors.toarray()) if kind is Sparse else list(vectors))
