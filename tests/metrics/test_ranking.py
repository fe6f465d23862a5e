"""Scores of rankings: hand-computed values, scikit-learn, and documents that were not found."""

import numpy as np
import pytest
from checks import cases
from sklearn.metrics import label_ranking_average_precision_score, ndcg_score

from bert_keras.metrics import mean_average_precision, mrr, ndcg, recall

# Ranks 1 to 4 have relevance 0, 2, 0, 1; a relevant document was not found.
SCORES = [[0.9, 0.4, 0.7, 0.6, -np.inf]]
RELEVANCE = [[0, 1, 2, 0, 3]]
IDEAL = 3 + 2 / np.log2(3) + 1 / 2


@cases(
    (ndcg, 1, 0),
    (ndcg, 2, (2 / np.log2(3)) / (3 + 2 / np.log2(3))),
    (ndcg, None, (2 / np.log2(3) + 1 / np.log2(5)) / IDEAL),
    (mrr, 1, 0),
    (mrr, 4, 1 / 2),
    (mean_average_precision, 2, (1 / 2) / 3),
    (mean_average_precision, 100, (1 / 2 + 2 / 4) / 3),
    (recall, 2, 1 / 3),
    (recall, None, 2 / 3),
)
def test_rankings_have_the_values_of_their_formulas(score, k, expected):
    assert score(SCORES, RELEVANCE, k) == pytest.approx(expected)


def test_ndcg_and_map_equal_sklearn():
    rng = np.random.default_rng(0)
    for _ in range(50):
        shape = rng.integers(1, 6), rng.integers(2, 12)
        scores, relevance = rng.permuted(rng.random(shape), axis=1), rng.integers(0, 4, shape)
        relevance[:, 0] = 1
        k = int(rng.integers(1, 12))
        assert ndcg(scores, relevance, k) == pytest.approx(ndcg_score(relevance, scores, k=k))
        theirs = label_ranking_average_precision_score(relevance > 0, scores)
        assert mean_average_precision(scores, relevance, None) == pytest.approx(theirs)


@pytest.mark.parametrize("score", [ndcg, mrr, mean_average_precision, recall])
def test_a_query_without_relevant_documents_scores_0_and_ties_keep_their_order(score):
    assert score([[0.5, 0.4], [0.5, 0.4]], [[1, 0], [0, 0]], 2) == pytest.approx(1 / 2)
    assert score([[0.5, 0.5]], [[1, 0]], 1) == 1
    assert score([[0.5, 0.5]], [[0, 1]], 1) == 0
