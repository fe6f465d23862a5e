"""An index over sparse vectors, such as those of SPLADE."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from bert_keras.checks import require
from bert_keras.search.exact_vectors import best_of, highest
from bert_keras.search.saved_index import SavedIndex, check_sparse

_ARRAYS = ("data", "indices", "indptr")


class SparseIndex(SavedIndex):
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
        super().__init__()
        self._sparse = require("scipy.sparse", "search in sparse vectors")
        # Blocks of the inverted index, `(dim, num_rows)` each.
        self._blocks = []

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
        ids, payloads = self._check_rows(vectors.shape[0], ids, payloads)
        self._blocks.append(vectors.T.tocsr())
        self._add_rows(ids, payloads)
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
        queries = check_sparse("Queries", queries, self.dim)

        def search(k):
            inverted = self._inverted()
            scores, rows = highest(lambda x: (x @ inverted).toarray(), queries, len(self), k)
            return scores, np.where(scores != 0, rows, -1)

        return self._hits(*best_of(search, len(self), top_k))

    def _inverted(self):
        """Returns the rows of each token, a sparse matrix `(dim, num_rows)`."""
        if len(self._blocks) > 1:
            self._blocks[:] = [self._sparse.hstack(self._blocks, format="csr")]
        return self._blocks[0]

    def _arrays(self):
        return {name: getattr(self._inverted(), name) for name in _ARRAYS}

    def _set_arrays(self, arrays):
        matrix = self._sparse.csr_array(
            tuple(arrays[name] for name in _ARRAYS), shape=(self.dim, len(self))
        )
        matrix.check_format(full_check=True)
        self._blocks = [check_sparse("Vectors", matrix, len(self))]
