"""The similarities that semantic search ranks by."""

import numpy as np
from numpy.typing import ArrayLike

from bert_keras.answers import similarity as similarities
from bert_keras.checks import check_choice, check_shape
from bert_keras.types import Array, VectorSimilarity


def similarity_matrix(
    queries: ArrayLike, documents: ArrayLike, similarity: VectorSimilarity = "cosine"
) -> Array:
    """Returns the similarity of each query and each document; the higher, the more similar.

    Args:
        queries: float array `(num_queries, dim)`.
        documents: float array `(num_documents, dim)`.
        similarity: `"cosine"`; `"dot"`, the inner product; `"euclidean"` or `"manhattan"`, the
            negative distance.

    Returns:
        A float array `(num_queries, num_documents)` in the inputs' precision but at least float32.
        Cosines of zero vectors are 0.

    Raises:
        ValueError: the arrays are not 2-D, their widths differ, or `similarity` is unknown.

    Example:
        >>> similarity_matrix([[1.0, 0.0]], [[2.0, 0.0], [0.0, 3.0]], "dot").tolist()
        [[2.0, 0.0]]
    """
    check_choice("similarity", similarity, similarities.SIMILARITIES)
    queries, documents = np.asarray(queries), np.asarray(documents)
    check_shape("Vectors of queries", queries, ("num_queries", "dim"))
    advice = "Both must have the same number of columns."
    check_shape("Vectors of documents", documents, ("num_documents", queries.shape[1]), "", advice)
    dtype = np.result_type(queries, documents, np.float32)
    vectors = queries.astype(dtype), documents.astype(dtype)
    return similarities.similarity_matrix(similarity, *vectors)
