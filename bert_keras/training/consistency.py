"""R-Drop and multi-sample dropout: several dropout masks for each example of a batch."""

import keras
from keras import ops

from bert_keras.training.losses import AsComputed


class SeveralMasks:
    """Trains a `keras.Model` on several dropout masks for each example, for its base `Task`.

    With `consistency=alpha` (R-Drop) a training step reads its batch twice, in one pass over twice
    the rows, and minimises

    `mean(loss of both passes) + alpha * mean(disagreement of the passes)`,

    where for classes the disagreement is `(KL(p || q) + KL(q || p)) / 2`. The paper's equation adds
    the losses of both passes; its authors' code averages them, as here.

    With `dropout_samples=k` (multi-sample dropout) the head alone draws `k` masks on what it reads
    of each pass, and the loss is the mean of the `k` losses. That is not the loss of the mean of
    `k` outputs, which the paper does not use.

    Rows stand as `(dropout_samples, passes, batch)`. Labels and weights are repeated to fit, so
    that any loss, `sample_weight` and `class_weight` count as without. Metrics, evaluation,
    prediction and calls outside of a training step see one row for each example.

    A subclass has `disagreement(first, second)`, float `(batch, ...)` for two outputs of the model,
    where it can train for consistency.

    Reference:
        [Liang et al., 2021](https://arxiv.org/abs/2106.14448), section 2.2, and
        https://github.com/dropreg/R-Drop; [Inoue, 2019](https://arxiv.org/abs/1905.09788).
    """

    # A subclass whose head draws several masks says so, and asks it for `masks_now` of them.
    has_dropout_samples = False
    disagreement = None

    _consistency = None
    _dropout_samples = 1
    # How many training steps are being traced, or on PyTorch computed. More than one where
    # TensorFlow's MirroredStrategy switches between replicas in the middle of a step.
    _steps_under_way = 0

    def set_masks(self, consistency, dropout_samples):
        """Takes what `compile` says.

        Args:
            consistency: float from 0, or `None` for one pass.
            dropout_samples: int from 1.

        Raises:
            ValueError: a value is out of range, or this task has no such thing.
        """
        is_number = isinstance(consistency, (int, float)) and not isinstance(consistency, bool)
        if consistency is not None and not (is_number and 0 <= consistency < float("inf")):
            raise ValueError(
                "`consistency` must be a finite number from 0, or None for a single pass. "
                f"Received: {consistency!r}."
            )
        is_int = isinstance(dropout_samples, int) and not isinstance(dropout_samples, bool)
        if not is_int or dropout_samples < 1:
            raise ValueError(
                f"`dropout_samples` must be an int from 1. Received: {dropout_samples!r}."
            )
        if consistency is not None and self.disagreement is None:
            raise ValueError(
                f"`consistency` is for tasks whose outputs of two passes can be compared, which "
                f"this {type(self).__name__} does not say how to. Received: {consistency!r}. "
                "Compile with consistency=None, and raise the backbone's dropout instead."
            )
        if dropout_samples > 1 and not self.has_dropout_samples:
            raise ValueError(
                f"`dropout_samples` is for a TextClassifier. Received: {dropout_samples} for a "
                f"{type(self).__name__}. Compile with dropout_samples=1; where `consistency` is "
                "possible, it draws two masks for the whole model."
            )
        self._consistency = consistency
        self._dropout_samples = dropout_samples

    @property
    def masks_now(self):
        """How many dropout masks the head draws in the call under way."""
        return self._dropout_samples if self._steps_under_way else 1

    @property
    def _num_passes(self):
        return 1 if self._consistency is None else 2

    def train_step(self, *args):
        """Like `keras.Model.train_step`, on as many masks as `compile` says."""
        *state, data = args
        x, y, sample_weight = keras.utils.unpack_x_y_sample_weight(data)
        if self._num_passes == 2:
            x = _repeated(x, 2)
        self._steps_under_way += 1
        try:
            return super().train_step(*state, (x, y, sample_weight))
        finally:
            self._steps_under_way -= 1

    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
        """Returns the loss, see `keras.Model.compute_loss` and this class's docstring.

        Args:
            x: dict of inputs, of all passes.
            y: labels, `(batch, ...)`.
            y_pred: outputs, `(dropout_samples * passes * batch, ...)`.
            sample_weight: float, `(batch, ...)`, or `None`.
            training: bool.
        """
        num_masks = self._num_passes * self._dropout_samples
        if not self._steps_under_way or num_masks == 1:
            return super().compute_loss(x, y, y_pred, sample_weight, training)
        y, sample_weight = _repeated((y, sample_weight), num_masks)
        loss = super().compute_loss(x, y, y_pred, sample_weight, training)
        if not self._consistency:
            return loss
        passes = ops.split(y_pred, num_masks)
        first, second = (ops.concatenate(passes[i::2]) for i in (0, 1))
        if sample_weight is not None:
            sample_weight = ops.split(sample_weight, 2)[0]
        between = AsComputed(reduction="mean_with_sample_weight")
        disagreement = self.disagreement(first, second)
        return loss + self._consistency * between(disagreement, disagreement, sample_weight)

    def compute_metrics(self, x, y, y_pred, sample_weight=None):
        """Like `keras.Model.compute_metrics`, of one row for each example."""
        num_masks = self._num_passes * self._dropout_samples
        if self._steps_under_way and num_masks > 1:
            y_pred = ops.split(y_pred, num_masks)[0]
        return super().compute_metrics(x, y, y_pred, sample_weight)


def _repeated(tensors, times):
    """Returns tensors, or `None`, one after the other along the first axis."""
    return keras.tree.map_structure(
        lambda x: None if x is None else ops.concatenate([x] * times), tensors
    )
