"""Vectors of any number of texts in one file; a killed run continues where it stopped."""

import itertools
import pathlib
import shutil
import zlib
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from bert_keras.checks import as_texts, check_int, check_not_empty, require
from bert_keras.corpora.growing_arrays import Columns
from bert_keras.engine.atomic_files import replacing
from bert_keras.export import runtime
from bert_keras.search.sole_writer import sole_writer
from bert_keras.types import Path

# The number of batches in a part. A part is sorted by length, and a kill costs one at most.
_BATCHES = 16
# Vectors of the same text differ by less, relative to their largest value, on any backend.
_TOLERANCE = 1e-2


def write_vectors(
    embedder: Any,
    texts: Iterable[str],
    path: Path,
    prompt: str | None = None,
    batch_size: int = 32,
    progress: Callable[[str], object] | None = None,
) -> int:
    """Embeds any number of texts into a file.

    Memory does not depend on the number of texts. Finished vectors are kept in a hidden folder
    beside the file; after a kill, the same call with the same texts continues there, and no text is
    lost or written twice. The file appears when it is complete.

    | embedder | file | how to read it |
    |---|---|---|
    | `TextEmbedder` | `.npy` | `np.load(path, mmap_mode="r")`, float32 `(num_texts, dim)` |
    | `SparseTextEmbedder` | `.npz` | `scipy.sparse.load_npz(path)`, a `csr_array` |
    | `MultiVectorEmbedder` | `.npz` | `read_multi_vectors(path)` |

    Args:
        embedder: an embedder, or an `ExportedTask` with `embed`.
        texts: iterable of str, from the first text on also after a kill: a list, a column of
            `datasets.Dataset`, or a generator that reads a file.
        path: str, see the table. An old file is replaced when the new one is complete.
        prompt: see `TextEmbedder.embed`; of a `MultiVectorEmbedder` the `kind`.
        batch_size: int.
        progress: function of a str, called after each part; or `None`.

    Returns:
        int, the number of texts.

    Raises:
        TypeError: something is not text.
        ValueError: there are no texts, the ending of `path` does not fit, or an unfinished file is
            of other texts, another prompt or another embedder.
        BlockingIOError: another run writes this file.

    Example:
    ```python
    texts = datasets.load_dataset("wikipedia", "20220301.simple", split="train")["text"]
    bert_keras.search.write_vectors(embedder, texts, "wikipedia.npy", prompt="document")
    index.add(np.load("wikipedia.npy", mmap_mode="r"))
    ```
    """
    check_int("batch_size", batch_size)
    path, kind = pathlib.Path(path), _kind_of(embedder)
    if path.suffix != kind.ending:
        raise ValueError(
            f"Vectors of a {type(embedder).__name__} go into a {kind.ending} file. Received: "
            f"{path}. Change its ending."
        )
    if isinstance(texts, str):
        as_texts(texts)  # Raises: its characters are not the texts.
    folder, texts = path.with_name(f".{path.name}.unfinished"), iter(texts)

    def embed(part):
        return kind.arrays(embedder, part, prompt, batch_size)

    with sole_writer(folder):
        columns = Columns(str(folder), kind.dtypes)
        _skip(texts, columns, embed, folder)
        if not columns.is_whole:
            for _ in columns.extend(_parts(texts, columns, embed, _BATCHES * batch_size)):
                if progress is not None:
                    progress(f"{columns.counts['texts']:,} texts embedded")
        count = columns.counts["texts"]
        if not count:
            shutil.rmtree(folder)
            check_not_empty((), "There must be texts to embed")
        with replacing(path) as temporary:
            kind.write(temporary, columns, count, embedder)
        shutil.rmtree(folder)
    return count


def read_multi_vectors(path: Path) -> list[np.ndarray]:
    """Returns the vectors of a `MultiVectorEmbedder` that `write_vectors` wrote.

    Args:
        path: str, a `.npz` file.

    Returns:
        A list of float32 arrays `(num_tokens, dim)`.
    """
    with np.load(path, allow_pickle=False) as arrays:
        return np.split(arrays["vectors"], np.cumsum(arrays["lengths"])[:-1])


def _parts(texts, columns, embed, size):
    """Yields the arrays and the counts of each part of the texts, for `Columns.extend`."""
    while part := list(itertools.islice(texts, size)):
        checksum = _checksum(part, columns.counts["texts"])
        yield embed(part), {"texts": len(part), "checksum": checksum}


