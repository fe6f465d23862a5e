"""How well a search finds the documents that answer queries."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from bert_keras.checks import check_int, check_not_empty, check_same_length, refuse_first
from bert_keras.metrics.ranking import mean_average_precision, mrr, ndcg, recall
from bert_keras.search.retrieval_data import RetrievalData

SCORES = {"ndcg": ndcg, "mrr": mrr, "map": mean_average_precision, "recall": recall}


def evaluate_retrieval(
    search: Callable[[list[str], int], Any], data: RetrievalData, k: int | Sequence[int] = 10
) -> dict[str, float]:
    """Returns nDCG, MRR, MAP and recall of a search on retrieval data.

    Args:
        search: function that takes a list of queries and the number of hits for each, and returns a
            list of hits for each query, best first, as `Index.search` does. Hits have the ids of
            the corpus.
        data: `RetrievalData`.
        k: int, or several, the ranks that count.

    Returns:
        dict of floats, such as `{"ndcg@10": 0.83, "mrr@10": 0.80, ...}`.

    Raises:
        ValueError: there are no queries or documents, `k` is below 1, `search` returned no list for
            a query, or a score is not finite.

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
    rankings = search(list(data.queries.values()), max(ks))
    check_same_length(
        "`search` must return a list of hits for each query", queries=data.queries, lists=rankings
    )
    scores = [hit["score"] for ranking in rankings for hit in ranking]
    refuse_first(~np.isfinite(np.array(scores, "float64")), scores, "Scores must be finite")
    relevance = [data.relevance.get(id, {}) for id in data.queries]
    arrays = _as_arrays(rankings, relevance)
    return {f"{name}@{k}": score(*arrays, k) for k in ks for name, score in SCORES.items()}


def _as_arrays(rankings, relevance):
    """Returns scores and relevance, with columns for the hits and for the documents not found.

    The scores are ranks, so that equal scores keep their order.
    """
    columns = []
    for hits, judged in zip(rankings, relevance, strict=True):
        ids = list(dict.fromkeys(hit["id"] for hit in hits))
        columns.append((ids, [id for id in judged if id not in set(ids)]))
    width = max(1, *(len(ids) + len(missed) for ids, missed in columns))
    scores, degrees = np.full((2, len(columns), width), [[[-np.inf]], [[0]]])
    for row, ((ids, missed), judged) in enumerate(zip(columns, relevance, strict=True)):
        scores[row, : len(ids)] = -np.arange(len(ids))
        values = [max(0, judged.get(id, 0)) for id in ids + missed]
        degrees[row, : len(values)] = values
    return scores, degrees
