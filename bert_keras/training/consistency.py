"""R-Drop and multi-sample dropout: several dropout masks for each example of a batch."""

from typing import TYPE_CHECKING, Any, Self

import keras
from keras import ops

from bert_keras.checks import check_int, check_number
from bert_keras.training.losses import (
    AsComputed,
    OfAllDevices,
    SparseCrossentropy,
    consistency_loss,
)
from bert_keras.types import Path


class SeveralMasks:
    """Trains a task on several dropout masks for each example; stands before the task's class.

    With `consistency=alpha` (R-Drop) a training step reads its batch twice, in one pass over twice
    the rows, and minimises

    `mean(loss of both passes) + alpha * mean(disagreement of the passes)`,

    where the disagreement follows from the task's own loss:

    | own loss | disagreement of two outputs |
    |---|---|
    | cross-entropy | `(KL(p || q) + KL(q || p)) / 2` of the classes, see `consistency_loss` |
    | binary cross-entropy | the same of each label, which is there or not, their mean |
    | squared error | the squared differences, their mean |

    the last being that of normal distributions about each score, with the variance 1/2 for which
    the squared error is a log-likelihood. The paper's equation adds the losses of both passes; its
    authors' code averages them, as here. A step takes twice as long.

    With `dropout_samples=k` (multi-sample dropout) the head alone draws `k` masks on what it reads
    of each pass, and the loss is the mean of the `k` losses. That is not the loss of the mean of
    `k` outputs, which the paper does not use.

    Rows stand as `(dropout_samples, passes, batch)`. Labels and weights are repeated to fit, so
    that any loss, `sample_weight` and `class_weight` count as without. Metrics, evaluation,
    prediction and calls outside of a training step see one row for each example.

    Args:
        *args: those of the task.
        consistency: float from 0, how many times the disagreement counts; the paper uses from 0.1
            to 5. `None` for one pass.
        dropout_samples: int from 1, dropout masks of a `TextClassifier`'s head.
        **kwargs: those of the task.

    Raises:
        ValueError: a value is out of range, or this task has no such thing.

    A preset of the task gives it its head. One that it saves loads by the same class; its
    `export_to_huggingface` writes a plain task's.

    Example:
    ```python
    @keras.saving.register_keras_serializable(package="mine")
    class Regularized(SeveralMasks, bert_keras.TextClassifier):
        pass

    classifier = Regularized.from_preset("minilm_l6_en_uncased", num_classes=2, consistency=1.0)
    ```

    Reference:
        [Liang et al., 2021](https://arxiv.org/abs/2106.14448), section 2.2, and
        https://github.com/dropreg/R-Drop; [Inoue, 2019](https://arxiv.org/abs/1905.09788).
    """

    # How many training steps are being traced, or on PyTorch computed. More than one where
    # TensorFlow's MirroredStrategy switches between replicas in the middle of a step.
    _steps_under_way = 0

    if TYPE_CHECKING:

        @classmethod
        def from_preset(cls, preset: Path, **kwargs: Any) -> Self: ...

    def __init__(
        self, *args: Any, consistency: float | None = None, dropout_samples: int = 1, **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        if consistency is not None:
            check_number("consistency", consistency, advice="None is for a single pass.")
            self._check_can_be_compared(consistency)
        check_int("dropout_samples", dropout_samples)
        # A head that answers once a choice, or of other vectors, has other rows.
        if dropout_samples > 1 and not (
            hasattr(self, "num_classes") and hasattr(self.head, "num_masks")
        ):
            raise ValueError(
                f"`dropout_samples` is for a TextClassifier. Received: {dropout_samples} for a "
                f"{type(self).__name__}. Use dropout_samples=1; where `consistency` is possible, "
                "it draws two masks for the whole model."
            )
        self.consistency = consistency
        self.dropout_samples = dropout_samples

    def _check_can_be_compared(self, consistency):
        own_loss = self.default_loss(label_smoothing=0.0)
        if type(own_loss) not in _DISAGREEMENTS:
            raise ValueError(
                "`consistency` compares classes, labels or scores of two passes, each with a loss "
                f"of its own. Received: {consistency!r} for a {type(self).__name__}, whose loss is "
                f"{getattr(own_loss, 'name', own_loss)!r}. Use consistency=None and raise the "
                "backbone's dropout instead; a TokenClassifier must have crf=False."
            )
        self._disagreement = _DISAGREEMENTS[type(own_loss)]

    @property
    def _num_passes(self):
        return 1 if self.consistency is None else 2

    @property
    def _num_masks(self):
        """How many rows a training step has of each example; 1 outside of it."""
        return self._num_passes * self.dropout_samples if self._steps_under_way else 1

    def train_step(self, *args):
        """Like `keras.Model.train_step`, on several masks."""
        *state, data = args
        x, y, sample_weight = keras.utils.unpack_x_y_sample_weight(data)
        x = _repeated(x, self._num_passes)
        self._change_steps(1)
        try:
            return super().train_step(*state, (x, y, sample_weight))
        finally:
            self._change_steps(-1)

    def _change_steps(self, change):
        self._steps_under_way += change
        if self.dropout_samples > 1:
            self.head.num_masks = self.dropout_samples if self._steps_under_way else 1

    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
        """Returns the loss, see `keras.Model.compute_loss` and this class's docstring.

        Args:
            x: dict of inputs, of all passes.
            y: labels, `(batch, ...)`.
            y_pred: outputs, `(dropout_samples * passes * batch, ...)`.
            sample_weight: float, `(batch, ...)`, or `None`.
            training: bool.
        """
        num_masks = self._num_masks
        y, sample_weight = _repeated((y, sample_weight), num_masks)
        loss = super().compute_loss(x, y, y_pred, sample_weight, training)
        if num_masks == 1 or not self.consistency:
            return loss
        passes = ops.split(y_pred, num_masks)
        first, second = (ops.concatenate(passes[i::2]) for i in (0, 1))
        if sample_weight is not None:
            sample_weight = ops.split(sample_weight, 2)[0]
        between = OfAllDevices(AsComputed(reduction="mean_with_sample_weight"))
        disagreement = self._disagreement(first, second)
        return loss + self.consistency * between(disagreement, disagreement, sample_weight)

    def compute_metrics(self, x, y, y_pred, sample_weight=None):
        """Like `keras.Model.compute_metrics`, of one row for each example."""
        if self._num_masks > 1:
            y_pred = ops.split(y_pred, self._num_masks)[0]
        return super().compute_metrics(x, y, y_pred, sample_weight)


def _of_labels(first, second):
    """Returns `(batch,)`, for logits `(batch, num_labels)`."""
    return 0.5 * ops.mean((ops.sigmoid(first) - ops.sigmoid(second)) * (first - second), axis=-1)


def _of_scores(first, second):
    """Returns `(batch,)`, for scores `(batch, num_scores)`."""
    return ops.mean(ops.square(first - second), axis=-1)


_DISAGREEMENTS = {
    SparseCrossentropy: consistency_loss,
    keras.losses.BinaryCrossentropy: _of_labels,
    keras.losses.MeanSquaredError: _of_scores,
}


def _repeated(tensors, times):
    """Returns tensors, or `None`, one after the other along the first axis."""
    if times == 1:
        return tensors
    return keras.tree.map_structure(
        lambda x: None if x is None else ops.concatenate([x] * times), tensors
    )