def _skip(texts, columns, embed, folder):
    """Skips the texts that are embedded already.

    The first and the longest one are embedded again: a prompt shows in any text, and the length at
    which texts are cut in the longest.

    Raises:
        ValueError: they differ from the texts whose vectors are there.
    """
    num_done = columns.counts["texts"]
    checksum, place, samples, longest = 0, 0, {}, -1
    while part := list(itertools.islice(texts, min(num_done - place, 1 << 14))):
        checksum += _checksum(part, place)
        samples.setdefault(0, part[0])
        number = max(range(len(part)), key=lambda i: len(part[i]))
        if len(part[number]) > longest:
            longest, of_longest = len(part[number]), place + number
            samples = {0: samples[0], of_longest: part[number]}
        place += len(part)
    if num_done == 0:
        return
    fits = place == num_done and checksum == columns.counts["checksum"]
    if fits:
        files = {name: columns.open(name) for name in columns.dtypes}
        fresh = embed(list(samples.values()))
        fits = all(
            _are_close(_row(files, place, num_done), _row(fresh, number, len(samples)))
            for number, place in enumerate(samples)
        )
    if not fits or (columns.is_whole and next(texts, None) is not None):
        raise ValueError(
            "An unfinished file must be continued with the same texts, prompt and embedder. "
            f"Received: different ones from those in {folder}. Remove this folder to start again."
        )


def _row(arrays, number, num_rows):
    """Returns the values of the text with a number, a dict by their places in its vectors."""
    lengths, values = arrays.get("lengths"), arrays["values"]
    if lengths is None:
        lengths = np.ones(num_rows, int)
    width = len(values) // max(1, lengths.sum())
    start, end = width * lengths[:number].sum(), width * lengths[: number + 1].sum()
    values = values[start:end].tolist()
    places = arrays["indices"][start:end].tolist() if "indices" in arrays else range(len(values))
    return dict(zip(places, values, strict=True))


def _are_close(one, other):
    """Whether two rows have the same values, up to differences between backends."""
    tolerance = _TOLERANCE * max(map(abs, other.values()), default=0)
    # Weights near 0 may be stored or not.
    return all(
        abs(one.get(x, 0.0) - other.get(x, 0.0)) <= tolerance for x in one.keys() | other.keys()
    )


def _checksum(texts, start):
    """Returns a number that depends on each text and its place; raises unless all are texts."""
    as_texts(texts, f"texts[{start}:]" if start else "texts")
    return sum(
        zlib.crc32(text.encode("utf-8", "surrogatepass"), place & 0xFFFFFFFF)
        for place, text in enumerate(texts, start)
    )


class _Dense:
    """One vector for each text."""

    ending = ".npy"
    dtypes = {"values": np.float32}  # noqa: RUF012

    @staticmethod
    def arrays(embedder, texts, *options):
        return {"values": np.asarray(embedder.embed(texts, *options), "float32").ravel()}

    @staticmethod
    def write(path, columns, count, embedder):
        np.save(path, columns.open("values").reshape(count, -1))


class _Sparse:
    """Weights of tokens: the rows of a sparse matrix."""

    ending = ".npz"
    dtypes = {"values": np.float32, "indices": np.int32, "lengths": np.int64}  # noqa: RUF012

    @staticmethod
    def arrays(embedder, texts, *options):
        rows = embedder.embed(texts, *options)
        rows.sort_indices()
        return {"values": rows.data, "indices": rows.indices, "lengths": np.diff(rows.indptr)}

    @staticmethod
    def write(path, columns, count, embedder):
        sparse = require("scipy.sparse", "write sparse vectors")
        ends = np.concatenate([[0], np.cumsum(columns.open("lengths"))])
        arrays = columns.open("values"), columns.open("indices"), ends
        rows = sparse.csr_array(arrays, shape=(count, embedder.dim))
        sparse.save_npz(path, rows, compressed=False)


class _MultiVector:
    """A vector for each token."""

    ending = ".npz"
    dtypes = {"values": np.float32, "lengths": np.int64}  # noqa: RUF012

    @staticmethod
    def arrays(embedder, texts, prompt, batch_size):
        vectors = embedder.embed(texts, prompt or "document", batch_size)
        values = np.concatenate(vectors).astype("float32").ravel()
        return {"values": values, "lengths": np.array([len(x) for x in vectors])}

    @staticmethod
    def write(path, columns, count, embedder):
        lengths = columns.open("lengths")
        vectors = columns.open("values").reshape(lengths.sum(), -1)
        np.savez(path, vectors=vectors, lengths=lengths)


def _kind_of(embedder):
    """Returns the class that stores the vectors of an embedder."""
    is_program = isinstance(embedder, runtime.ExportedTask)
    answerers = getattr(embedder, "answerers", ())
    classes = answerers.values() if is_program else answerers
    names = {cls.route or cls.method for cls in classes}
    if "embed" in names or "token_vectors" in names:
        return _Dense if "embed" in names else _MultiVector
    if "token_weights" in names and not is_program:
        return _Sparse
    name = f"exported {embedder.config['task']}" if is_program else type(embedder).__name__
    raise ValueError(
        "Vectors are written by an embedder, or by an exported one with `embed`. Received: "
        f"{name}. Pass the task that it was made from."
    )
