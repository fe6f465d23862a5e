"""Vectors whose beginnings are vectors too."""

from collections.abc import Sequence
from typing import Any, Self

import keras

from bert_keras.checks import (
    check_int,
    check_not_empty,
    check_number,
    check_same_length,
    check_type,
)
from bert_keras.training.losses import l2_normalize


@keras.saving.register_keras_serializable(package="bert_keras")
class Matryoshka(keras.losses.Loss):
    """Sums a loss over beginnings of the vectors, so that a text's vector may be cut.

    `sum over d of weight_d * loss(vectors[:d] scaled to length 1)`. After training, `embed(texts,
    dim=d)` returns the first `d` values.

    Args:
        loss: a loss of an embedder's vectors, such as `MultipleNegativesRanking()`.
        dims: ints, such as `(768, 256, 64)`.
        weights: floats, one for each of `dims`; `None` for 1 everywhere.
        **kwargs: `name`, `dtype`, see `keras.losses.Loss`.

    Call arguments: those of `loss`.

    Raises:
        TypeError: `loss` is not a `keras.losses.Loss`.
        ValueError: there are no dims, or not as many weights as dims; or, in a call, one of `dims`
            is beyond the vectors.

    Reference:
        [Kusupati et al., 2022](https://arxiv.org/abs/2205.13147), equation 1.
    """

    def __init__(
        self,
        loss: keras.losses.Loss,
        dims: Sequence[int],
        weights: Sequence[float] | None = None,
        **kwargs: Any,
    ) -> None:
        self.loss = check_type("loss", loss, keras.losses.Loss, "a `keras.losses.Loss`")
        super().__init__(reduction=loss.reduction, **kwargs)
        dims = check_not_empty(list(dims), "`dims` must hold at least one width")
        self.dims = [check_int("dims", dim) for dim in dims]
        weights = [1.0] * len(self.dims) if weights is None else weights
        self.weights = [check_number("weights", weight) for weight in weights]
        rule = "`Matryoshka` needs a weight for each of `dims`"
        check_same_length(rule, dims=self.dims, weights=self.weights)
        self.compares_rows = getattr(loss, "compares_rows", False)

    def call(self, y_true, y_pred):
        width, cuts_labels = y_pred.shape[-1], getattr(self.loss, "labels_are_vectors", False)
        total = 0.0
        for dim, weight in zip(self.dims, self.weights, strict=True):
            check_int("dims", dim, most=width, advice="No vector has more values.")
            labels = l2_normalize(y_true[..., :dim]) if cuts_labels else y_true
            total = total + weight * self.loss.call(labels, l2_normalize(y_pred[..., :dim]))
        return total

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        config = {"name": self.name, "dtype": self.dtype, "dims": self.dims}
        loss = keras.saving.serialize_keras_object(self.loss)
        return {**config, "weights": self.weights, "loss": loss}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Self:
        """Returns the loss of a config that `get_config` returned."""
        return cls(**{**config, "loss": keras.saving.deserialize_keras_object(config["loss"])})
