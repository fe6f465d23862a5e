"""Scores of predictions, each equal to its reference implementation.

Only scores that scikit-learn and SciPy lack are here.
"""

from bert_keras.answers.entity_tags import extract_entities as extract_entities
from bert_keras.answers.entity_tags import find_odd_tags as find_odd_tags
from bert_keras.metrics.calibration import best_temperature as best_temperature
from bert_keras.metrics.calibration import expected_calibration_error as expected_calibration_error
from bert_keras.metrics.chinese_spans import cmrc_scores as cmrc_scores
from bert_keras.metrics.entities import entity_scores as entity_scores
from bert_keras.metrics.ranking import mean_average_precision as mean_average_precision
from bert_keras.metrics.ranking import mrr as mrr
from bert_keras.metrics.ranking import ndcg as ndcg
from bert_keras.metrics.ranking import recall as recall
from bert_keras.metrics.retrieval import cosine_similarity_matrix as cosine_similarity_matrix
from bert_keras.metrics.retrieval import similarity_matrix as similarity_matrix
from bert_keras.metrics.spans import find_best_threshold as find_best_threshold
from bert_keras.metrics.spans import squad_v1_scores as squad_v1_scores
from bert_keras.metrics.spans import squad_v2_scores as squad_v2_scores
from bert_keras.metrics.streaming import MaskedPerplexity as MaskedPerplexity
from bert_keras.metrics.streaming import MatthewsCorrelation as MatthewsCorrelation
from bert_keras.metrics.streaming import SparseF1Score as SparseF1Score
from bert_keras.metrics.streaming import TokenAccuracy as TokenAccuracy
from bert_keras.metrics.thresholds import tune_thresholds as tune_thresholds
