"""The similarity that semantic search ranks by."""

import numpy as np
from numpy.typing import ArrayLike

from bert_keras.checks import check_shape
from bert_keras.types import Array


def cosine_similarity_matrix(queries: ArrayLike, documents: ArrayLike) -> Array:
    """Returns the cosine of the angle between each query and each document.

    Args:
        queries: float array `(num_queries, hidden_dim)`.
        documents: float array `(num_documents, hidden_dim)`.

    Returns:
        A float array `(num_queries, num_documents)` from -1 to 1, in the inputs' precision but at
        least float32. Cosines of zero vectors are 0.

    Raises:
        ValueError: the arrays are not 2-D, or their widths differ.

    Example:
        >>> cosine_similarity_matrix([[1.0, 0.0]], [[2.0, 0.0], [0.0, 3.0]]).tolist()
        [[1.0, 0.0]]
    """
    queries, documents = np.asarray(queries), np.asarray(documents)
    check_shape("Vectors of queries", queries, ("num_queries", "dim"))
    advice = "Both must have the same number of columns."
    check_shape("Vectors of documents", documents, ("num_documents", queries.shape[1]), "", advice)
    dtype = np.result_type(queries, documents, np.float32)

    def normalize(vectors):
        vectors = vectors.astype(dtype)
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        return np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths != 0)

    return np.clip(normalize(queries) @ normalize(documents).T, -1.0, 1.0)
