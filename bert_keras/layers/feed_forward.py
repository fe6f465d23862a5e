"""The position-wise feed-forward network."""

from types import MappingProxyType
from typing import Unpack

import keras

from bert_keras.engine.fast_layer_call import DirectCall
from bert_keras.layers.activations import get_activation
from bert_keras.layers.adaptable_dense import AdaptableDense
from bert_keras.layers.initializer import bert_dense
from bert_keras.types import Activation, LayerOptions, Tensor


@keras.saving.register_keras_serializable(package="bert_keras")
class FeedForward(DirectCall, keras.layers.Layer):
    """Two dense layers with an activation between them, applied to each position separately.

    `output = activation(x W_1 + b_1) W_2 + b_2`.

    Args:
        intermediate_dim: int, width between the two layers.
        hidden_dim: int, width of input and output.
        activation: name or callable, see `bert_keras.layers.activations.get_activation`.
        initializer_range: float, standard deviation of the initial kernels.
        **kwargs: `name`, `dtype`, `trainable`, see `keras.layers.Layer`.

    Call arguments:
        hidden_states: float, `(batch, seq_len, hidden_dim)`.
        training: bool, without effect; other feed-forward networks have dropout.

    Returns:
        float, `(batch, seq_len, hidden_dim)`.

    Reference:
        [Vaswani et al., 2017](https://arxiv.org/abs/1706.03762), section 3.3.
    """

    # Name of each dense layer that can have an adapter -> attribute.
    adaptable = MappingProxyType(
        {"intermediate": "intermediate", "feed_forward_output": "output_dense"}
    )

    def __init__(
        self,
        intermediate_dim: int,
        hidden_dim: int,
        activation: Activation = "gelu",
        initializer_range: float = 0.02,
        **kwargs: Unpack[LayerOptions],
    ) -> None:
        super().__init__(**kwargs)
        self.intermediate_dim = intermediate_dim
        self.hidden_dim = hidden_dim
        self.initializer_range = initializer_range
        self.activation = get_activation(activation)
        self.intermediate = bert_dense(self, intermediate_dim, "intermediate", AdaptableDense)
        self.output_dense = bert_dense(self, hidden_dim, "output", AdaptableDense, shard_axis=0)

    def build(self, input_shape=None):
        self.intermediate.build((None, None, self.hidden_dim))
        self.output_dense.build((None, None, self.intermediate_dim))

    def call(self, hidden_states: Tensor, training: bool | None = None) -> Tensor:
        return self.output_dense(self.activation(self.intermediate(hidden_states)))
