"""What metrics refuse: the call, and what the message says."""

import numpy as np
from checks import refused

from bert_keras.answers.similarity import similarity_matrix
from bert_keras.metrics import entity_scores, extract_entities, tune_thresholds
from bert_keras.metrics.chinese_spans import cmrc_scores
from bert_keras.metrics.ranking import mean_average_precision, mrr, ndcg, recall
from bert_keras.metrics.spans import squad_v1_scores, squad_v2_scores

ONE_ANSWER = (squad_v1_scores, cmrc_scores)
SPANS = (squad_v2_scores, *ONE_ANSWER)
RANKINGS = (ndcg, mrr, mean_average_precision, recall)
TWO = {"q": ["Nile"], "r": ["Rhine"]}


@refused(
    # Entities
    *(
        (extract_entities, (["O", tag],), "A tag must be")
        for tag in ("X-PER", "PER", "BPER", "", "B_PER", None, 3, "-PER")
    ),
    (entity_scores, ([["O"], ["O", "O"]], [["O"], ["O"]]), "sentence 1"),
    (entity_scores, ([["O"]], []), "number of sentences"),
    (entity_scores, ([], []), "at least one sentence"),
    (entity_scores, (["O", "O"], ["O", "O"]), "list of sentences"),
    # Answers
    *((scores, ({}, {}), "at least one question") for scores in SPANS),
    *((scores, ({"q": "Nile"}, {"q": "Nile"}), "list of texts") for scores in SPANS),
    *((scores, ({"q": [None]}, {"q": "Nile"}), "list of texts") for scores in SPANS),
    *((scores, ({"q": ["Nile"]}, {"q": x}), "to a text") for scores in SPANS for x in (None, 1)),
    *((scores, ({"q": []}, {"q": ""}), "needs an answer") for scores in ONE_ANSWER),
    (squad_v2_scores, (TWO, {"q": "Nile"}), "every question. Received 'r'"),
    (squad_v2_scores, (TWO, {"q": "Nile", "r": ""}, {"q": 0.5}), "no_answer_scores"),
    # Vectors and thresholds
    (similarity_matrix, ([[1.0, 2.0]], [[1.0]]), "same number of columns"),
    *((score, ([[1.0, 2.0]], [[1]], 1), "num_queries, num_documents") for score in RANKINGS),
    *((score, ([[1.0, np.nan]], [[1, 0]], 1), "must be finite, or -inf") for score in RANKINGS),
    *((score, ([[1.0]], [[-1]], 1), "numbers from 0") for score in RANKINGS),
    *((score, (np.zeros((0, 2)), np.zeros((0, 2)), 1), "at least one query") for score in RANKINGS),
    *((score, ([[1.0]], [[1]], 0), "`k` must be an int from 1") for score in RANKINGS),
    (tune_thresholds, ([[0], [1]], [[0.1], [np.nan]]), "finite"),
    (tune_thresholds, ([[0], [2]], [[0.1], [0.2]]), "only 0 and 1"),
    (tune_thresholds, ([0, 1], [0.1, 0.2]), "num_examples, num_labels"),
)
def test_impossible_arguments_are_refused(function, arguments):
    function(*arguments)
