"""The hits of a search, scored again token by token."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from bert_keras.answers.similarity import maxsim_matrix
from bert_keras.checks import check_int, check_same_length, check_shape, raise_at_first


def rescore_by_maxsim(
    queries: Any, hits: Sequence[Any], vectors: Mapping[Any, Any] | Sequence[Any], top_k: int = 10
) -> Any:
    """Returns the hits of any search, ordered by MaxSim of their tokens' vectors.

    A search by one vector for each text, by sparse vectors or by BM25 finds a hundred texts;
    MaxSim, see `MultiVectorEmbedder`, orders them. So only few texts are compared token by token.

    Args:
        queries: list of float arrays `(num_tokens, dim)`, as `MultiVectorEmbedder.embed(texts,
            "query")` returns it; or one such array.
        hits: for each query a list of hits, dicts with an `"id"`; for one array that list alone.
        vectors: float arrays `(num_tokens, dim)` of the texts: a dict by the ids of the hits, or a
            list if ids are numbers from 0.
        top_k: int, hits for each query at most.

    Returns:
        Hits as given, with the new score, best first.

    Raises:
        ValueError: there are not as many lists of hits as queries, a text has no vectors, widths
            differ, or `top_k` is below 1.

    Example:
    ```python
    hits = index.search(embedder.embed(queries, "query"), top_k=100)
    vectors = dict(zip(ids, multi_vector_embedder.embed(texts), strict=True))
    query_vectors = multi_vector_embedder.embed(queries, "query")
    bert_keras.search.rescore_by_maxsim(query_vectors, hits, vectors)
    ```

    Reference:
        [Khattab and Zaharia, 2020](https://arxiv.org/abs/2004.12832), section 3.5.
    """
    check_int("top_k", top_k)
    if getattr(queries, "ndim", 0) == 2:
        return rescore_by_maxsim([queries], [hits], vectors, top_k)[0]
    check_same_length("Each query needs a list of hits", queries=queries, hits=hits)
    return [
        _rescored(np.asarray(query), query_hits, vectors, top_k)
        for query, query_hits in zip(queries, hits, strict=True)
    ]


def _rescored(query, hits, vectors, top_k):
    known_ids = vectors if isinstance(vectors, Mapping) else range(len(vectors))
    ids = [hit["id"] for hit in hits]
    raise_at_first(
        [id not in known_ids for id in ids], ids, "Each hit needs the vectors of its text"
    )
    check_shape("The vectors of a query", query, ("num_tokens", "dim"), "f")
    documents = [np.asarray(vectors[id]) for id in ids]
    for document in documents:
        check_shape("The vectors of a text", document, ("num_tokens", query.shape[1]), "f")
    scores = maxsim_matrix([query], documents)[0] if hits else []
    order = np.argsort(-np.asarray(scores), kind="stable")[:top_k]
    return [{**hits[place], "score": float(scores[place])} for place in order]
