"""Vectors in an index of faiss."""

import numpy as np

from bert_keras.checks import require

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
        similarity: `"cosine"`, for vectors and queries of the length 1, `"dot"` or `"euclidean"`.
    """

    def __init__(self, factory, similarity):
        self._faiss = faiss = require("faiss", "search with faiss", "search")
        self._factory, self._index = factory, None
        is_distance = similarity == "euclidean"
        self._metric = faiss.METRIC_L2 if is_distance else faiss.METRIC_INNER_PRODUCT
        # Then the first hits do not depend on how many a search asks for.
        self.scores_all = factory in ("Flat", "SQ8")

    def make(self, dim, vectors=None):
        """Makes the index, and trains it on vectors and adds them, if there are any.

        Raises:
            ValueError: faiss does not know the index, or cannot make it from these vectors.
        """
        try:
            index = self._tuned(self._faiss.index_factory(dim, self._factory, self._metric))
            if vectors is not None:
                index.train(_with_range(vectors))
                index.add(vectors)
        except RuntimeError as error:
            raise ValueError(
                f"faiss must be able to make the index {self._factory!r} from the first vectors "
                f"added. Received: {str(error).rpartition(': ')[2]}. Choose another factory."
            ) from error
        self._index = index

    def _tuned(self, index):
        settings = self._faiss.ParameterSpace()
        if "HNSW" in self._factory:
            settings.set_index_parameter(index, "efSearch", _EF_SEARCH)
        if "Refine" in self._factory:
            settings.set_index_parameter(index, "k_factor_rf", _CANDIDATES)
        return index

    def add(self, vectors):
        self._index.add(vectors)

    def search(self, queries, k):
        """Returns similarities and positions `(num_queries, k)`; -1 where none was found."""
        scores, positions = self._index.search(queries, k)
        if self._metric == self._faiss.METRIC_L2:  # Squares of distances.
            scores = -np.sqrt(np.maximum(scores, 0))
        return scores, positions

    def arrays(self):
        """Returns the array to save, faiss's own form of the index."""
        return {"faiss": self._faiss.serialize_index(self._index)}

    def set_array(self, array):
        """Takes the array that `arrays` returned; returns the shape `(num_vectors, dim)`."""
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
