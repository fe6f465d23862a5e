"""Exact search in a NumPy array, and the best hits of any search."""

import numpy as np

from bert_keras.answers.similarity import similarity_matrix
from bert_keras.checks import check_int, check_not_empty

# Values in a block of scores, at most 128 MB in float32.
_SCORES = 2**25
# Engines that approximate find other hits if they are asked for more. With this many at least, the
# first hits do not depend on `top_k` below it, as the docstring of `Index.search` promises.
_LEAST = 32


class ExactVectors:
    """Vectors of which each is compared with a query.

    Args:
        similarity: one of `SIMILARITIES`; for the cosine, vectors and queries have the length 1.
    """

    scores_all = True

    def __init__(self, similarity):
        self._similarity = "dot" if similarity == "cosine" else similarity
        self._vectors = []

    def add(self, vectors):
        self._vectors.append(vectors)

    def joined(self, *more):
        """Returns all vectors, and `more` after them, as one array."""
        if len(self._vectors) > 1:
            self._vectors[:] = [np.concatenate(self._vectors)]
        return np.concatenate([*self._vectors, *more]) if more else self._vectors[0]

    def search(self, queries, k):
        """Returns similarities and positions `(num_queries, k)`, in any order."""
        vectors = self.joined()
        kind = self._similarity
        return highest(lambda x: similarity_matrix(x, vectors, kind), queries, len(vectors), k)

    def arrays(self):
        return {"vectors": self.joined()}

    def set_array(self, array):
        """Takes the array that `arrays` returned; returns its shape `(num_vectors, dim)`."""
        self._vectors = [array.astype("float32")]
        return array.shape


def highest(scores_of, queries, num_vectors, k):
    """Returns the k highest scores of each query and their positions, in any order.

    Args:
        scores_of: function of some queries; returns float scores `(num_queries, num_vectors)`.
        queries: array or sparse matrix `(num_queries, dim)`.
        num_vectors: int.
        k: int, at most `num_vectors`.
    """
    found, size = [], max(1, _SCORES // num_vectors)
    for start in range(0, queries.shape[0], size):
        scores = scores_of(queries[start : start + size])
        best = np.argpartition(-scores, k - 1, axis=1)[:, :k]
        found.append((np.take_along_axis(scores, best, axis=1), best))
    return tuple(map(np.concatenate, zip(*found, strict=True)))


def best_of(search, num_vectors, top_k, scores_all=True):
    """Returns the best scores of each query and their positions, best first.

    Equal scores keep the order of the vectors, and `top_k` does not change which hits come first:
    the search is asked for more, and again while the last one has the score of the k-th. A search
    that approximates is asked once, since more hits could be others.

    Args:
        search: function of a number of hits; returns floats and ints `(num_queries, number)`, the
            highest scores in any order, and position -1 where nothing was found.
        num_vectors: int.
        top_k: int.
        scores_all: bool, whether the search scores all vectors.
    """
    check_not_empty(range(num_vectors), "An index must have rows to search", "Call `add`.")
    k = min(check_int("top_k", top_k), num_vectors)
    number = min(num_vectors, k + 1 if scores_all else max(k + 1, _LEAST))
    while True:
        scores, positions = search(number)
        order = np.lexsort((positions, -scores, positions < 0))
        scores, positions = (np.take_along_axis(x, order, axis=1) for x in (scores, positions))
        is_tied = (scores[:, k - 1] == scores[:, -1]) & (positions[:, -1] >= 0)
        if number == num_vectors or not (scores_all and is_tied.any()):
            return scores[:, :k], positions[:, :k]
        number = min(num_vectors, 4 * number)
