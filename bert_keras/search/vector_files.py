"""Vectors of any number of texts in one file."""

import itertools
import pathlib
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from bert_keras.checks import as_texts, check_int, check_not_empty, require
from bert_keras.engine.atomic_files import replacing
from bert_keras.export import runtime
from bert_keras.types import Path

# The number of batches in a part, which is sorted by length.
_BATCHES = 16
_DTYPES = {"values": "float32", "indices": "int32", "lengths": "int64"}


def write_vectors(
    embedder: Any,
    texts: Iterable[str],
    path: Path,
    prompt: str | None = None,
    batch_size: int = 32,
    progress: Callable[[str], object] | None = None,
) -> int:
    """Embeds any number of texts into a file.

    Memory does not depend on the number of texts: vectors are kept in temporary files beside the
    file, which appears when it is complete.

    | embedder | file | how to read it |
    |---|---|---|
    | `TextEmbedder` | `.npy` | `np.load(path, mmap_mode="r")`, float32 `(num_texts, dim)` |
    | `SparseTextEmbedder` | `.npz` | `scipy.sparse.load_npz(path)`, a `csr_array` |
    | `MultiVectorEmbedder` | `.npz` | `read_multi_vectors(path)` |

    Args:
        embedder: an embedder, or an `ExportedTask` with `embed`.
        texts: iterable of str: a list, a column of `datasets.Dataset`, or a generator that reads a
            file.
        path: str, see the table. An old file is replaced when the new one is complete.
        prompt: see `TextEmbedder.embed`; of a `MultiVectorEmbedder` the `kind`.
        batch_size: int.
        progress: function of a str, called after each part; or `None`.

    Returns:
        int, the number of texts.

    Raises:
        TypeError: something is not text.
        ValueError: there are no texts, or the ending of `path` does not fit.

    Example:
    ```python
    texts = datasets.load_dataset("wikipedia", "20220301.simple", split="train")["text"]
    bert_keras.search.write_vectors(embedder, texts, "wikipedia.npy", prompt="document")
    index.add(np.load("wikipedia.npy", mmap_mode="r"))
    ```
    """
    check_int("batch_size", batch_size)
    path, kind = pathlib.Path(path), _kind_of(embedder)
    ending = ".npy" if kind == "embed" else ".npz"
    if path.suffix != ending:
        raise ValueError(
            f"Vectors of a {type(embedder).__name__} go into a {ending} file. Received: {path}. "
            "Change its ending."
        )
    if isinstance(texts, str):
        as_texts(texts)  # Raises: its characters are not the texts.
    texts, count = iter(texts), 0
    with replacing(path) as temporary:
        files = {name: pathlib.Path(temporary).with_name(name) for name in _DTYPES}
        while part := list(itertools.islice(texts, _BATCHES * batch_size)):
            as_texts(part, f"texts[{count}:]" if count else "texts")
            for name, array in _arrays(kind, embedder, part, prompt, batch_size).items():
                with open(files[name], "ab") as file:
                    file.write(np.ascontiguousarray(array, _DTYPES[name]))
            count += len(part)
            if progress is not None:
                progress(f"{count:,} texts embedded")
        check_not_empty(range(count), "There must be texts to embed")
        arrays = {name: _mapped(file, _DTYPES[name]) for name, file in files.items()}
        _write(kind, temporary, arrays, count, embedder)
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


def _arrays(kind, embedder, texts, prompt, batch_size):
    """Returns the vectors of texts as flat arrays: the values, and how many belong to each text."""
    prompt = prompt or "document" if kind == "token_vectors" else prompt
    rows = embedder.embed(texts, prompt, batch_size=batch_size)
    if kind == "token_weights":
        rows.sort_indices()
        return {"values": rows.data, "indices": rows.indices, "lengths": np.diff(rows.indptr)}
    return {"values": np.concatenate(list(rows), axis=None), "lengths": [len(x) for x in rows]}


def _mapped(path, dtype):
    """Returns the array of a file without reading it."""
    has_values = path.exists() and path.stat().st_size
    return np.memmap(path, dtype, "r") if has_values else np.empty(0, dtype)


def _write(kind, path, arrays, count, embedder):
    values, lengths = arrays["values"], arrays["lengths"]
    if kind == "embed":
        np.save(path, values.reshape(count, -1))
    elif kind == "token_vectors":
        np.savez(path, vectors=values.reshape(lengths.sum(), -1), lengths=lengths)
    else:
        sparse, ends = require("scipy.sparse", "write sparse vectors"), np.cumsum([0, *lengths])
        parts = values, arrays["indices"], ends
        rows = sparse.csr_array(parts, shape=(count, embedder.dim))
        sparse.save_npz(path, rows, compressed=False)


def _kind_of(embedder):
    """Returns what an embedder gives each text: `embed`, `token_weights` or `token_vectors`."""
    is_program = isinstance(embedder, runtime.ExportedTask)
    answerers = getattr(embedder, "answerers", ())
    names = {x.route or x.method for x in (answerers.values() if is_program else answerers)}
    # The weights of a program's tokens are no matrix.
    kinds = ("embed", "token_vectors", "token_weights")[: 2 if is_program else 3]
    found = [kind for kind in kinds if kind in names]
    if not found:
        name = f"exported {embedder.config['task']}" if is_program else type(embedder).__name__
        raise ValueError(
            "Vectors are written by an embedder, or by an exported one with `embed`. Received: "
            f"{name}. Pass the task that it was made from."
        )
    return found[0]
