"""What indexes share: the ids and payloads of their rows, and the file that they are saved in."""

import collections
import json
import os
import pathlib
import zipfile
from typing import Any, Self

import numpy as np

from bert_keras.checks import (
    check_not_empty,
    check_same_length,
    check_shape,
    describe,
    is_int,
    raise_at_first,
    require,
)
from bert_keras.engine import atomic_files
from bert_keras.types import Path


class SavedIndex:
    """An index in memory: rows with an id and a payload each, and a file for them.

    A subclass keeps what it searches. Its `_arrays` returns a dict of the arrays to save, and its
    `_set_arrays` takes that dict, or raises unless the rows have these arrays.

    Attributes:
        saved: tuple of str, the attributes that a file holds: arguments of the constructor.
        dim: int, the width of the vectors; `None` where there are none yet.
    """

    saved: tuple[str, ...] = ()

    def __init__(self) -> None:
        self._ids, self._payloads, self._known = [], [], set()
        self.dim: int | None = None

    def __len__(self) -> int:
        return len(self._ids)

    def _check_rows(self, count, ids, payloads):
        """Returns the ids and payloads of new rows, see `check_rows`."""
        return check_rows(count, ids, payloads, self._known, len(self))

    def _add_rows(self, ids, payloads):
        """Adds what `_check_rows` returned."""
        self._ids += ids
        self._payloads += payloads
        self._known.update(ids)

    def _hits(self, scores, positions):
        """Returns for each query a list of hits, see `hit`.

        Args:
            scores, positions: float and int arrays `(num_queries, k)`; positions below 0 are none.
        """
        return [
            [
                hit(self._ids[position], score, self._payloads[position])
                for score, position in zip(*row, strict=True)
                if position >= 0
            ]
            for row in zip(scores.tolist(), positions.tolist(), strict=True)
        ]

    def save(self, path: Path) -> None:
        """Writes the index into a file, all of it or, after an error, nothing.

        Args:
            path: str or path. The file is one of `numpy.savez`; an old one is replaced.

        Raises:
            ValueError: the index is empty, or something else than an index is at this path.
            OSError: the file cannot be written.
        """
        check_not_empty(self, "An index must have rows to be saved", "Call `add` first.")
        _check_is_index(path, f"`{type(self).__name__}.save` replaces no file but a saved index")
        pathlib.Path(path).parent.mkdir(parents=True, exist_ok=True)
        config = {name: getattr(self, name) for name in (*self.saved, "dim")}
        arrays = {
            "config": array_of({"kind": type(self).__name__, **config}),
            "rows": array_of({"id": self._ids, "payload": self._payloads}),
            **self._arrays(),
        }
        with atomic_files.replacing(path) as temporary, open(temporary, "wb") as file:
            np.savez(file, **arrays)

    @classmethod
    def load(cls, path: Path, **options: Any) -> Self:
        """Returns an index that `save` wrote.

        Args:
            path: str or path.
            **options: arguments of the constructor that no file holds.

        Raises:
            FileNotFoundError: there is no index.
            ValueError: the file holds something else, or is damaged.
            ImportError: what the index is searched with is not installed.
        """
        rule = f"`{cls.__name__}.load` opens a file that `{cls.__name__}.save` wrote"
        _check_is_index(path, rule)
        with atomic_files.reading(path):
            with np.load(path, allow_pickle=False) as file:
                arrays = dict(file)
            config = value_of(arrays.pop("config"))
            if config["kind"] != cls.__name__:
                raise ValueError(
                    f"{path} must hold an index of the kind {cls.__name__}. Received: "
                    f"{config['kind']}. Name another file."
                )
            index = cls(**{name: config[name] for name in cls.saved}, **options)
            rows = value_of(arrays.pop("rows"))
            index._add_rows(*index._check_rows(len(rows["id"]), rows["id"], rows["payload"]))
            index.dim = config["dim"]
            index._set_arrays(arrays)
        return index


def _check_is_index(path, rule):
    """Raises `ValueError` if something else than a saved index is at a path."""
    members = set()
    if zipfile.is_zipfile(path):
        with atomic_files.reading(path), zipfile.ZipFile(path) as archive:
            members.update(archive.namelist())
    if os.path.exists(path) and not members >= {"config.npy", "rows.npy"}:
        raise ValueError(
            f"{rule}. Received: {os.fspath(path)!r}, which is something else. Name another path."
        )


