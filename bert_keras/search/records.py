"""The ids and payloads of the rows of an index, and the folder that an index is saved in."""

import json
import pathlib

import numpy as np

from bert_keras.checks import (
    check_not_empty,
    check_same_length,
    check_shape,
    describe,
    is_int,
    refuse_first,
    require,
)
from bert_keras.datasets.files import read_json_lines
from bert_keras.engine import atomic_files

CONFIG, RECORDS = "config.json", "records.jsonl"
# What an index of another kind may have left in the folder.
_ARRAYS = ("vectors", "faiss", "data", "indices", "indptr")
_ARRAYS = tuple(f"{name}.npy" for name in _ARRAYS)


class Records:
    """Ids, each present once, and a payload for each, in the order in which they were added."""

    def __init__(self):
        self.ids, self.payloads = [], []
        self._known = set()

    def __len__(self):
        return len(self.ids)

    def check(self, count, ids=None, payloads=None):
        """Returns the ids and the payloads of new rows, or raises before anything is added.

        Args:
            count: int, the number of new rows.
            ids: sequence of str or int; `None` numbers the rows from the length of the index on.
            payloads: sequence of values that JSON can hold; `None` for none.

        Raises:
            ValueError: there are no rows, not as many ids or payloads as rows, an id is not new, or
                JSON cannot hold a payload.
        """
        check_not_empty(range(count), "An index needs at least one row to add")
        ids = range(len(self), len(self) + count) if ids is None else ids
        ids = [int(id) if is_int(id) else id for id in ids]
        payloads = [None] * count if payloads is None else list(payloads)
        rule = "Each row needs one id, and one payload if there are any"
        check_same_length(rule, rows=range(count), ids=ids, payloads=payloads)
        rule = "An id must be a str or an int"
        refuse_first([not (isinstance(id, str) or is_int(id)) for id in ids], ids, rule)
        first_index = {id: index for index, id in reversed([*enumerate(ids)])}
        is_old = [id in self._known or first_index[id] < index for index, id in enumerate(ids)]
        refuse_first(is_old, ids, "An id must occur once in an index")
        advice = "Keep other objects elsewhere, under the id."
        refuse_first(
            [not _fits_json(p) for p in payloads], payloads, "A payload must fit into JSON", advice
        )
        return ids, payloads

    def add(self, ids, payloads):
        """Adds what `check` returned."""
        self.ids += ids
        self.payloads += payloads
        self._known.update(ids)

    def hits(self, scores, positions):
        """Returns for each query a list of dicts: `id`, `score` and, where there is one, `payload`.

        Args:
            scores, positions: float and int arrays `(num_queries, k)`; positions below 0 are none.
        """
        ids, payloads = self.ids, self.payloads
        return [
            [
                hit(ids[position], score, payloads[position])
                for score, position in zip(*row, strict=True)
                if position >= 0
            ]
            for row in zip(scores.tolist(), positions.tolist(), strict=True)
        ]


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
    check_shape(name, vectors, ("num_vectors", "dim" if dim is None else dim), "f")
    check_not_empty(vectors.ravel(), f"{name} must not be empty")
    with np.errstate(over="ignore"):
        floats = np.array(vectors, "float32", order="C")
    refuse_first(~np.isfinite(floats), vectors, f"{name} must be finite in float32")
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
    refuse_first(~np.isfinite(matrix.data), matrix.data, f"{name} must be finite in float32")
    return matrix


def save_folder(folder, config, records, write_more=None, texts=None):
    """Writes an index into a folder, all files or none.

    Args:
        folder: str or path, made if missing.
        config: dict; its `kind` says what the folder holds.
        records: `Records`.
        write_more: function that writes further files into the folder that it is given.
        texts: list of str to keep with the records, or `None`.

    Raises:
        ValueError: there is nothing to save, or the folder holds something else.
    """
    check_not_empty(records, "An index must have rows to be saved", "Call `add` first.")
    folder = pathlib.Path(folder)
    if (folder / CONFIG).exists():
        check_kind(folder, config["kind"])
    with atomic_files.replacing_files(folder, stale=_ARRAYS) as new:
        if write_more:
            write_more(new)
        with open(new / RECORDS, "w", encoding="utf-8", newline="") as file:
            for row, id in enumerate(records.ids):
                record = {"id": id, "payload": records.payloads[row]}
                record |= {} if texts is None else {"text": texts[row]}
                file.write(json.dumps(record, ensure_ascii=True) + "\n")
        atomic_files.write_json(new / CONFIG, {**config, "num_rows": len(records)})


def check_kind(folder, kind):
    """Returns the config of a folder; raises `ValueError` if it holds another kind of thing."""
    config = atomic_files.read_json(pathlib.Path(folder) / CONFIG)
    if config.get("kind") != kind:
        raise ValueError(
            f"{folder} must hold an index of the kind {kind!r}. Received: {config.get('kind')!r}. "
            "Name another folder."
        )
    return config


def read_records(folder, config):
    """Returns the `Records` of a folder, and the text of each row, `None` without texts."""
    rows = [record for _, record in read_json_lines(pathlib.Path(folder) / RECORDS)]
    check_same_length(f"{folder} is incomplete", rows=rows, expected=range(config["num_rows"]))
    records = Records()
    ids, payloads = [row["id"] for row in rows], [row["payload"] for row in rows]
    records.add(*records.check(len(rows), ids, payloads))
    return records, [row.get("text") for row in rows]


def _fits_json(value):
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        return False
    return True
