"""Keras metrics for `compile(weighted_metrics=[...])`: Matthews correlation, perplexity.

A mean of these scores over batches is not the score over all examples. These metrics add up counts
or losses instead, so they equal scikit-learn's scores of all examples at once.

Pass them as `weighted_metrics`: Keras does not pass weights to `metrics`, so padding would count.
"""

import keras
from keras import ops

from bert_keras.checks import check_int
from bert_keras.engine import kernels
from bert_keras.types import Dtype, Tensor


def _weights_like(values, sample_weight, dtype):
    """Returns weights of the values' shape: ones, or `sample_weight` broadcast from the left."""
    weights = ops.ones(ops.shape(values), dtype)
    if sample_weight is None:
        return weights
    sample_weight = ops.cast(sample_weight, dtype)
    missing = len(values.shape) - len(sample_weight.shape)
    if missing < 0:  # (batch, 1) for values (batch,)
        return ops.reshape(sample_weight, ops.shape(values))
    return weights * ops.reshape(sample_weight, tuple(ops.shape(sample_weight)) + (1,) * missing)


@keras.saving.register_keras_serializable(package="bert_keras")
class MatthewsCorrelation(keras.metrics.Metric):
    """Matthews correlation: how far predictions agree with labels beyond class frequencies.

    With the confusion matrix's trace `c`, total `s`, rows `t` and columns `p`:
    `(c s - t·p) / sqrt((s² - p·p) (s² - t·t))`. A perfect score is 1; chance and constant
    predictions score 0. GLUE uses it for CoLA.

    Labels outside 0 to `num_classes - 1`, such as the usual -100, are ignored, and so are examples
    and positions of weight 0. Counts are float32, which is exact up to 16.7 million per cell.

    Args:
        num_classes: number of classes.
        name: name in the logs.
        dtype: dtype of the counts; float32 also under mixed precision.

    Call arguments:
        y_true: integer tensor of any shape, such as `(batch,)` or `(batch, seq_len)`.
        y_pred: float tensor of `y_true`'s shape plus `(num_classes,)`: logits or probabilities.
        sample_weight: optional tensor of `y_true`'s shape, or `(batch,)`.

    Reference:
        Gorodkin (2004), Comparing two K-category assignments by a K-category correlation
        coefficient.

    Example:
        >>> metric = MatthewsCorrelation(num_classes=2)
        >>> metric.update_state([1, 0], [[0.0, 1.0], [1.0, 0.0]])
        >>> round(float(metric.result()), 4)
        1.0
    """

    reads = ("classes", "logits")  # See `LabelKind.adapt`.

    def __init__(
        self, num_classes: int = 2, name: str | None = "matthews", dtype: Dtype = "float32"
    ) -> None:
        super().__init__(name=name, dtype=dtype)
        self.num_classes = check_int("num_classes", num_classes, 2)
        self.matrix = self.add_variable((num_classes, num_classes), "zeros", name="matrix")

    def update_state(
        self, y_true: Tensor, y_pred: Tensor, sample_weight: Tensor | None = None
    ) -> None:
        y_pred = ops.convert_to_tensor(y_pred)
        if y_pred.shape[-1] != self.num_classes:
            raise ValueError(
                f"The last axis of predictions must hold {self.num_classes} classes. "
                f"Received: shape {tuple(y_pred.shape)}."
            )
        predicted = ops.cast(ops.argmax(y_pred, axis=-1), "int32")
        true = ops.reshape(ops.cast(y_true, "int32"), ops.shape(predicted))
        weights = _weights_like(predicted, sample_weight, self.dtype)
        valid = ops.logical_and(true >= 0, true < self.num_classes)
        weights = ops.where(valid, weights, 0)
        cells = ops.where(valid, true * self.num_classes + predicted, 0)
        counts = ops.segment_sum(
            ops.reshape(weights, (-1,)), ops.reshape(cells, (-1,)), self.num_classes**2
        )
        self.matrix.assign_add(ops.reshape(counts, (self.num_classes, self.num_classes)))

    def get_config(self):
        return {**super().get_config(), "num_classes": self.num_classes}

    def result(self) -> Tensor:
        # The sum over classes of `right * rest - missed * wrong` equals `c s - t·p`, but loses no
        # digits in float32 if one class is rare.
        matrix = ops.convert_to_tensor(self.matrix)
        total = ops.sum(matrix)
        true, predicted = ops.sum(matrix, axis=1), ops.sum(matrix, axis=0)
        right = ops.diagonal(matrix)
        missed, wrong = true - right, predicted - right
        rest = total - true - wrong
        covariance = ops.sum(right * rest - missed * wrong)
        true_variance = ops.sum(true * (total - true))
        predicted_variance = ops.sum(predicted * (total - predicted))
        return ops.divide_no_nan(covariance, ops.sqrt(true_variance) * ops.sqrt(predicted_variance))


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
        weights = _weights_like(labels, sample_weight, self.dtype)
        # Padding may have invalid labels, which give nan on some backends, and 0 × nan is nan.
        labels = ops.where(weights != 0, labels, 0)
        losses = kernels.crossentropy(labels, logits)
        super().update_state(ops.reshape(losses, (-1,)), ops.reshape(weights, (-1,)))

    def result(self) -> Tensor:
        return ops.exp(self.total / self.count)
