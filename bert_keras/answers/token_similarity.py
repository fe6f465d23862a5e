"""The similarity of texts that have a vector for each token."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray


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
