"""Vectors in an index of faiss."""

import numpy as np

from bert_keras.checks import require

FACTORIES = {"float32": "Flat", "int8": "SQ8", "binary": "RaBitQ,Refine(SQ8)"}
# An index is trained on this many vectors at least; until then it is exact.
_TRAINING = 1000
# Bits select this many times as many vectors as a search asks for, which 8-bit codes then score.
_CANDIDATES = 4
# HNSW looks at this many vectors at a time. faiss's 16 find 69 % of the ten nearest among 100,000
# random vectors, and 128 find 98 % in five times the time, see `benchmarks/search_index.py`.
_EF_SEARCH = 128


class FaissVectors:
    """An index that `faiss.index_factory` makes.

    Codes of 8 bits hold the range of the vectors that they were trained on; others are cut to it.

    Args:
        factory: str, such as `"HNSW32"` or `"IVF1024,SQ8"`.
        similarity: one of `SIMILARITIES`; for the cosine, vectors and queries have the length 1.
    """

    def __init__(self, factory, similarity):
        self._faiss = faiss = require("faiss", "search with faiss", "search")
        self._factory, self._index, self._is_exact = factory, None, False
        metrics = {"euclidean": faiss.METRIC_L2, "manhattan": faiss.METRIC_L1}
        self._metric = metrics.get(similarity, faiss.METRIC_INNER_PRODUCT)

    @property
    def scores_all(self):
        """Whether a search scores all vectors: then the first hits do not depend on how many."""
        return self._is_exact or self._factory in ("Flat", "SQ8")

    def add(self, vectors):
        index, is_exact = self._index, self._is_exact
        count = len(vectors) + (index.ntotal if index else 0)
        try:
            if index is None or (is_exact and count >= _TRAINING):
                if is_exact:
                    vectors = np.concatenate([self.arrays()["vectors"], vectors])
                # Made even if it is not needed yet: this raises if its name is unknown.
                index = self._make(vectors.shape[1], self._factory)
                is_exact = self._factory != "Flat" and count < _TRAINING
                index = self._make(vectors.shape[1], "Flat") if is_exact else index
                index.train(_with_range(vectors))
            index.add(vectors)
        except RuntimeError as error:
            raise ValueError(
                f"faiss must be able to make the index {self._factory!r} from the first vectors "
                f"added. Received: {str(error).rpartition(': ')[2]}. Add more vectors at once, or "
                "choose another factory."
            ) from error
        self._index, self._is_exact = index, is_exact

    def _make(self, dim, factory):
        return self._tuned(self._faiss.index_factory(dim, factory, self._metric))

    def _tuned(self, index):
        if "HNSW" in self._factory and not isinstance(index, self._faiss.IndexFlat):
            self._faiss.ParameterSpace().set_index_parameter(index, "efSearch", _EF_SEARCH)
        return index

    def search(self, queries, k):
        """Returns similarities and positions `(num_queries, k)`; -1 where none was found."""
        options = {}
        if isinstance(self._index, self._faiss.IndexRefine):
            options["params"] = self._faiss.IndexRefineSearchParameters(k_factor=_CANDIDATES)
        scores, positions = self._index.search(queries, k, **options)
        if self._metric == self._faiss.METRIC_L2:  # Squares of distances.
            scores = np.sqrt(np.maximum(scores, 0))
        return scores if self._metric == self._faiss.METRIC_INNER_PRODUCT else -scores, positions

    def arrays(self):
        """Returns the array to save: the vectors of an exact index, or faiss's own form."""
        if self._is_exact or self._factory == "Flat":
            return {"vectors": self._index.reconstruct_n(0, self._index.ntotal)}
        return {"faiss": self._faiss.serialize_index(self._index)}

    def set_array(self, name, array):
        """Takes the array that `arrays` returned; returns the shape `(num_vectors, dim)`."""
        if name == "vectors":
            self._is_exact = self._factory != "Flat"
            self._index = self._make(array.shape[1], "Flat")
            self._index.add(np.ascontiguousarray(array, "float32"))
        else:
            self._index = self._tuned(self._faiss.deserialize_index(np.array(array)))
        return self._index.ntotal, self._index.d


def _with_range(vectors):
    """Returns vectors to train on, in which every column has a range.

    faiss learns the range of each column. A column that is constant so far would be lost in later
    vectors, so two more vectors give it the range of all values.
    """
    is_constant = np.ptp(vectors, axis=0) == 0
    if not is_constant.any():
        return vectors
    ends = np.repeat(vectors[:1], 2, axis=0)
    ends[:, is_constant] = [[-np.abs(vectors).max()], [np.abs(vectors).max()]]
    return np.concatenate([vectors, ends])
