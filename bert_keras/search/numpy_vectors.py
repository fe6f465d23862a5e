"""Vectors in NumPy arrays: as floats, in 8 bits a value, or in 1 bit with 8 to rescore the best.

Each class has `add(vectors)`, `search(queries, k)`, `arrays()` and `set_arrays(arrays)`. They
compare a query with every vector.
"""

import numpy as np

# Values in a block of scores, at most 128 MB in float32, and vectors that are scored at a time.
_SCORES, _ROWS = 2**25, 2**14
# The bits select this many times k vectors, which their codes then rank.
CANDIDATES = 4


class FloatVectors:
    """Float32 vectors; the score is `queries @ vectors.T`."""

    def __init__(self):
        self._vectors = []

    def add(self, vectors):
        self._vectors.append(vectors)

    def search(self, queries, k):
        """Returns float32 scores and int positions `(num_queries, k)`, best first."""
        vectors = _joined(self._vectors)
        return best_of(queries, len(vectors), k, lambda block, rows: block @ vectors[rows].T)

    def arrays(self):
        return {"vectors": _joined(self._vectors)}

    def set_arrays(self, arrays):
        self._vectors = [arrays["vectors"]]


class Int8Vectors:
    """Vectors in a quarter of the memory: `code = floor((x - low) / step) - 128` for each column.

    `low` and `step = (high - low) / 255` come from the first vectors added; later ones are clipped
    to this range. A code stands for the middle of its step. Queries stay floats.
    """

    def __init__(self):
        self._codes, self._range = [], None

    def add(self, vectors):
        if self._range is None:
            low, high = vectors.min(axis=0), vectors.max(axis=0)
            self._range = np.stack([low, (high - low) / 255])
        low, step = self._range
        steps = np.divide(vectors - low, step, out=np.zeros_like(vectors), where=step > 0)
        self._codes.append((np.clip(np.floor(steps), 0, 255) - 128).astype("int8"))

    def search(self, queries, k):
        """Returns float32 scores and int positions `(num_queries, k)`, best first."""
        codes = _joined(self._codes)
        return best_of(queries, len(codes), k, lambda block, rows: self.scores(block, codes[rows]))

    def scores(self, queries, codes):
        low, step = self._range
        return (queries * step) @ codes.astype("float32").T + (queries @ (low + 128.5 * step))[
            :, None
        ]

    def rows(self, positions):
        return _joined(self._codes)[positions]

    def arrays(self):
        return {"codes": _joined(self._codes), "range": self._range}

    def set_arrays(self, arrays):
        self._codes, self._range = [arrays["codes"]], arrays["range"]


class BinaryVectors:
    """The sign of each value, one bit, and int8 codes to score the best by.

    The vectors whose bits differ least from the query's are found first, then scored by their
    codes. A search reads few codes, so a loaded index leaves them on the disk: in memory a vector
    has 1/32 of the size of its floats.
    """

    def __init__(self):
        self._bits, self._codes = [], Int8Vectors()

    def add(self, vectors):
        self._bits.append(_bits(vectors))
        self._codes.add(vectors)

    def search(self, queries, k):
        """Returns float32 scores and int positions `(num_queries, k)`, best first."""
        bits = _joined(self._bits)
        k = min(k, len(bits))
        scores, positions = np.empty((len(queries), k), "float32"), np.empty((len(queries), k), int)
        for row, (query, query_bits) in enumerate(zip(queries, _bits(queries), strict=True)):
            differing = np.bitwise_count(bits ^ query_bits).sum(axis=1, dtype="int32")
            near = np.sort(_lowest(differing[None], CANDIDATES * k)[0])
            rescored = self._codes.scores(query[None], self._codes.rows(near))
            best = _lowest(-rescored, k)[0]
            scores[row], positions[row] = rescored[0, best], near[best]
        return scores, positions

    def arrays(self):
        return {"bits": _joined(self._bits), **self._codes.arrays()}

    def set_arrays(self, arrays):
        self._bits = [arrays["bits"]]
        self._codes.set_arrays(arrays)


def _joined(blocks):
    """Returns the rows of a list of arrays, which it makes one array."""
    if len(blocks) > 1:
        blocks[:] = [np.concatenate(blocks)]
    return blocks[0]


def best_of(queries, num_vectors, k, scores_of, num_rows=_ROWS):
    """Returns the k best scores of each query and their positions, best first.

    It scores some vectors at a time and keeps the best so far: a block of scores fits into the
    processor's cache, and few later scores are better than the worst of k.

    Args:
        queries: array or sparse matrix `(num_queries, dim)`.
        num_vectors: int.
        k: int, cut to `num_vectors`.
        scores_of: function of some queries and a slice of the vectors; returns their scores, float
            `(num_queries, num_vectors of the slice)`.
        num_rows: int, the length of a slice.

    Returns:
        Float32 and int arrays `(num_queries, k)`. Equal scores keep the order of the vectors; if
        they tie for the last places, any of them may be left out.
    """
    k, count = min(k, num_vectors), queries.shape[0]
    scores, positions = np.empty((count, k), "float32"), np.empty((count, k), int)
    num_rows = max(k, num_rows)
    block = max(1, _SCORES // num_rows)
    for first in range(0, count, block):
        part = slice(first, first + block)
        for start in range(0, num_vectors, num_rows):
            part_scores = scores_of(queries[part], slice(start, start + num_rows))
            if start == 0:
                positions[part] = _lowest(-part_scores, k)
                scores[part] = np.take_along_axis(part_scores, positions[part], axis=1)
            else:
                _keep_best(scores[part], positions[part], part_scores, start)
    return scores, positions


def _keep_best(scores, positions, new_scores, start):
    """Merges the scores of a slice, from `start` on, into the best scores and their positions."""
    is_better = ~(new_scores <= scores[:, -1:])  # Also where the worst score is NaN.
    for row in np.flatnonzero(is_better.any(axis=1)):
        (new,) = np.nonzero(is_better[row])
        both = np.concatenate([scores[row], new_scores[row, new]])
        best = _lowest(-both[None], scores.shape[1])[0]
        scores[row] = both[best]
        positions[row] = np.concatenate([positions[row], start + new])[best]


def _lowest(values, k):
    """Returns the positions of the k lowest values of each row, in their order."""
    if k < values.shape[1]:
        lowest = np.sort(np.argpartition(values, k - 1, axis=1)[:, :k], axis=1)
        order = np.argsort(np.take_along_axis(values, lowest, axis=1), axis=1, kind="stable")
        return np.take_along_axis(lowest, order, axis=1)
    return np.argsort(values, axis=1, kind="stable")


def _bits(vectors):
    """Returns whether values are above 0 as uint64 `(num_vectors, ceil(dim / 64))`."""
    packed = np.packbits(vectors > 0, axis=1)
    return np.pad(packed, ((0, 0), (0, -packed.shape[1] % 8))).view("uint64")
