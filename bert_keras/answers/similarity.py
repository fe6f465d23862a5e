"""How similar texts are: by their vectors, or by the vectors of their tokens."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

SIMILARITIES = ("cosine", "dot", "euclidean", "manhattan")


def l2_normalize(vectors: NDArray[np.floating]) -> NDArray[np.floating]:
    """Returns vectors `(..., dim)` scaled to length 1; those of zeros stay."""
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return vectors / np.where(lengths == 0, 1, lengths)


def similarity_matrix(
    similarity: str, queries: NDArray[np.floating], documents: NDArray[np.floating]
) -> NDArray[np.floating]:
    """Returns the similarity of each query and each document; the higher, the more similar.

    Args:
        similarity: `"cosine"`, `"dot"` for the inner product, `"euclidean"` or `"manhattan"` for
            the negative distance.
        queries: float array `(num_queries, dim)`.
        documents: float array `(num_documents, dim)`.

    Returns:
        Array `(num_queries, num_documents)` of the inputs' dtype. Cosines of zero vectors are 0.

    Reference:
        https://sbert.net/docs/sentence_transformer/usage/semantic_textual_similarity.html
    """
    if similarity == "dot":
        return queries @ documents.T
    if similarity == "cosine":
        return np.clip(l2_normalize(queries) @ l2_normalize(documents).T, -1.0, 1.0)
    if similarity == "manhattan":
        scores = np.empty((len(queries), len(documents)), np.result_type(queries, documents))
        for row, query in enumerate(queries):
            scores[row] = -np.abs(documents - query).sum(axis=1)
        return scores
    # In float64, since small distances are differences of large squares.
    first, second = queries.astype("float64"), documents.astype("float64")
    squares = (first**2).sum(axis=1)[:, None] + (second**2).sum(axis=1) - 2 * first @ second.T
    return -np.sqrt(np.maximum(squares, 0)).astype(np.result_type(queries, documents))


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
