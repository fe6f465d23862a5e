"""Vectors in an index of faiss, for approximate search and other codes."""

import numpy as np

from bert_keras.checks import require
from bert_keras.search.numpy_vectors import CANDIDATES

FACTORIES = {"float32": "Flat", "int8": "SQ8", "binary": "RaBitQ,Refine(SQ8)"}


class FaissVectors:
    """An index that `faiss.index_factory` makes, by inner product, see `numpy_vectors`.

    Args:
        factory: str, such as `"HNSW32"` or `"IVF1024,SQ8"`. What needs training is trained on the
            first vectors added.
    """

    def __init__(self, factory):
        self._faiss = require("faiss", "search with faiss", "search")
        self._factory, self._index = factory, None

    def add(self, vectors):
        index = self._index
        try:
            if index is None:
                metric = self._faiss.METRIC_INNER_PRODUCT
                index = self._faiss.index_factory(vectors.shape[1], self._factory, metric)
                index.train(vectors)
            index.add(vectors)
        except RuntimeError as error:
            raise ValueError(
                f"faiss must be able to make the index {self._factory!r} from the first vectors "
                f"added. Received: {str(error).rpartition(': ')[2]}. Add more vectors at once, or "
                "choose another factory."
            ) from error
        self._index = index

    def search(self, queries, k):
        """Returns float32 scores and int positions `(num_queries, k)`; -1 where none was found."""
        options = {}
        if isinstance(self._index, self._faiss.IndexRefine):
            options["params"] = self._faiss.IndexRefineSearchParameters(k_factor=CANDIDATES)
        return self._index.search(queries, min(k, self._index.ntotal), **options)

    def arrays(self):
        return {"faiss": self._faiss.serialize_index(self._index)}

    def set_arrays(self, arrays):
        self._index = self._faiss.deserialize_index(np.array(arrays["faiss"]))
