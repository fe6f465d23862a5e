"""How similar texts are: by their vectors, or by the vectors of their tokens."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..checks import check_choice, check_shape
from ..types import Array, VectorSimilarity

SIMILARITIES = ("cosine", "dot", "euclidean", "manhattan")


def l2_normalize(vectors: NDArray[np.floating]) -> NDArray[np.floating]:
    """Returns vectors `(..., dim)` scaled to length 1; those of zeros stay."""
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return vectors / np.where(lengths == 0, 1, lengths)


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

    Reference:
        https://sbert.net/docs/sentence_transformer/usage/semantic_textual_similarity.html
    """
    check_choice("similarity", similarity, SIMILARITIES)
    queries, documents = np.asarray(queries), np.asarray(documents)
    check_shape("Vectors of queries", queries, ("num_queries", "dim"))
    advice = "Both must have the same number of columns."
    check_shape("Vectors of documents", documents, ("num_documents", queries.shape[1]), "", advice)
    dtype = np.result_type(queries, documents, np.float32)
    queries, documents = queries.astype(dtype, copy=False), documents.astype(dtype, copy=False)
    if similarity == "dot":
        return queries @ documents.T
    if similarity == "cosine":
        return np.clip(l2_normalize(queries) @ l2_normalize(documents).T, -1.0, 1.0)
    if similarity == "manhattan":
        scores = np.empty((len(queries), len(documents)), dtype)
        for row, query in enumerate(queries):
            scores[row] = -np.abs(documents - query).sum(axis=1)
        return scores
    # In float64, since small distances are differences of large squares.
    first, second = queries.astype("float64"), documents.astype("float64")
    squares = (first**2).sum(axis=1)[:, None] + (second**2).sum(axis=1) - 2 * first @ second.T
    return -np.sqrt(np.maximum(squares, 0)).astype(dtype)


def maxsim_matrix(
    queries: Sequence[NDArray[np.floating]], documents: Sequence[NDArray[np.floating]]
) -> NDArray[np.float32]:
    """Returns for each query and document the sum, over the query's tokens, of their best match.

    Args:
        queries: list of arrays `(num_tokens, dim)`.
        documents: list of arrays `(num_tokens, dim)`. A document without tokens scores `-inf`.

    Returns:
        float32 array `(num_queries, num_documents)`.
    """
    scores = np.full((len(queries), len(documents)), -np.inf, "float32")
    places = [place for place, document in enumerate(documents) if len(document)]
    if not places:
        return scores
    tokens = np.concatenate([documents[place] for place in places])
    starts = np.cumsum([0, *(len(documents[place]) for place in places[:-1])])
    for row, query in enumerate(queries):
        best = np.maximum.reduceat(query @ tokens.T, starts, axis=1)
        scores[row, places] = best.sum(axis=0)
    return scores