def array_of(value):
    """Returns a JSON value as an array of bytes, for a file of arrays."""
    return np.frombuffer(json.dumps(value).encode(), "uint8")


def value_of(array):
    """Returns the JSON value of an array that `array_of` made."""
    return json.loads(array.tobytes())


def check_rows(count, ids=None, payloads=None, known=(), start=0):
    """Returns the ids and the payloads of new rows, or raises before anything is added.

    Args:
        count: int, the number of new rows.
        ids: sequence of str or int; `None` numbers the rows from `start` on.
        payloads: sequence of values that JSON can hold; `None` for none.
        known: set of the ids that an index has.
        start: int.

    Raises:
        ValueError: there are no rows, not as many ids or payloads as rows, an id is not new, or
            JSON cannot hold a payload.
    """
    check_not_empty(range(count), "An index needs at least one row to add")
    ids = range(start, start + count) if ids is None else ids
    ids = [int(id) if is_int(id) else id for id in ids]
    payloads = payloads if payloads is None else list(payloads)
    rule = "Each row needs one id, and one payload if there are any"
    check_same_length(rule, rows=range(count), ids=ids, payloads=payloads)
    payloads = [None] * count if payloads is None else payloads
    rule = "An id must be a str or an int"
    raise_at_first([not (isinstance(id, str) or is_int(id)) for id in ids], ids, rule)
    counts = collections.Counter(ids)
    is_old = [id in known or counts[id] > 1 for id in ids]
    raise_at_first(is_old, ids, "An id must occur once in an index")
    advice = "Keep other objects elsewhere, under the id."
    fits = [_fits_json(payload) for payload in payloads]
    raise_at_first(~np.array(fits), payloads, "A payload must fit into JSON", advice)
    return ids, payloads


def hit(id, score, payload):
    """Returns a hit as a dict, with a payload if there is one."""
    found = {"id": id, "score": score}
    return found if payload is None else {**found, "payload": payload}


def check_vectors(name, vectors, dim):
    """Returns vectors as a new float32 array; raises `ValueError` unless they fit an index.

    Args:
        name: str, the subject of messages.
        vectors: array `(num_vectors, dim)`.
        dim: int, or `None` for any width.
    """
    vectors = np.asarray(vectors)
    advice = "Embed texts first: `embedder.embed(texts)`." if vectors.dtype.kind in "OU" else ""
    check_shape(name, vectors, ("num_vectors", "dim" if dim is None else dim), "f", advice)
    check_not_empty(vectors.ravel(), f"{name} must not be empty")
    with np.errstate(over="ignore"):
        floats = np.array(vectors, "float32", order="C")
    raise_at_first(~np.isfinite(floats), vectors, f"{name} must be finite in float32")
    return floats


def check_sparse(name, vectors, dim):
    """Returns sparse vectors as a new float32 `csr_array`; raises unless they fit an index.

    Args:
        name: str, the subject of messages.
        vectors: sparse matrix `(num_vectors, dim)`.
        dim: int, or `None` for any width.

    Raises:
        TypeError: it is no sparse matrix.
        ValueError: it is empty, of another width, or a value is not finite.
    """
    rule = f"{name} must be a sparse matrix of SciPy, as `SparseTextEmbedder.embed` returns it"
    if not hasattr(vectors, "tocsr"):
        raise TypeError(f"{rule}. Received: {describe(vectors)}.")
    check_shape(name, vectors, ("num_vectors", "dim" if dim is None else dim), "f")
    check_not_empty(range(vectors.shape[0]), f"{name} must not be empty")
    sparse = require("scipy.sparse", "search in sparse vectors")
    with np.errstate(over="ignore"):
        matrix = sparse.csr_array(vectors, dtype="float32", copy=True)
    matrix.sum_duplicates()
    raise_at_first(~np.isfinite(matrix.data), matrix.data, f"{name} must be finite in float32")
    return matrix


def _fits_json(value):
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        return False
    return True
