"""How well a search finds the documents that answer queries."""

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from bert_keras.checks import check_int, check_not_empty, check_same_length, raise_at_first
from bert_keras.metrics.ranking import mean_average_precision, mrr, ndcg, recall
from bert_keras.search.retrieval_data import RetrievalData

_IDS = "Ids must be of one type: 1 is not '1'."
SCORES = {"ndcg": ndcg, "mrr": mrr, "map": mean_average_precision, "recall": recall}


def evaluate_retrieval(
    search: Callable[[list[str], int], Any],
    data: RetrievalData,
    k: int | Sequence[int] = 10,
    ignore_identical_ids: bool = True,
) -> dict[str, float]:
    """Returns nDCG, MRR, MAP and recall of a search on retrieval data.

    Args:
        search: function that takes a list of queries and the number of hits for each, and returns a
            list of hits for each query, best first, as `Index.search` does. Hits have the ids of
            the corpus.
        data: `RetrievalData`.
        k: int, or several, the ranks that count.
        ignore_identical_ids: bool, whether a hit with the id of its query is left out, as BEIR
            does: where queries are documents of the corpus, as in ArguAna, each query would find
            itself first. `False` if ids of queries and documents have nothing in common.

    Returns:
        dict of floats, such as `{"ndcg@10": 0.83, "mrr@10": 0.80, ...}`.

    Raises:
        ValueError: there are no queries or documents, `k` is below 1, `search` returned no list for
            a query, a score is not finite, a query has no judgements, or the id of a hit or of all
            judged documents is not in the corpus.

    Warns:
        UserWarning: some judged documents are not in the corpus. They count as not found.

    Example:
    ```python
    data = bert_keras.search.read_beir("scifact")
    index.add(embedder.embed(list(data.corpus.values()), "document"), ids=data.corpus)
    bert_keras.search.evaluate_retrieval(
        lambda queries, top_k: index.search(embedder.embed(queries, "query"), top_k), data
    )
    ```
    """
    check_not_empty(data.corpus, "Evaluation needs a corpus")
    check_not_empty(data.queries, "Evaluation needs queries")
    ks = [check_int("k", each) for each in ([k] if np.ndim(k) == 0 else k)]
    relevance = _judgements(data, ignore_identical_ids)
    extra = ignore_identical_ids and not data.corpus.keys().isdisjoint(data.queries)
    rankings = search(list(data.queries.values()), max(ks) + extra)
    rule = "`search` must return a list of hits for each query"
    check_same_length(rule, queries=data.queries, lists=rankings)
    ids = [hit["id"] for ranking in rankings for hit in ranking]
    is_unknown = [id not in data.corpus for id in ids]
    raise_at_first(is_unknown, ids, "The id of a hit must be one of the corpus", _IDS)
    if ignore_identical_ids:
        pairs = zip(data.queries, rankings, strict=True)
        rankings = [[hit for hit in ranking if hit["id"] != id] for id, ranking in pairs]
    scores = [hit["score"] for ranking in rankings for hit in ranking]
    raise_at_first(~np.isfinite(np.array(scores, "float64")), scores, "Scores must be finite")
    arrays = _as_arrays(rankings, relevance)
    return {f"{name}@{k}": score(*arrays, k) for k in ks for name, score in SCORES.items()}


def _judgements(data, ignore_identical_ids):
    """Returns the relevance of documents, a dict for each query; raises unless they fit."""
    queries, relevance = list(data.queries), [data.relevance.get(id, {}) for id in data.queries]
    without = [not judged for judged in relevance]
    raise_at_first(without, queries, "Each query must have judgements under its id", _IDS)
    if ignore_identical_ids:
        itself = [judged.get(id, 0) > 0 for id, judged in zip(queries, relevance, strict=True)]
        advice = "Pass ignore_identical_ids=False if queries are no documents of the corpus."
        raise_at_first(itself, queries, "A query must not be relevant to itself", advice)
        names = {*map(str, data.corpus)}
        alike = [id not in data.corpus and str(id) in names for id in queries]
        raise_at_first(alike, queries, f"Queries and documents share ids. {_IDS[:-1]}", advice)
    judged = [id for ids in relevance for id in ids]
    missing = [id for id in judged if id not in data.corpus]
    if missing:
        message = (
            f"Judged documents must be in the corpus. Received: {len(missing)} of {len(judged)} "
            f"that are not, such as {missing[0]!r}."
        )
        if len(missing) == len(judged):
            raise ValueError(f"{message} {_IDS}")
        warnings.warn(f"{message} They count as not found.", stacklevel=3)
    return relevance


def _as_arrays(rankings, relevance):
    """Returns scores and relevance, with columns for the hits and for the documents not found.

    The scores are ranks, so that equal scores keep their order.
    """
    width = max(map(len, rankings)) + max(map(len, relevance))
    scores, degrees = np.full((2, len(rankings), width), [[[-np.inf]], [[0]]])
    for row, (hits, judged) in enumerate(zip(rankings, relevance, strict=True)):
        found = dict.fromkeys(hit["id"] for hit in hits)
        scores[row, : len(found)] = -np.arange(len(found))
        ids = found | dict(judged)  # Those found come first.
        degrees[row, : len(ids)] = [max(0, judged.get(id, 0)) for id in ids]
    return scores, degrees
