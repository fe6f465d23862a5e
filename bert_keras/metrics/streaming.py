"""A Keras metric for `compile(weighted_metrics=[...])`: perplexity.

The mean of perplexities over batches is not that of all examples. So this metric adds up losses.
Pass it as one of `weighted_metrics`: Keras does not pass weights to `metrics`, so padding would
count.
"""

import keras
from keras import ops

from bert_keras.engine import kernels
from bert_keras.types import Dtype, Tensor


@keras.saving.register_keras_serializable(package="bert_keras")
class MaskedPerplexity(keras.metrics.Mean):
    """Perplexity of a masked language model at its masked positions, over all batches.

    It is exp of the mean negative log-probability of the labels: a model that guesses evenly among
    `n` tokens has perplexity `n`. It is not comparable with that of a left-to-right model. Losses
    and weights are summed, so batches may differ in size. It is `nan` until a position has weight.

    Args:
        name: name in the logs.
        dtype: dtype of the sums; float32 also under mixed precision.

    Call arguments:
        y_true: integer tensor `(batch, num_predictions)`.
        y_pred: float tensor `(batch, num_predictions, vocabulary_size)`, logits.
        sample_weight: optional tensor `(batch, num_predictions)`.

    Example:
        >>> metric = MaskedPerplexity()
        >>> metric.update_state([[1]], [[[0.0, 0.0, 0.0, 0.0]]])
        >>> round(float(metric.result()), 4)
        4.0
    """

    def __init__(self, name: str | None = "perplexity", dtype: Dtype = "float32") -> None:
        super().__init__(name=name, dtype=dtype)

    def update_state(
        self, y_true: Tensor, y_pred: Tensor, sample_weight: Tensor | None = None
    ) -> None:
        labels = ops.cast(y_true, "int32")
        logits = ops.cast(y_pred, self.dtype)
        weights = ops.ones(ops.shape(labels), self.dtype)
        if sample_weight is not None:
            weight = ops.cast(sample_weight, self.dtype)
            missing = (1,) * (len(labels.shape) - len(weight.shape))
            weights = weights * ops.reshape(weight, tuple(ops.shape(weight)) + missing)
        # Padding may have invalid labels, which give nan on some backends, and 0 × nan is nan.
        labels = ops.where(weights != 0, labels, 0)
        losses = kernels.crossentropy(labels, logits)
        super().update_state(ops.reshape(losses, (-1,)), ops.reshape(weights, (-1,)))

    def result(self) -> Tensor:
        return ops.exp(self.total / self.count)
