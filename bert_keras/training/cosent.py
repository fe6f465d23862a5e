"""Losses of scored pairs that compare the pairs of a batch with one another."""

from typing import Any

import keras
from keras import ops

from bert_keras.checks import check_choice, check_number
from bert_keras.training.contrastive import check_num_texts
from bert_keras.training.losses import WeightedLoss, l2_normalize
from bert_keras.training.similarities import SIMILARITIES
from bert_keras.types import Similarity, Tensor


@keras.saving.register_keras_serializable(package="bert_keras")
class CoSENT(WeightedLoss):
    """Pairs with higher scores must have higher similarities than pairs with lower scores.

    With the similarity `c` and the score `y` of each pair of a batch:

    `log(1 + sum over pairs i, j with y_i > y_j of exp(scale * (c_j - c_i)))`.

    Only the order of the scores matters, unlike in `CosineRegression`. The loss is one number for
    the batch; weights of rows have no effect.

    Args:
        scale: float, above 0.
        similarity: `"cosine"`, `"dot"` or `"maxsim"`.
        **kwargs: `reduction`, `name`, `dtype`, see `keras.losses.Loss`.

    Call arguments:
        y_true: float `(batch,)`, scores.
        y_pred: float `(batch, 2, hidden_dim)`: first and second text.

    Reference:
        Su, 2022, https://kexue.fm/archives/8847; `CoSENTLoss` of sentence-transformers.
    """

    settings = ("scale", "similarity")
    compares_rows = True

    def __init__(
        self, scale: float = 20.0, similarity: Similarity = "cosine", **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.scale = check_number("scale", scale, above=0.0)
        self.similarity = check_choice("similarity", similarity, tuple(SIMILARITIES))

    def compare(self, first: Tensor, second: Tensor) -> Tensor:
        """Returns the similarity of each pair, float `(batch,)`."""
        return SIMILARITIES[self.similarity](first, second)

    def call(self, y_true, y_pred):
        check_num_texts(y_pred, 2, 2)
        labels = ops.reshape(y_true, (-1,))
        scaled = self.scale * self.compare(y_pred[:, 0], y_pred[:, 1])
        is_above = labels[:, None] > labels[None]
        terms = ops.where(is_above, scaled[None] - scaled[:, None], -1e9)
        terms = ops.concatenate([ops.zeros((1,), terms.dtype), ops.reshape(terms, (-1,))])
        return ops.logsumexp(terms) + ops.zeros_like(scaled)


@keras.saving.register_keras_serializable(package="bert_keras")
class AnglE(CoSENT):
    """`CoSENT` with the angle of vectors in complex space in place of the cosine.

    The halves of a vector are the real and imaginary parts of complex numbers. For vectors `u, v`
    of length 1 with halves `a, b` and `c, d`: `|u . v + (b . c - a . d)|`. It has a gradient where
    the cosine is near 1 or -1 and has almost none.

    Args:
        scale: float, above 0.
        **kwargs: see `CoSENT`.

    Call arguments: as in `CoSENT`, with an even `hidden_dim`.

    Raises:
        ValueError: in a call, `hidden_dim` is odd.

    Reference:
        [Li and Li, 2023](https://arxiv.org/abs/2309.12871); `AnglELoss` of sentence-transformers.
    """

    settings = ("scale",)

    def __init__(self, scale: float = 20.0, **kwargs: Any) -> None:
        super().__init__(scale, **kwargs)

    def compare(self, first: Tensor, second: Tensor) -> Tensor:
        """Returns the similarity of each pair, float `(batch,)`."""
        width = first.shape[-1]
        if width % 2:
            raise ValueError(
                f"AnglE needs vectors with an even number of values. Received: {width}. Use CoSENT."
            )
        first, second = l2_normalize(first), l2_normalize(second)
        (a, b), (c, d) = ops.split(first, 2, axis=-1), ops.split(second, 2, axis=-1)
        return ops.abs(ops.sum(first * second, axis=-1) + ops.sum(b * c - a * d, axis=-1))
