"""Losses of a `Reranker`, whose rows are the scores of a query's candidates.

Labels are `-inf` for candidates that do not exist, since queries differ in their numbers.
"""

import math
from typing import Any

import keras
from keras import ops

from bert_keras.checks import check_int, check_number
from bert_keras.training.losses import SmoothedLoss, WeightedLoss
from bert_keras.training.similarities import candidate_scores


@keras.saving.register_keras_serializable(package="bert_keras")
class RelevanceCrossentropy(SmoothedLoss):
    """Binary cross-entropy of the relevance of each candidate on its own.

    With a logit `x`, `p = 1 / (1 + exp(-x))`, relevance `y`: `-pos_weight * y * log p -
    (1 - y) * log(1 - p)`, averaged over the candidates of a row. Smoothing turns `y` into
    `(1 - s) * y + s / 2`.

    Args:
        pos_weight: float, above 0: what a relevant text weighs. If there are `n` irrelevant texts
            for each relevant one, `n` balances them.
        label_smoothing: float, at least 0 and below 1.
        **kwargs: `reduction`, `name`, `dtype`, see `keras.losses.Loss`.

    Call arguments:
        y_true: float `(batch, num_candidates)`, relevance from 0 to 1; of one candidate also
            `(batch,)`.
        y_pred: float `(batch, num_candidates)`, logits.
        sample_weight: float `(batch,)`, or `None` for 1 everywhere.
    """

    settings = ("pos_weight", "label_smoothing")

    def __init__(
        self, pos_weight: float = 1.0, label_smoothing: float = 0.0, **kwargs: Any
    ) -> None:
        super().__init__(label_smoothing, **kwargs)
        self.pos_weight = check_number("pos_weight", pos_weight, above=0.0)

    def call(self, y_true, y_pred):
        labels, exists = _labels(ops.reshape(y_true, ops.shape(y_pred)))
        labels = (1 - self.label_smoothing) * labels + 0.5 * self.label_smoothing
        losses = self.pos_weight * labels * ops.softplus(-y_pred)
        losses = (losses + (1 - labels) * ops.softplus(y_pred)) * exists
        return ops.sum(losses, axis=-1) / ops.sum(exists, axis=-1)


@keras.saving.register_keras_serializable(package="bert_keras")
class ListwiseCrossentropy(WeightedLoss):
    """Cross-entropy of the softmax over a query's candidates.

    With scores `s` and relevance `y`: `-sum over j of (y_j / sum(y)) * log softmax(s)_j`. With one
    relevant candidate it is the usual loss of one positive among negatives. A query without a
    relevant candidate has no loss. For ListNet, whose targets are `softmax(y)`, see
    `TeacherDivergence`, which has the same gradient.

    Args:
        **kwargs: `reduction`, `name`, `dtype`, see `keras.losses.Loss`.

    Call arguments:
        y_true: float `(batch, num_candidates)`, relevance from 0.
        y_pred: float `(batch, num_candidates)`, scores.
        sample_weight: float `(batch,)`, or `None` for 1 everywhere.

    Reference:
        [Zhuang et al., 2022](https://arxiv.org/abs/2210.10634), section 4.2.
    """

    def call(self, y_true, y_pred):
        labels, exists = _labels(y_true)
        targets = labels / ops.maximum(ops.sum(labels, axis=-1, keepdims=True), 1e-9)
        scores = ops.where(exists > 0, candidate_scores(y_pred), ops.cast(-1e9, y_pred.dtype))
        return -ops.sum(targets * ops.log_softmax(scores) * exists, axis=-1)


@keras.saving.register_keras_serializable(package="bert_keras")
class LambdaLoss(WeightedLoss):
    """Scores must order a query's candidates; pairs that cost most nDCG count most.

    NDCG-Loss2++: candidates are sorted by their scores `s`. With relevance `y`, gains `G_i =
    (2^y_i - 1) / maxDCG` and discounts `D_i = log2(1 + i)`, a pair `y_i > y_j` has the weight

    `|G_i - G_j| * (|1 / D_i - 1 / D_j| + mu * |1 / D_|i-j| - 1 / D_(|i-j|+1)|)`

    and the loss `weight * log2(1 + exp(-sigma * (s_i - s_j)))`, averaged over the pairs of a query.

    Args:
        k: int, pairs of two candidates below the first `k` places have no loss; `None` for all
            places.
        sigma: float, above 0.
        mu: float, from 0.
        **kwargs: `reduction`, `name`, `dtype`, see `keras.losses.Loss`.

    Call arguments: as in `ListwiseCrossentropy`.

    Reference:
        Wang et al., 2018, The LambdaLoss Framework for Ranking Metric Optimization, equations 15
        to 18; `LambdaLoss` of sentence-transformers, which averages over the pairs of a batch.
        Older versions of it take, with `k`, only pairs of two candidates in the first `k` places.
    """

    settings = ("k", "sigma", "mu")

    def __init__(
        self,
        k: int | None = None,
        sigma: float = 1.0,
        mu: float = 10.0,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.k = k if k is None else check_int("k", k)
        self.sigma = check_number("sigma", sigma, above=0.0)
        self.mu = check_number("mu", mu)

    def call(self, y_true, y_pred):
        labels, exists = _labels(y_true)
        scores = ops.where(exists > 0, candidate_scores(y_pred), ops.cast(-1e9, y_pred.dtype))
        order = ops.argsort(-scores, axis=-1)
        labels, scores, exists = (
            ops.take_along_axis(x, order, axis=-1) for x in (labels, scores, exists)
        )
        places = ops.cast(ops.arange(1, ops.shape(labels)[1] + 1), "float32")
        in_k = ops.cast(places <= (self.k or math.inf), "float32")
        gains = (2.0**labels - 1) * exists
        best = -ops.sort(-gains, axis=-1) * in_k * _inverse_discount(places)
        gains = gains / ops.maximum(ops.sum(best, axis=-1, keepdims=True), 1e-10)
        distance = ops.abs(places[:, None] - places)
        # The diagonal has no pairs, where the discount of the place 0 would be infinite.
        near = ops.maximum(distance, 1.0)
        weights = self.mu * ops.abs(_inverse_discount(near) - _inverse_discount(near + 1))
        inverse = _inverse_discount(places)
        weights = weights + ops.abs(inverse[:, None] - inverse)
        weights = weights * ops.abs(gains[:, :, None] - gains[:, None])
        is_pair = ops.cast(labels[:, :, None] > labels[:, None], "float32")
        is_pair = is_pair * exists[:, :, None] * exists[:, None] * ops.maximum(in_k[:, None], in_k)
        losses = ops.softplus(-self.sigma * (scores[:, :, None] - scores[:, None])) / math.log(2)
        count = ops.maximum(ops.sum(is_pair, axis=(1, 2)), 1.0)
        return ops.sum(ops.where(is_pair > 0, weights * losses, 0.0), axis=(1, 2)) / count


def _labels(y_true):
    """Returns labels with 0 for candidates that do not exist, and 1 for those that do, float."""
    exists = ops.isfinite(y_true)
    return ops.where(exists, y_true, 0.0), ops.cast(exists, "float32")


def _inverse_discount(places):
    return math.log(2) / ops.log(1.0 + places)
