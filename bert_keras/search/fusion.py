"""One ranking from several."""

from collections.abc import Sequence
from typing import Any

from bert_keras.checks import check_int, check_not_empty, check_same_length


def reciprocal_rank_fusion(*rankings: Sequence[Any], top_k: int = 10, k: int = 60) -> Any:
    """Returns the hits that several searches rank high together.

    The score of a document is the sum of `1 / (k + rank)` over the rankings that contain it, so
    that scores of different kinds, such as BM25's and cosines, need no common scale.

    Args:
        *rankings: what the searches returned for the same queries: a list of hits, or a list of
            such lists. A hit is a dict with an `"id"`.
        top_k: int, hits for each query at most.
        k: int; the larger it is, the less the first ranks stand out from the next.

    Returns:
        Hits as those of the rankings, with the new score; a payload comes from the first ranking
        that contains the document.

    Raises:
        ValueError: there are no rankings, they are of different numbers of queries, or `top_k` or
            `k` is below 1.

    Example:
        >>> hits = reciprocal_rank_fusion([{"id": "a"}, {"id": "b"}], [{"id": "b"}])
        >>> [hit["id"] for hit in hits]
        ['b', 'a']

    Reference:
        [Cormack et al., 2009](https://doi.org/10.1145/1571941.1572114).
    """
    check_int("top_k", top_k)
    check_int("k", k)
    check_not_empty(rankings, "Fusion needs at least one ranking")
    if all(isinstance(hit, dict) for ranking in rankings for hit in ranking):
        return _fused(rankings, top_k, k)
    rule = "All rankings must be of the same queries"
    columns = {f"queries in ranking {n}": ranking for n, ranking in enumerate(rankings)}
    check_same_length(rule, **columns)
    return [_fused(of_a_query, top_k, k) for of_a_query in zip(*rankings, strict=True)]


def _fused(rankings, top_k, k):
    fused = {}
    for ranking in rankings:
        for rank, hit in enumerate(ranking, 1):
            first = fused.setdefault(hit["id"], {**hit, "score": 0.0})
            first["score"] += 1 / (k + rank)
    return sorted(fused.values(), key=lambda hit: -hit["score"])[:top_k]
