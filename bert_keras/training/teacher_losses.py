"""Losses whose labels are a teacher's: its scores of candidates, or its vectors."""

from typing import Any

import keras
from keras import ops

from bert_keras.checks import check_choice
from bert_keras.training.losses import SoftCrossentropy, WeightedLoss
from bert_keras.training.similarities import SIMILARITIES, candidate_scores
from bert_keras.types import Similarity

_NO_CANDIDATE = -1e9


@keras.saving.register_keras_serializable(package="bert_keras")
class MarginMSE(WeightedLoss):
    """A positive must be as much better than a negative as a teacher says.

    With scores `s` of the student and `t` of the teacher, of a positive `0` and negatives `j`:
    `mean over j of ((s_0 - s_j) - (t_0 - t_j))^2`, 0 without negatives. It is for a `Reranker`,
    whose outputs are the scores, and for embedders, whose scores are the similarities of the first
    text and the others.

    Args:
        similarity: `"dot"`, `"cosine"` or `"maxsim"`, of an embedder's vectors. Margins of dot
            products of vectors of length 1 are at most 2: scale the teacher's scores to fit.
        **kwargs: `reduction`, `name`, `dtype`, see `keras.losses.Loss`.

    Call arguments:
        y_true: float `(batch, num_candidates)`, the teacher's scores, positive first; `-inf` for a
            candidate that does not exist.
        y_pred: float `(batch, num_candidates)`, scores; or vectors, see `candidate_scores`.
        sample_weight: float `(batch,)`, or `None` for 1 everywhere.

    Reference:
        [Hofstätter et al., 2020](https://arxiv.org/abs/2010.02666), equation 7.
    """

    settings = ("similarity",)

    def __init__(self, similarity: Similarity = "dot", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.similarity = check_choice("similarity", similarity, tuple(SIMILARITIES))

    def call(self, y_true, y_pred):
        scores, exists = candidate_scores(y_pred, self.similarity), ops.isfinite(y_true[:, 1:])
        teacher = ops.where(ops.isfinite(y_true), y_true, 0.0)
        margins, teacher_margins = (x[:, :1] - x[:, 1:] for x in (scores, teacher))
        squares = ops.where(exists, ops.square(margins - teacher_margins), 0.0)
        count = ops.sum(ops.cast(exists, squares.dtype), axis=1)
        return ops.sum(squares, axis=1) / ops.maximum(count, 1.0)


@keras.saving.register_keras_serializable(package="bert_keras")
class TeacherDivergence(SoftCrossentropy):
    """Divergence of the distribution over candidates from a teacher's, such as a `Reranker`'s.

    With scores `s` of the student and `t` of the teacher: `T^2 * KL(softmax(t / T) ||
    softmax(s / T))`. Unlike `MarginMSE` it does not require differences of a certain size.

    Args:
        temperature: float above 0.
        similarity: see `MarginMSE`.
        **kwargs: see `MarginMSE`.

    Call arguments: as in `MarginMSE`, with the candidates in any order.

    Reference:
        [Hinton et al., 2015](https://arxiv.org/abs/1503.02531); `DistillKLDivLoss` of
        sentence-transformers.
    """

    settings = ("temperature", "similarity")

    def __init__(
        self,
        temperature: float = 1.0,
        similarity: Similarity = "dot",
        **kwargs: Any,
    ) -> None:
        super().__init__(temperature, **kwargs)
        self.similarity = check_choice("similarity", similarity, tuple(SIMILARITIES))

    def call(self, y_true, y_pred):
        scores, exists = candidate_scores(y_pred, self.similarity), ops.isfinite(y_true)
        return super().call(*(ops.where(exists, x, _NO_CANDIDATE) for x in (y_true, scores)))


@keras.saving.register_keras_serializable(package="bert_keras")
class EmbeddingMSE(WeightedLoss):
    """The vectors of all texts of a row must equal a teacher's vector: the mean squared difference.

    With a text and its translation in a row, and the vector of the text, an embedder learns
    another language.

    Args:
        **kwargs: `reduction`, `name`, `dtype`, see `keras.losses.Loss`.

    Call arguments:
        y_true: float `(batch, dim)`.
        y_pred: float `(batch, dim)` or `(batch, num_texts, dim)`.
        sample_weight: float `(batch,)`, or `None` for 1 everywhere.

    Reference:
        [Reimers and Gurevych, 2020](https://arxiv.org/abs/2004.09813), equation 1.
    """

    # `Matryoshka` cuts them as it cuts the student's.
    labels_are_vectors = True

    def call(self, y_true, y_pred):
        targets = y_true if len(y_pred.shape) == 2 else y_true[:, None]
        return ops.mean(ops.square(y_pred - targets), axis=tuple(range(1, len(y_pred.shape))))
