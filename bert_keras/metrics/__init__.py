"""Scores of predictions, equal to the reference implementation of each."""

from bert_keras.metrics.chinese_spans import cmrc_scores
from bert_keras.metrics.classification import (
    accuracy,
    confusion_matrix,
    matthews_correlation,
    precision_recall_f1,
    tune_thresholds,
)
from bert_keras.metrics.correlation import pearson, spearman
from bert_keras.metrics.entities import entity_scores, extract_entities, find_odd_tags
from bert_keras.metrics.masked_lm import masked_accuracy, masked_perplexity
from bert_keras.metrics.retrieval import (
    cosine_similarity_matrix,
    mean_reciprocal_rank,
    recall_at_k,
)
from bert_keras.metrics.spans import find_best_threshold, squad_v1_scores, squad_v2_scores
from bert_keras.metrics.streaming import MaskedPerplexity, MatthewsCorrelation, SparseF1Score

__all__ = [
    "MaskedPerplexity",
    "MatthewsCorrelation",
    "SparseF1Score",
    "accuracy",
    "cmrc_scores",
    "confusion_matrix",
    "cosine_similarity_matrix",
    "entity_scores",
    "extract_entities",
    "find_best_threshold",
    "find_odd_tags",
    "masked_accuracy",
    "masked_perplexity",
    "matthews_correlation",
    "mean_reciprocal_rank",
    "pearson",
    "precision_recall_f1",
    "recall_at_k",
    "spearman",
    "squad_v1_scores",
    "squad_v2_scores",
    "tune_thresholds",
]
