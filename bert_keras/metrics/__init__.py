"""Scores of predictions, equal to the reference implementation of each.

Accuracy, F1, correlations and their like are in scikit-learn and scipy; here is what they lack.
"""

from bert_keras.answers.entity_tags import extract_entities, find_odd_tags
from bert_keras.metrics.chinese_spans import cmrc_scores
from bert_keras.metrics.entities import entity_scores
from bert_keras.metrics.retrieval import cosine_similarity_matrix
from bert_keras.metrics.spans import find_best_threshold, squad_v1_scores, squad_v2_scores
from bert_keras.metrics.streaming import (
    MaskedPerplexity,
    MatthewsCorrelation,
    SparseF1Score,
    TokenAccuracy,
)
from bert_keras.metrics.thresholds import tune_thresholds
