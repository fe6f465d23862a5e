"""Losses that Keras lacks, computed from logits and averaged by weight."""

from typing import Any

import keras
from keras import ops

from bert_keras import distribution
from bert_keras.checks import check_number
from bert_keras.engine import kernels


class WeightedLoss(keras.losses.Loss):
    """Base class of losses that are averaged by weight: `sum(weight * loss) / sum(weight)`.

    Attributes:
        settings: names of the attributes that the config holds.

    Args:
        **kwargs: `reduction`, `name`, `dtype`, see `keras.losses.Loss`.
    """

    settings = ()

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**{"reduction": "mean_with_sample_weight", **kwargs})

    def get_config(self):
        return super().get_config() | {name: getattr(self, name) for name in self.settings}


class SmoothedLoss(WeightedLoss):
    """A `WeightedLoss` of labels that may be smoothed, see `SparseCrossentropy`."""

    settings = ("label_smoothing",)

    def __init__(self, label_smoothing: float = 0.0, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.label_smoothing = check_number("label_smoothing", label_smoothing, below=1.0)


@keras.saving.register_keras_serializable(package="bert_keras")
class SparseCrossentropy(SmoothedLoss):
    """Cross-entropy of integer labels with label smoothing, averaged by weight.

    With `p = softmax(logits)`, `n` classes, label `y` and smoothing `s`:

    ```
    loss = -(1 - s) * log p[y] - s * mean over k of log p[k]
    ```

    and, over a batch, `sum(weight * loss) / sum(weight)`: a position of weight 0 affects neither
    the sum nor its divisor. `keras.losses.SparseCategoricalCrossentropy` has no smoothing, expects
    probabilities, and by default divides by the number of positions, which makes the loss of a
    masked language model depend on the amount of padding.

    With `class_weight` in `fit`, this is `torch.nn.CrossEntropyLoss(weight, label_smoothing=0)`.

    Args:
        label_smoothing: float, at least 0 and below 1.
        **kwargs: `reduction`, `name`, `dtype`, see `keras.losses.Loss`.

    Call arguments:
        y_true: int, `(batch, ...)`, labels; or float, `(batch, ..., num_classes)`, probabilities
            `q` of the classes, for which `log p[y]` is the sum over k of `q[k] * log p[k]`.
        y_pred: float, `(batch, ..., num_classes)`, logits.
        sample_weight: float, `(batch, ...)`, or `None` for 1 everywhere.

    Raises:
        ValueError: `label_smoothing` is outside its range.

    Reference:
        [Szegedy et al., 2016](https://arxiv.org/abs/1512.00567), section 7.
    """

    def call(self, y_true, y_pred):
        if len(y_true.shape) == len(y_pred.shape) and y_true.shape[-1] != 1:
            loss = -ops.sum(ops.cast(y_true, y_pred.dtype) * ops.log_softmax(y_pred), axis=-1)
        else:
            loss = kernels.crossentropy(y_true, y_pred)
        if not self.label_smoothing:
            return loss
        uniform = -ops.mean(ops.log_softmax(y_pred), axis=-1)
        return (1 - self.label_smoothing) * loss + self.label_smoothing * uniform


@keras.saving.register_keras_serializable(package="bert_keras")
class SigmoidCrossentropy(SmoothedLoss):
    """Cross-entropy of the labels 0 and 1 at each position, averaged by weight.

    With a logit `x`, `p = 1 / (1 + exp(-x))` and a label `y`, which smoothing `s` turns into
    `(1 - s) * y + s / 2`: `loss = -y * log p - (1 - y) * log(1 - p)`, averaged as in
    `SparseCrossentropy`. `keras.losses.BinaryCrossentropy` averages over the last axis before it
    applies weights, so that padding counts.

    Args:
        label_smoothing: float, at least 0 and below 1.
        **kwargs: `reduction`, `name`, `dtype`, see `keras.losses.Loss`.

    Call arguments:
        y_true: int, `(batch, ...)`, labels.
        y_pred: float, `(batch, ...)`, logits.
        sample_weight: float, `(batch, ...)`, or `None` for 1 everywhere.
    """

    def call(self, y_true, y_pred):
        labels = (1 - self.label_smoothing) * ops.cast(y_true, y_pred.dtype)
        labels = labels + 0.5 * self.label_smoothing
        return ops.binary_crossentropy(labels, y_pred, from_logits=True)


@keras.saving.register_keras_serializable(package="bert_keras")
class SoftCrossentropy(WeightedLoss):
    """Divergence of a student's softened distribution from its teacher's, averaged by weight.

    With the teacher's logits `t`, the student's logits `s` and temperature `T`:
    `T^2 * KL(softmax(t / T) || softmax(s / T))`. The factor `T^2` keeps the size of the gradients
    independent of the temperature (Hinton et al., section 2).

    Args:
        temperature: float above 0.
        **kwargs: `reduction`, `name`, `dtype`, see `keras.losses.Loss`.

    Call arguments:
        y_true: float, `(batch, ..., num_classes)`, logits of the teacher.
        y_pred: float, the same shape, logits of the student.
        sample_weight: float, `(batch, ...)`, or `None` for 1 everywhere.

    Reference:
        [Hinton et al., 2015](https://arxiv.org/abs/1503.02531).
    """

    settings = ("temperature",)

    def __init__(self, temperature: float = 2.0, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.temperature = check_number("temperature", temperature, above=0)

    def call(self, y_true, y_pred):
        teacher, student = (ops.log_softmax(x / self.temperature) for x in (y_true, y_pred))
        return self.temperature**2 * ops.sum(ops.exp(teacher) * (teacher - student), axis=-1)


@keras.saving.register_keras_serializable(package="bert_keras")
class CosineDistance(WeightedLoss):
    """`1 - cos(y_true, y_pred)` along the last axis, averaged by weight.

    Args:
        **kwargs: `reduction`, `name`, `dtype`, see `keras.losses.Loss`.
    """

    def call(self, y_true, y_pred):
        return 1.0 - ops.sum(l2_normalize(y_true) * l2_normalize(y_pred), axis=-1)


@keras.saving.register_keras_serializable(package="bert_keras")
class SpanCrossentropy(keras.losses.Loss):
    """Half the cross-entropy of one end of a span, so that the sum over both ends is the mean.

    Keras applies one loss to each output of a dict and adds the results, so that
    `compile(loss=SpanCrossentropy())` on `start_logits` and `end_logits` gives
    `(start_loss + end_loss) / 2`, as in BERT. A position outside the sequence, such as an answer in
    another window, adds nothing, as in BERT too.

    Args:
        **kwargs: `reduction`, `name`, `dtype`, see `keras.losses.Loss`. The default
            reduction divides by the batch size, as BERT does, and counts positions outside the
            sequence.

    Call arguments:
        y_true: int, `(batch,)`, position of the end.
        y_pred: float, `(batch, seq_len)`, logits.
        sample_weight: float, `(batch,)`, or `None`.

    Reference:
        [Devlin et al., 2019](https://arxiv.org/abs/1810.04805), section 4.2; `run_squad.py` of
        google-research/bert.
    """

    def call(self, y_true, y_pred):
        seq_len = ops.shape(y_pred)[-1]
        position = ops.cast(y_true, "int32")
        inside = ops.logical_and(position >= 0, position < seq_len)
        loss = kernels.crossentropy(ops.clip(position, 0, seq_len - 1), y_pred)
        return 0.5 * loss * ops.cast(inside, loss.dtype)


class PrecomputedLoss(keras.losses.Loss):
    """Averages losses computed by the model, which it passes as `y_pred`.

    Keras then weights them, and scales the mean if several devices share a batch.
    """

    def call(self, y_true, y_pred):
        return y_pred


class WrappedLoss(keras.losses.Loss):
    """A loss that changes what another loss takes or returns.

    Args:
        loss: a `keras.losses.Loss`.
    """

    def __init__(self, loss):
        super().__init__(name=loss.name, reduction=loss.reduction)
        self.loss = loss


class CrossReplicaLoss(WrappedLoss):
    """Scales a loss so that its mean over devices equals the loss of the whole batch."""

    def __call__(self, y_true, y_pred, sample_weight=None):
        """Returns the loss, a scalar, see `keras.losses.Loss`."""
        loss = self.loss(y_true, y_pred, sample_weight)
        by_weight = self.reduction == "mean_with_sample_weight"
        return distribution.rescale_by_weight(loss, sample_weight if by_weight else None)


class OneHotLoss(WrappedLoss):
    """Passes a loss of labels `(batch, ..., num_classes)` one-hot rows for class indices."""

    def __call__(self, y_true, y_pred, sample_weight=None):
        """Returns the loss, a scalar, see `keras.losses.Loss`."""
        if len(y_true.shape) < len(y_pred.shape):
            y_true = ops.one_hot(ops.cast(y_true, "int32"), y_pred.shape[-1], dtype=y_pred.dtype)
        return self.loss(y_true, y_pred, sample_weight)


def l2_normalize(vectors):
    """Returns vectors `(..., hidden_dim)` scaled to length 1; a vector of zeros is unchanged.

    `ops.normalize` has a gradient of NaN at zeros, such as the mean of a text that is all padding,
    and the NaN would spread to every weight.
    """
    vectors = ops.convert_to_tensor(vectors)
    squares = ops.sum(ops.square(vectors), axis=-1, keepdims=True)
    return vectors * ops.rsqrt(ops.maximum(squares, 1e-14))
