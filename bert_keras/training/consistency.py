"""R-Drop and multi-sample dropout: several dropout masks for each example of a batch."""

from typing import Any

import keras
from keras import ops

from bert_keras.checks import check_int, check_number
from bert_keras.training.list_losses import RelevanceCrossentropy
from bert_keras.training.losses import (
    CrossReplicaLoss,
    PrecomputedLoss,
    SparseCrossentropy,
    consistency_loss,
)


class RDrop:
    """Mixin that trains a task on several dropout masks for each example.

    With `consistency=alpha` (R-Drop), a training step reads its batch twice, in one pass over twice
    the rows, and minimises

    `mean(loss of both passes) + alpha * mean(disagreement of the passes)`.

    The disagreement depends on the task's own loss:

    | own loss | disagreement of two outputs |
    |---|---|
    | cross-entropy | `(KL(p || q) + KL(q || p)) / 2` of the classes, see `consistency_loss` |
    | binary cross-entropy | the same for each label, present or absent, averaged over labels |
    | squared error | the mean squared difference |

    The last is the divergence between normal distributions around the scores, with the variance 1/2
    for which the squared error is a negative log-likelihood. The paper's equation adds the losses
    of both passes; its authors' code and this class average them. A step takes twice as
    long.

    With `dropout_samples=k` (multi-sample dropout), the head draws `k` masks over its input from
    each pass, and the loss is the mean of the `k` losses. (The loss of the mean of `k` outputs
    would be something else; the paper does not use it.)

    Rows are ordered `(dropout_samples, passes, batch)`. Labels and weights are repeated to match,
    so any loss, `sample_weight` and `class_weight` work as usual. Metrics, evaluation, prediction
    and calls outside a training step see one row for each example.

    Args:
        *args: arguments of the task.
        consistency: float from 0, the weight of the disagreement; the paper uses 0.1 to 5. `None`
            for a single pass.
        dropout_samples: int from 1, dropout masks of a `TextClassifier`'s head.
        **kwargs: arguments of the task.

    Raises:
        ValueError: a value is out of range, or the task does not support it.

    The head can be loaded from a preset of the plain task. A preset that this class saves is loaded
    by this class; `export_to_huggingface` writes a plain task.

    Example:
    ```python
    @keras.saving.register_keras_serializable(package="mine")
    class Regularized(RDrop, bert_keras.TextClassifier):
        pass

    classifier = Regularized.from_preset("minilm_l6_en_uncased", num_classes=2, consistency=1.0)
    ```

    Reference:
        [Liang et al., 2021](https://arxiv.org/abs/2106.14448), section 2.2, and
        https://github.com/dropreg/R-Drop; [Inoue, 2019](https://arxiv.org/abs/1905.09788).
    """

    # How many training steps are being traced or, on PyTorch, computed. There can be several:
    # TensorFlow's MirroredStrategy switches between replicas in the middle of a step.
    _steps_in_progress = 0

    def __init__(
        self, *args: Any, consistency: float | None = None, dropout_samples: int = 1, **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        if consistency is not None:
            check_number("consistency", consistency, advice="None is for a single pass.")
            self._set_disagreement(consistency)
        check_int("dropout_samples", dropout_samples)
        # Heads that score choices or windows arrange their rows in other ways.
        if dropout_samples > 1 and not (
            hasattr(self, "num_classes") and hasattr(self.head, "num_masks")
        ):
            raise ValueError(
                "Only a TextClassifier can have several `dropout_samples`. Received: "
                f"{dropout_samples} for a {type(self).__name__}. Use dropout_samples=1; "
                "`consistency`, if the task supports it, draws two masks for the whole model."
            )
        self.consistency = consistency
        self.dropout_samples = dropout_samples

    def _set_disagreement(self, consistency):
        loss = self.default_loss(label_smoothing=0.0)
        if type(loss) not in _DISAGREEMENTS:
            raise ValueError(
                "`consistency` can compare classes, labels or scores of two passes. Received: "
                f"{consistency!r} for a {type(self).__name__}, whose loss is "
                f"{getattr(loss, 'name', loss)!r}. Use consistency=None and raise the backbone's "
                "dropout instead; a TokenClassifier must have crf=False."
            )
        self._disagreement = _DISAGREEMENTS[type(loss)]

    @property
    def _num_passes(self):
        return 1 if self.consistency is None else 2

    @property
    def _num_masks(self):
        """How many rows a training step has for each example; 1 outside a step."""
        return self._num_passes * self.dropout_samples if self._steps_in_progress else 1

    def train_step(self, *args):
        """Like `keras.Model.train_step`, with several masks."""
        *state, data = args
        x, y, sample_weight = keras.utils.unpack_x_y_sample_weight(data)
        x = _repeat(x, self._num_passes)
        self._count_step(1)
        try:
            return super().train_step(*state, (x, y, sample_weight))
        finally:
            self._count_step(-1)

    def _count_step(self, change):
        self._steps_in_progress += change
        if self.dropout_samples > 1:
            self.head.num_masks = self.dropout_samples if self._steps_in_progress else 1

    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
        """Returns the loss, see `keras.Model.compute_loss` and the class docstring.

        Args:
            x: dict of inputs, of all passes.
            y: labels, `(batch, ...)`.
            y_pred: outputs, `(dropout_samples * passes * batch, ...)`.
            sample_weight: float, `(batch, ...)`, or `None`.
            training: bool.
        """
        num_masks = self._num_masks
        y, sample_weight = _repeat((y, sample_weight), num_masks)
        loss = super().compute_loss(x, y, y_pred, sample_weight, training)
        if num_masks == 1 or not self.consistency:
            return loss
        passes = ops.split(y_pred, num_masks)
        first, second = (ops.concatenate(passes[i::2]) for i in (0, 1))
        if sample_weight is not None:
            sample_weight = ops.split(sample_weight, 2)[0]
        mean = CrossReplicaLoss(PrecomputedLoss(reduction="mean_with_sample_weight"))
        disagreement = self._disagreement(first, second)
        return loss + self.consistency * mean(disagreement, disagreement, sample_weight)

    def compute_metrics(self, x, y, y_pred, sample_weight=None):
        """Like `keras.Model.compute_metrics`, on one row for each example."""
        if self._num_masks > 1:
            y_pred = ops.split(y_pred, self._num_masks)[0]
        return super().compute_metrics(x, y, y_pred, sample_weight)


def _label_disagreement(first, second):
    """Returns `(batch,)`, for logits `(batch, num_labels)`."""
    return 0.5 * ops.mean((ops.sigmoid(first) - ops.sigmoid(second)) * (first - second), axis=-1)


def _score_disagreement(first, second):
    """Returns `(batch,)`, for scores `(batch, num_scores)`."""
    return ops.mean(ops.square(first - second), axis=-1)


_DISAGREEMENTS = {
    SparseCrossentropy: consistency_loss,
    keras.losses.BinaryCrossentropy: _label_disagreement,
    RelevanceCrossentropy: _label_disagreement,
    keras.losses.MeanSquaredError: _score_disagreement,
}


def _repeat(tensors, times):
    """Repeats a structure of tensors along the first axis; `None` stays `None`."""
    if times == 1:
        return tensors
    return keras.tree.map_structure(
        lambda x: None if x is None else ops.concatenate([x] * times), tensors
    )
