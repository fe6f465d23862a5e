"""Vectors of a long stream of texts reach the file once each, also after a kill."""

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


def killed_after(number, texts=TEXTS):
    yield from texts[:number]
    raise KeyboardInterrupt


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("number", [0, 1, 20, 40, 41])
def test_a_killed_run_goes_on_without_loss_or_repetition(tmp_path, kind, number):
    path, embedder, shown = tmp_path / f"x{KINDS[kind]}", kind(), []
    with pytest.raises(KeyboardInterrupt):
        write_vectors(embedder, killed_after(number), path, batch_size=1)
    assert not path.exists() and embedder.count == number // 16 * 16
    assert write_vectors(embedder, TEXTS, path, batch_size=1, progress=shown.append) == 41
    # The first and the longest text are embedded again to compare the embedders.
    assert embedder.count == 41 + 2 * (number >= 16)
    assert shown[-1] == "41 texts embedded"
    same(read(kind, path), expected(kind))
    assert [x.name for x in tmp_path.iterdir()] == [path.name]
    write_vectors(embedder, iter(TEXTS[:3]), path, "document")
    same(read(kind, path), expected(kind, TEXTS[:3], "document"))


@pytest.mark.parametrize(
    "changed",
    [
        {"texts": TEXTS[:10]},
        {"texts": ["b 0", *TEXTS[1:]]},
        {"texts": [TEXTS[1], TEXTS[0], *TEXTS[2:]]},
        {"prompt": "query: "},
    ],
)
def test_an_unfinished_file_is_continued_with_the_same_texts_only(tmp_path, changed):
    path = tmp_path / "x.npy"
    with pytest.raises(KeyboardInterrupt):
        write_vectors(Dense(), killed_after(40), path, batch_size=1)
    call = {"texts": TEXTS, "path": path, "batch_size": 1} | changed
    with pytest.raises(ValueError, match="Remove this folder"):
        write_vectors(Dense(), **call)
    assert write_vectors(Dense(), TEXTS, path, batch_size=2) == 41
    same(read(Dense, path), expected(Dense))


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
    assert not (tmp_path / path).exists()


def test_a_second_run_does_not_write_the_same_file(tmp_path):
    path = tmp_path / "x.npy"

    def texts():
        yield from TEXTS[:20]
        with pytest.raises(BlockingIOError, match="Only one run at a time"):
            write_vectors(Dense(), TEXTS[1:], path, batch_size=1)
        yield from TEXTS[20:]

    assert write_vectors(Dense(), texts(), path, batch_size=1) == 41
    same(read(Dense, path), expected(Dense))


@pytest.mark.parametrize(("kind", "change"), [(Sparse, 1e-3), (MultiVector, 1e-3), (Sparse, 0.5)])
def test_other_backends_may_continue_a_file_and_other_embedders_may_not(tmp_path, kind, change):
    class Other(kind):
        def embed(self, texts, *options):
            rows = super().embed(texts, *options)
            if kind is MultiVector:
                return [row + np.float32(change) for row in rows]
            rows = rows.tolil()
            rows[:, 7] = change  # A weight that was 0.
            return rows.tocsr()

    path = tmp_path / "x.npz"
    with pytest.raises(KeyboardInterrupt):
        write_vectors(kind(), killed_after(40), path, batch_size=1)
    if change < 0.1:
        assert write_vectors(Other(), TEXTS, path, batch_size=1) == 41
    else:
        with pytest.raises(ValueError, match="the same texts, prompt and embedder"):
            write_vectors(Other(), TEXTS, path, batch_size=1)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_an_embedder_that_cuts_texts_elsewhere_does_not_continue_a_file(tmp_path, kind):
    class Shorter(kind):
        def embed(self, texts, *options):
            return super().embed([text[:2] for text in texts], *options)

    path, texts = tmp_path / f"x{KINDS[kind]}", ["ab", *["abcdef"] * 40]
    with pytest.raises(KeyboardInterrupt):
        write_vectors(kind(), killed_after(40, texts), path, batch_size=1)
    with pytest.raises(ValueError, match="Remove this folder"):
        write_vectors(Shorter(), texts, path, batch_size=1)


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
