"""An index over sparse vectors, such as those of SPLADE."""

import pathlib
from collections.abc import Iterable, Sequence
from typing import Any, Self

import numpy as np

from bert_keras.checks import check_int, check_not_empty, require
from bert_keras.engine.atomic_files import of_one_state, reading
from bert_keras.search.exact_vectors import best_of, highest
from bert_keras.search.records import (
    Records,
    check_kind,
    check_sparse,
    read_records,
    save_folder,
)
from bert_keras.types import Path

KIND = "bert_keras.search.SparseIndex"
_ARRAYS = ("data", "indices", "indptr")


class SparseIndex:
    """Sparse vectors with their ids and payloads, searched by inner product.

    For each token the index keeps the rows that have a weight for it, so that a query reads only
    the lists of its own tokens. SciPy computes the products. It is meant for up to about a million
    texts; `QdrantIndex` takes the same vectors, and can spread them over several machines.

    Raises:
        ImportError: SciPy is not installed.

    Example:
    ```python
    index = bert_keras.search.SparseIndex()
    index.add(sparse_embedder.embed(texts, "document"), payloads=texts)
    index.search(sparse_embedder.embed("Who eats?", "query"), top_k=3)
    ```
    """

    def __init__(self) -> None:
        self._sparse = require("scipy.sparse", "search in sparse vectors")
        self.dim: int | None = None
        # Blocks of the inverted index, `(dim, num_rows)` each.
        self._records, self._blocks = Records(), []

    def __len__(self) -> int:
        return len(self._records)

    def add(
        self,
        vectors: Any,
        ids: Iterable[str | int] | None = None,
        payloads: Sequence[Any] | None = None,
    ) -> None:
        """Adds vectors. After an error, the index is as it was.

        Args:
            vectors: sparse float matrix `(num_vectors, dim)`, as `SparseTextEmbedder.embed` returns
                it.
            ids, payloads: see `Index.add`.

        Raises:
            TypeError: it is no sparse matrix.
            ValueError: see `Index.add`.
        """
        vectors = check_sparse("Vectors", vectors, self.dim)
        ids, payloads = self._records.check(vectors.shape[0], ids, payloads)
        self._blocks.append(vectors.T.tocsr())
        self._records.add(ids, payloads)
        self.dim = vectors.shape[1]

    def search(self, queries: Any, top_k: int = 10) -> list[list[dict[str, Any]]]:
        """Returns the vectors with the largest inner product with each query.

        Args:
            queries: sparse float matrix `(num_queries, dim)`.
            top_k: int, hits for each query at most, see `Index.search`.

        Returns:
            For each query a list of hits, see `Index.search`, without those that share no token
            with it.

        Raises:
            TypeError, ValueError: see `add` and `Index.search`.
        """
        check_int("top_k", top_k)
        check_not_empty(self, "An index must have vectors to search", "Call `add`.")
        queries, inverted = check_sparse("Queries", queries, self.dim), self._inverted()

        def search(k):
            scores, rows = highest(lambda block: (block @ inverted).toarray(), queries, k)
            return scores, np.where(scores != 0, rows, -1)

        return self._records.hits(*best_of(search, len(self), top_k))

    def _inverted(self):
        """Returns the rows of each token, a sparse matrix `(dim, num_rows)`."""
        if len(self._blocks) > 1:
            self._blocks[:] = [self._sparse.hstack(self._blocks, format="csr")]
        return self._blocks[0]

    def save(self, folder: Path) -> None:
        """Writes the index into a folder, see `Index.save`."""

        def write_arrays(new):
            for name in _ARRAYS:
                np.save(new / f"{name}.npy", getattr(self._inverted(), name))

        save_folder(folder, {"kind": KIND, "dim": self.dim}, self._records, write_arrays)

    @classmethod
    @of_one_state
    def load(cls, folder: Path) -> Self:
        """Returns an index that `save` wrote, see `Index.load`."""
        config, index = check_kind(folder, KIND), cls()
        with reading(folder):
            index.dim = check_int("dim", config["dim"])
            index._records, _ = read_records(folder, config)
            paths = [pathlib.Path(folder) / f"{name}.npy" for name in _ARRAYS]
            arrays = [np.load(path, allow_pickle=False) for path in paths]
            matrix = index._sparse.csr_array(tuple(arrays), shape=(index.dim, len(index)))
            matrix.check_format(full_check=True)
            index._blocks = [check_sparse("Vectors", matrix, len(index))]
        return index
