"""The feed-forward network with a gate."""

import functools
from types import MappingProxyType
from typing import Unpack

import keras
from keras import ops

from bert_keras.engine.fast_layer_call import DirectCall
from bert_keras.layers.activations import get_activation
from bert_keras.layers.adaptable_dense import AdaptableDense
from bert_keras.layers.dropout import Dropout
from bert_keras.layers.initializer import bert_dense
from bert_keras.types import LayerOptions


@keras.saving.register_keras_serializable(package="bert_keras")
class GatedFeedForward(DirectCall, keras.layers.Layer):
    """A feed-forward network whose first layer has a half that gates the other.

    `output = Dropout(activation(x W_1) * (x V)) W_2`, applied to each position separately: GeGLU
    with the activation `"gelu"`. `W_1` and `V` are the two halves of one kernel, which has no bias.

    Args:
        intermediate_dim: int, width between the layers; the first has twice as many units.
        hidden_dim: int, width of input and output.
        dropout: float, rate between the layers.
        activation: name or callable, see `get_activation`.
        initializer_range: float, standard deviation of the initial kernels.
        use_bias: bool, whether the output has a bias.
        **kwargs: `name`, `dtype`, `trainable`, see `keras.layers.Layer`.

    Call arguments:
        hidden_states: float, `(batch, seq_len, hidden_dim)`.
        training: bool, whether dropout is active.

    Returns:
        float, `(batch, seq_len, hidden_dim)`.

    Reference:
        [Shazeer, 2020](https://arxiv.org/abs/2002.05202).
    """

    # Name of each dense layer that can have an adapter -> attribute.
    adaptable = MappingProxyType(
        {"intermediate": "intermediate", "feed_forward_output": "output_dense"}
    )

    def __init__(
        self,
        intermediate_dim,
        hidden_dim,
        dropout=0.0,
        activation="gelu",
        initializer_range=0.02,
        use_bias=False,
        **kwargs: Unpack[LayerOptions],
    ):
        super().__init__(**kwargs)
        self.intermediate_dim = intermediate_dim
        self.hidden_dim = hidden_dim
        self.initializer_range = initializer_range
        self.activation = get_activation(activation)
        dense = functools.partial(bert_dense, self, layer_class=AdaptableDense)
        self.intermediate = dense(2 * intermediate_dim, "intermediate", use_bias=False)
        self.output_dense = dense(hidden_dim, "output", shard_axis=0, use_bias=use_bias)
        self.dropout = Dropout(dropout, dtype=self.dtype_policy, name="dropout")

    def build(self, input_shape=None):
        self.intermediate.build((None, None, self.hidden_dim))
        self.output_dense.build((None, None, self.intermediate_dim))

    def call(self, hidden_states, training=None):
        activated, gate = ops.split(self.intermediate(hidden_states), 2, axis=-1)
        gated = self.dropout(self.activation(activated) * gate, training=training)
        return self.output_dense(gated)
