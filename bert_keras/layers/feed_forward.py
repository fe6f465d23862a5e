"""The position-wise feed-forward networks, BERT's and one with a gate."""

from types import MappingProxyType
from typing import Unpack

import keras
from keras import ops

from bert_keras.layers.activations import get_activation
from bert_keras.layers.bert_layer import BertLayer
from bert_keras.types import Activation, LayerOptions, Tensor


@keras.saving.register_keras_serializable(package="bert_keras")
class FeedForward(BertLayer):
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
        self.activation = get_activation(activation)
        self.intermediate = self.make_dense(hidden_dim, intermediate_dim, "intermediate")
        self.output_dense = self.make_dense(intermediate_dim, hidden_dim, "output", shard_axis=0)

    def call(self, hidden_states: Tensor, training: bool | None = None) -> Tensor:
        return self.output_dense(self.activation(self.intermediate(hidden_states)))


@keras.saving.register_keras_serializable(package="bert_keras")
class GatedFeedForward(BertLayer):
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

    adaptable = FeedForward.adaptable

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
        self.activation = get_activation(activation)
        units, options = 2 * intermediate_dim, {"use_bias": use_bias, "shard_axis": 0}
        self.intermediate = self.make_dense(hidden_dim, units, "intermediate", use_bias=False)
        self.output_dense = self.make_dense(intermediate_dim, hidden_dim, "output", **options)
        self.dropout = self.make_dropout(dropout)

    def call(self, hidden_states, training=None):
        activated, gate = ops.split(self.intermediate(hidden_states), 2, axis=-1)
        gated = self.dropout(self.activation(activated) * gate, training=training)
        return self.output_dense(gated)
