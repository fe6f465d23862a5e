"""The loss and the F1 of spans that have any number of labels each."""

from typing import Any

import keras
from keras import ops

from bert_keras.checks import check_number
from bert_keras.training.losses import WeightedLoss
from bert_keras.types import Tensor


@keras.saving.register_keras_serializable(package="bert_keras")
class LabelledSpanLoss(WeightedLoss):
    """Binary cross-entropy of each span and label, summed for each text.

    With a logit `x`, `p = sigmoid(x)`, and `p_y` the probability of the right answer `y`:

    ```
    loss = -(1 - p_y) ** gamma * log p_y * (alpha if y else 1 - alpha)
    ```

    without the last factor if `alpha` is `None`. It is computed from logits, so that very wrong
    spans have a gradient too; the reference code limits `p` to 1e-6.

    Args:
        alpha: float from 0 to 1, or `None`, the weight of spans with a label. Few have one.
        gamma: float, at least 0; above 0, spans already learned count less.
        **kwargs: `reduction`, `name`, `dtype`, see `keras.losses.Loss`.

    Call arguments:
        y_true: int, `(batch, num_words, max_width, num_labels)`: 1, 0, or -1 for what does not
            count.
        y_pred: float, the same shape, logits.
        sample_weight: float, `(batch,)`, or `None`.

    Reference:
        [Lin et al., 2017](https://arxiv.org/abs/1708.02002); urchade/GLiNER, `loss_functions.py`.
    """

    settings = ("alpha", "gamma")

    def __init__(self, alpha: float | None = 0.75, gamma: float = 0.0, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.alpha = None if alpha is None else check_number("alpha", alpha, below=1.0001)
        self.gamma = check_number("gamma", gamma)

    def call(self, y_true, y_pred):
        counts, y = ops.cast(y_true >= 0, y_pred.dtype), ops.cast(y_true > 0, y_pred.dtype)
        logits = ops.where(y > 0, y_pred, -y_pred)  # Of the right answer.
        loss = ops.softplus(-logits)
        if self.gamma:
            loss = loss * ops.exp(-self.gamma * ops.softplus(logits))
        if self.alpha is not None:
            loss = loss * (self.alpha * y + (1 - self.alpha) * (1 - y))
        return ops.sum(loss * counts, axis=(1, 2, 3))


@keras.saving.register_keras_serializable(package="bert_keras")
class LabelledSpanF1(keras.metrics.Metric):
    """F1 of spans and labels whose probability is at least one half, before clashes are resolved.

    Args:
        name, **kwargs: see `keras.metrics.Metric`.

    Call arguments: those of `LabelledSpanLoss`.
    """

    def __init__(self, name: str = "f1", **kwargs: Any) -> None:
        super().__init__(name=name, **kwargs)
        self.counts = self.add_variable((2,), "zeros", name="counts")

    def update_state(
        self, y_true: Tensor, y_pred: Tensor, sample_weight: Tensor | None = None
    ) -> None:
        """Adds a batch."""
        counts = ops.cast(y_true >= 0, "float32")
        if sample_weight is not None:
            weights = ops.cast(ops.convert_to_tensor(sample_weight) > 0, "float32")
            counts = counts * ops.reshape(weights, (-1, 1, 1, 1))
        true, found = ops.cast(y_true > 0, "float32"), ops.cast(y_pred > 0, "float32")
        right, both = ops.sum(true * found * counts), ops.sum((true + found) * counts)
        self.counts.assign(self.counts + ops.stack([right, both]))

    def result(self) -> Tensor:
        """Returns `2 right / (true + found)`; 0 if there are none."""
        right, both = self.counts[0], self.counts[1]
        return 2 * right / ops.maximum(both, 1.0)
