"""Scores of rankings, equal to trec_eval's: nDCG, MRR, MAP and recall among the first k.

All take a score and a relevance for each query and document. The order is by score; of equal scores
the document with the lower index comes first. A score of `-inf` means that the search did not
return the document: it takes no place in the ranking, but counts among the relevant documents if it
is one. Relevance above 0 is relevant; only `ndcg` reads its degrees. A query without a relevant
document scores 0.
"""

import numpy as np
from numpy.typing import ArrayLike

from bert_keras.checks import check_int, check_not_empty, check_shape, raise_at_first


def ndcg(scores: ArrayLike, relevance: ArrayLike, k: int | None) -> float:
    """Returns the normalized discounted cumulative gain, the mean over queries.

    The gain of a query is `sum(relevance_r / log2(r + 1))` over the ranks r from 1 to k, divided by
    the gain of the best possible ranking.

    Args:
        scores: float array `(num_queries, num_documents)`.
        relevance: array of the same shape, numbers from 0.
        k: int, the number of ranks that count; `None` for all.

    Returns:
        A float from 0 to 1.

    Raises:
        ValueError: the shapes differ, there are no queries, or a value is not a number.

    Example:
        >>> round(ndcg([[0.1, 0.9]], [[1, 0]], k=10), 4)  # The right document has rank 2.
        0.6309

    Reference:
        [Järvelin and Kekäläinen, 2002](https://doi.org/10.1145/582415.582418).
    """
    found, relevance = _found_relevance(scores, relevance, k)
    ideal = -np.sort(-relevance, axis=1)[:, : found.shape[1]]
    discounts = 1 / np.log2(np.arange(2, found.shape[1] + 2))
    return _mean_share(found @ discounts, ideal @ discounts)


def mrr(scores: ArrayLike, relevance: ArrayLike, k: int | None) -> float:
    """Returns the mean reciprocal rank: 1 / the rank of the first relevant document.

    A query whose first relevant document has a rank above k scores 0. See `ndcg` for arguments and
    errors.

    Example:
        >>> mrr([[0.1, 0.9]], [[1, 0]], k=10)
        0.5
    """
    found = _found_relevance(scores, relevance, k)[0] > 0
    return float(np.mean(found.any(axis=1) / (1 + found.argmax(axis=1))))


def mean_average_precision(scores: ArrayLike, relevance: ArrayLike, k: int | None) -> float:
    """Returns the mean average precision.

    The average precision of a query is the sum of the precisions at the ranks of its relevant
    documents up to k, divided by the number of all its relevant documents. See `ndcg` for arguments
    and errors.

    Example:
        >>> mean_average_precision([[0.9, 0.5, 0.1]], [[1, 0, 1]], k=2)
        0.5
    """
    found, relevance = _found_relevance(scores, relevance, k)
    found = found > 0
    precisions = found.cumsum(axis=1) / np.arange(1, found.shape[1] + 1)
    return _mean_share((precisions * found).sum(axis=1), (relevance > 0).sum(axis=1))


def recall(scores: ArrayLike, relevance: ArrayLike, k: int | None) -> float:
    """Returns the share of relevant documents among the first k, the mean over queries.

    See `ndcg` for arguments and errors.

    Example:
        >>> recall([[0.9, 0.5, 0.1]], [[1, 0, 1]], k=2)
        0.5
    """
    found, relevance = _found_relevance(scores, relevance, k)
    return _mean_share((found > 0).sum(axis=1), (relevance > 0).sum(axis=1))


def _found_relevance(scores, relevance, k):
    """Returns the relevance at the first k ranks, best rank first, and that of all documents."""
    scores, relevance = np.asarray(scores, "float64"), np.asarray(relevance, "float64")
    check_shape("`scores`", scores, ("num_queries", "num_documents"))
    advice = "Both must be (num_queries, num_documents)."
    check_shape("`relevance`", relevance, scores.shape, advice=advice)
    check_not_empty(scores.ravel(), "`scores` must have at least one query and one document")
    raise_at_first(
        np.isnan(scores) | (scores == np.inf),
        scores,
        "`scores` must be finite, or -inf for a document that was not found",
    )
    rule, advice = "`relevance` must be finite numbers from 0", "0 means not relevant."
    raise_at_first(~(np.isfinite(relevance) & (relevance >= 0)), relevance, rule, advice)
    k = scores.shape[1] if k is None else check_int("k", k)
    order = np.argsort(-scores, axis=1, kind="stable")[:, :k]
    was_found = np.take_along_axis(scores, order, axis=1) > -np.inf
    return np.take_along_axis(relevance, order, axis=1) * was_found, relevance


def _mean_share(values, maxima):
    """Returns the mean over queries of each value's share of its maximum, 0 if that is 0."""
    return float(np.mean(np.divide(values, maxima, out=np.zeros(len(maxima)), where=maxima > 0)))
