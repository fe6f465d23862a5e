"""Texts that an embedder mistakes for answers: the negatives that teach most."""

import collections
import warnings
from typing import Unpack

import numpy as np

from bert_keras.checks import (
    as_column,
    as_texts,
    check_int,
    check_not_empty,
    check_number,
    check_same_length,
    check_type,
)
from bert_keras.tasks.embedder import Embedder, nearest
from bert_keras.tasks.reranker import Reranker
from bert_keras.types import PredictOptions, Texts


def mine_hard_negatives(
    embedder: Embedder,
    queries: Texts,
    positives: Texts,
    corpus: Texts,
    num_negatives: int = 1,
    top_k: int = 100,
    margin: float | None = None,
    relative_margin: float | None = None,
    reranker: Reranker | None = None,
    **options: Unpack[PredictOptions],
) -> tuple[list[str], ...]:
    """Returns queries and positives with the nearest texts of a corpus that are not positives.

    The nearest texts are often answers that nobody has labelled. The margins leave out texts whose
    scores come too close to that of the positive. Scores are similarities as the embedder measures
    them; the miner of sentence-transformers scales vectors to length 1 first. A text that equals
    the query, or a positive of an equal query, is never a negative.

    Args:
        embedder: a `TextEmbedder`, `SparseTextEmbedder` or `MultiVectorEmbedder`.
        queries, positives: columns of str, of equal length.
        corpus: a column of str.
        num_negatives: int, negatives for each query.
        top_k: int, how many of the nearest texts to choose from.
        margin: float from 0: a negative's score is at most the positive's minus this.
        relative_margin: float from 0 to below 1, such as 0.05: it is at most the positive's minus
            this share of the positive's absolute value.
        reranker: a `Reranker` that scores the texts to choose from and the positive anew, or
            `None` for the embedder's similarities. That of sentence-transformers has no effect
            without a margin.
        batch_size: int, 32 by default.
        verbose: see `keras.Model.predict`.

    Returns:
        A tuple of columns for `embedder.fit` and `Reranker.fit`: queries, positives, and
        `num_negatives` columns of negatives, those of the highest scores first. Queries with fewer
        negatives are left out, with a warning.

    Raises:
        TypeError: something is not text, `embedder` is no embedder, or `reranker` no reranker.
        ValueError: a column is empty, lengths differ, or an argument is out of range.

    Example:
    ```python
    columns = bert_keras.mine_hard_negatives(
        embedder, queries, positives, corpus, num_negatives=4, relative_margin=0.05
    )
    embedder.fit(columns)
    ```

    Reference:
        [Moreira et al., 2024](https://arxiv.org/abs/2407.15831), section 3.
    """
    check_type("embedder", embedder, Embedder, "an embedder, such as a `TextEmbedder`")
    embedder.check_options(options, mine_hard_negatives)
    if reranker is not None:
        check_type("reranker", reranker, Reranker, "a `Reranker`")
    columns = {"queries": queries, "positives": positives, "corpus": corpus}
    for name, column in columns.items():
        columns[name] = as_texts(as_column(column, name), name)
        check_not_empty(columns[name], f"`{name}` must hold texts")
    queries, positives, corpus = columns.values()
    rule = "Each query needs its positive"
    check_same_length(rule, queries=queries, positives=positives)
    check_int("num_negatives", num_negatives)
    check_int("top_k", top_k)
    check_number("margin", margin or 0.0)
    check_number("relative_margin", relative_margin or 0.0, below=1.0)
    excluded = collections.defaultdict(set)
    for query, positive in zip(queries, positives, strict=True):
        excluded[query] |= {query, positive}
    documents = list(dict.fromkeys(corpus))
    vectors = [embedder.embed_as("query", queries, **options)]
    vectors += [embedder.embed_as("document", x, **options) for x in (positives, documents)]
    positive_scores = embedder.similarities_of_pairs(*vectors[:2])
    most, rows = top_k + max(map(len, excluded.values())), []
    found = nearest(embedder, vectors[0], vectors[2], most)
    for query, positive, positive_score, (scores, order) in zip(
        queries, positives, positive_scores, found, strict=True
    ):
        candidates = [index for index in order if documents[index] not in excluded[query]][:top_k]
        scores = scores[candidates]
        if reranker is not None:
            texts = [positive, *(documents[index] for index in candidates)]
            positive_score, *scores = reranker.score(query, texts, **options)
        highest = np.inf if margin is None else positive_score - margin
        if relative_margin is not None:
            highest = min(highest, positive_score - relative_margin * abs(positive_score))
        ranked = sorted(zip(scores, candidates, strict=True), key=lambda pair: -pair[0])
        chosen = [documents[index] for score, index in ranked if score <= highest]
        if len(chosen) >= num_negatives:
            rows.append((query, positive, *chosen[:num_negatives]))
    if len(rows) < len(queries):
        warnings.warn(
            f"{len(queries) - len(rows)} of {len(queries)} queries have fewer than {num_negatives} "
            "negatives within the limits, and are left out. Raise `top_k`, or lower the margins.",
            stacklevel=2,
        )
    return tuple([row[column] for row in rows] for column in range(2 + num_negatives))
