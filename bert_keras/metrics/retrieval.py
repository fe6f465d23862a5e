"""Scores of semantic search: how high the right documents rank for a query.

Ties count against the model: a document that is not relevant ranks before a relevant one of the
same similarity. A model that gives everything the same similarity thus ranks right ones last.
"""

import numpy as np

from bert_keras.checks import check_int


def cosine_similarity_matrix(queries, documents):
    """Cosine of the angle between each query and each document.

    Args:
        queries: float array `(num_queries, hidden_dim)`.
        documents: float array `(num_documents, hidden_dim)`.

    Returns:
        A float array `(num_queries, num_documents)` from -1 to 1, in the inputs' precision but
        at least float32; 0 where a vector is zero.

    Raises:
        ValueError: on arrays that are not 2-D or of unequal width.

    Example:
        >>> cosine_similarity_matrix([[1.0, 0.0]], [[2.0, 0.0], [0.0, 3.0]]).tolist()
        [[1.0, 0.0]]
    """
    queries, documents = np.asarray(queries), np.asarray(documents)
    if queries.ndim != 2 or documents.ndim != 2 or queries.shape[1] != documents.shape[1]:
        raise ValueError(
            "Vectors must be two 2-D arrays with the same number of columns. "
            f"Received: shapes {queries.shape} and {documents.shape}."
        )
    dtype = np.result_type(queries, documents, np.float32)

    def normalize(vectors):
        vectors = vectors.astype(dtype)
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        return np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths != 0)

    return np.clip(normalize(queries) @ normalize(documents).T, -1.0, 1.0)


def _check(similarities, relevant):
    """Returns similarities, and relevance as a boolean matrix of the same shape."""
    similarities, relevant = np.asarray(similarities), np.asarray(relevant)
    if similarities.ndim != 2 or similarities.size == 0:
        raise ValueError(
            "`similarities` must be (num_queries, num_documents), and not empty. "
            f"Received: shape {similarities.shape}."
        )
    if similarities.dtype.kind != "f":
        # Their negatives sort them, which integers without a sign and booleans do not have.
        try:
            similarities = similarities.astype(np.float64)
        except (TypeError, ValueError):
            raise ValueError(
                f"`similarities` must be numbers. Received: dtype {similarities.dtype}."
            ) from None
    if np.isnan(similarities).any():
        raise ValueError("`similarities` must be numbers. Received: NaN.")
    num_queries, num_documents = similarities.shape
    if relevant.shape == (num_queries,) and relevant.dtype.kind in "iu":
        if relevant.min() < 0 or relevant.max() >= num_documents:
            raise ValueError(
                f"`relevant` must hold document numbers from 0 to {num_documents - 1}. "
                f"Received: {relevant.min()} to {relevant.max()}."
            )
        relevant = np.arange(num_documents) == relevant[:, None]
    if relevant.shape != similarities.shape:
        raise ValueError(
            "`relevant` must hold one document number per query, or be a matrix of the "
            f"similarities' shape {similarities.shape}. Received: shape {relevant.shape}, dtype "
            f"{relevant.dtype}."
        )
    relevant = relevant.astype(bool)
    if not relevant.any(axis=1).all():
        query = np.flatnonzero(~relevant.any(axis=1))[0]
        raise ValueError(
            f"Each query needs a relevant document. Received: none for query {query}. "
            "Leave such queries out."
        )
    return similarities, relevant


def mean_reciprocal_rank(similarities, relevant):
    """Mean over queries of 1 / the rank of the first relevant document.

    Args:
        similarities: float array `(num_queries, num_documents)`.
        relevant: integer array `(num_queries,)`, each query's right document; or array
            `(num_queries, num_documents)` of 0 and 1 where a query may have several.

    Returns:
        A float above 0, up to 1.

    Raises:
        ValueError: on shapes that do not fit, NaN, or a query without a relevant document.

    Example:
        >>> mean_reciprocal_rank([[0.9, 0.1, 0.5], [0.3, 0.8, 0.6]], [0, 2])
        0.75
    """
    similarities, relevant = _check(similarities, relevant)
    lowest = np.finfo(np.float64).min
    best = np.where(relevant, similarities, lowest).max(axis=1, keepdims=True)
    ranks = 1 + (~relevant & (similarities >= best)).sum(axis=1)
    return float((1 / ranks).mean())


def recall_at_k(similarities, relevant, k):
    """Mean over queries of the share of relevant documents among the first `k`.

    With one relevant document per query, this is the share of queries that find it.

    Args:
        similarities: float array `(num_queries, num_documents)`.
        relevant: as in `mean_reciprocal_rank`.
        k: how many documents count as found, at least 1; above `num_documents`, all do.

    Returns:
        A float from 0 to 1.

    Raises:
        ValueError: as `mean_reciprocal_rank`, and on `k` below 1.

    Example:
        >>> recall_at_k([[0.9, 0.1, 0.5], [0.3, 0.8, 0.6]], [0, 2], k=1)
        0.5
    """
    similarities, relevant = _check(similarities, relevant)
    check_int("k", k)
    # By falling similarity, and among equals relevant documents last.
    order = np.lexsort((relevant, -similarities), axis=1)[:, :k]
    found = np.take_along_axis(relevant, order, axis=1).sum(axis=1)
    return float((found / relevant.sum(axis=1)).mean())
