"""A weighted mean of vectors, whose weights are computed by attention."""

from typing import Unpack

import keras
from keras import ops

from bert_keras.layers.initializer import bert_dense
from bert_keras.types import LayerOptions, Tensor


@keras.saving.register_keras_serializable(package="bert_keras")
class AttentionPooling(keras.layers.Layer):
    """Reduces several vectors to one: their mean, weighted by how much each one matters.

    `output = sum over k of softmax(tanh(x W + b) v)[k] * x[k]`: self-attention with one learned
    query and one hop. With small initial weights it starts near the plain mean.

    Args:
        hidden_dim: int, width of the vectors, and of `tanh(x W + b)`.
        initializer_range: float, standard deviation of the initial kernels.
        **kwargs: `name`, `dtype`, `trainable`, see `keras.layers.Layer`.

    Call arguments:
        x: float, `(batch, num_vectors, hidden_dim)`.
        exists: bool, `(batch, num_vectors)`, which vectors count, or `None` for all. If none
            counts, the output is the mean of all.

    Returns:
        float, `(batch, hidden_dim)`.

    Reference:
        [Lin et al., 2017](https://arxiv.org/abs/1703.03130), section 2.1, with one hop.
    """

    def __init__(
        self, hidden_dim: int, initializer_range: float = 0.02, **kwargs: Unpack[LayerOptions]
    ) -> None:
        super().__init__(**kwargs)
        self.hidden_dim = hidden_dim
        self.initializer_range = initializer_range
        self.dense = bert_dense(self, hidden_dim, "dense", activation="tanh")
        self.query = bert_dense(self, 1, "query", use_bias=False)

    def build(self, input_shape=None):
        self.dense.build((None, None, self.hidden_dim))
        self.query.build((None, None, self.hidden_dim))

    def call(self, x: Tensor, exists: Tensor | None = None) -> Tensor:
        scores = ops.cast(self.query(self.dense(x)), "float32")
        if exists is not None:
            scores = ops.where(ops.expand_dims(exists, -1), scores, -1e9)
        shares = ops.cast(ops.softmax(scores, axis=1), x.dtype)
        return ops.sum(shares * x, axis=1)

    def compute_output_shape(self, input_shape, exists_shape=None):
        return (input_shape[0], self.hidden_dim)
