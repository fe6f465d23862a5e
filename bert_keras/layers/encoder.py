"""The encoder: a stack of blocks of self-attention and feed-forward."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Unpack

import keras

from bert_keras.engine.remat import rematerialized, warn_where_useless
from bert_keras.engine.size_limit import note_variable
from bert_keras.layers.attention import SelfAttention
from bert_keras.layers.dropout import Dropout
from bert_keras.layers.feed_forward import FeedForward
from bert_keras.layers.layer_norm import LayerNorm
from bert_keras.types import Activation, LayerOptions, Tensor


@keras.saving.register_keras_serializable(package="bert_keras")
class EncoderBlock(keras.layers.Layer):
    """One Transformer block, normalised after each residual sum as BERT does it.

    `a = LayerNorm(x + Dropout(SelfAttention(x)))`, then
    `output = LayerNorm(a + Dropout(FeedForward(a)))`.

    Args:
        num_heads: int, attention heads.
        hidden_dim: int, width of input and output.
        intermediate_dim: int, width inside the feed-forward network.
        dropout: float, rate on both residual branches.
        attention_dropout: float, rate on the attention probabilities.
        activation: name or callable, see `bert_keras.layers.feed_forward.get_activation`.
        layer_norm_epsilon: float, added to the variance.
        initializer_range: float, standard deviation of the initial kernels.
        **kwargs: `name`, `dtype`, `trainable`, see `keras.layers.Layer`.

    Call arguments:
        hidden_states: float, `(batch, seq_len, hidden_dim)`.
        attention_mask: bool, broadcastable to `(batch, num_heads, seq_len, seq_len)`, or `None`.
        return_attentions: bool, whether the attention probabilities are returned too.
        training: bool, whether dropout is active.

    Returns:
        `(output, attentions)`: float `(batch, seq_len, hidden_dim)`, and float
        `(batch, num_heads, seq_len, seq_len)` or `None`.

    Reference:
        [Vaswani et al., 2017](https://arxiv.org/abs/1706.03762), section 3.1.
    """

    def __init__(
        self,
        num_heads: int,
        hidden_dim: int,
        intermediate_dim: int,
        dropout: float = 0.1,
        attention_dropout: float = 0.1,
        activation: Activation = "gelu",
        layer_norm_epsilon: float = 1e-12,
        initializer_range: float = 0.02,
        **kwargs: Unpack[LayerOptions],
    ) -> None:
        super().__init__(**kwargs)
        # Before the layers of a thousand blocks are made, which note their kernels when built.
        note_variable((hidden_dim, 4 * hidden_dim + 2 * intermediate_dim))
        self.hidden_dim = hidden_dim
        self.attention = SelfAttention(
            num_heads,
            hidden_dim,
            dropout=attention_dropout,
            initializer_range=initializer_range,
            dtype=self.dtype_policy,
            name="attention",
        )
        self.attention_norm = LayerNorm(
            epsilon=layer_norm_epsilon, dtype=self.dtype_policy, name="attention_norm"
        )
        self.feed_forward = FeedForward(
            intermediate_dim,
            hidden_dim,
            activation=activation,
            initializer_range=initializer_range,
            dtype=self.dtype_policy,
            name="feed_forward",
        )
        self.feed_forward_norm = LayerNorm(
            epsilon=layer_norm_epsilon, dtype=self.dtype_policy, name="feed_forward_norm"
        )
        self.dropout = Dropout(dropout, dtype=self.dtype_policy, name="dropout")

    @property
    def adaptable(self) -> Mapping[str, keras.layers.Dense]:
        """The block's dense layers by name, to each of which an adapter can be added."""
        layers = {
            "query": self.attention.query,
            "key": self.attention.key,
            "value": self.attention.value,
            "attention_output": self.attention.output_dense,
            "intermediate": self.feed_forward.intermediate,
            "feed_forward_output": self.feed_forward.output_dense,
        }
        # No dict, by which Keras would find the layers, and name them so in files.
        return MappingProxyType(layers)

    def build(self, input_shape=None):
        shape = (None, None, self.hidden_dim)
        self.attention.build(shape)
        self.attention_norm.build(shape)
        self.feed_forward.build(shape)
        self.feed_forward_norm.build(shape)

    def call(
        self,
        hidden_states: Tensor,
        attention_mask: Tensor | None = None,
        return_attentions: bool = False,
        training: bool | None = None,
    ) -> tuple[Tensor, Tensor | None]:
        attended, attentions = self.attention(
            hidden_states,
            attention_mask=attention_mask,
            return_attentions=return_attentions,
            training=training,
        )
        attended = self.dropout(attended, training=training)
        hidden_states = self.attention_norm(hidden_states + attended)
        transformed = self.dropout(self.feed_forward(hidden_states), training=training)
        return self.feed_forward_norm(hidden_states + transformed), attentions


@keras.saving.register_keras_serializable(package="bert_keras")
class Encoder(keras.layers.Layer):
    """Blocks, each on the output of the one before.

    Args:
        blocks: list of layers such as `EncoderBlock`, which are called as it is, have its
            `adaptable`, and are built without being told a shape. One may stand there several
            times: these layers share its weights, each with dropout of its own.
        remat: bool, whether training keeps each block's input only and computes the block again in
            the backward pass, see `rematerialized`. Blocks whose attention probabilities are
            returned are kept.
        norm: layer for the output of the last block, where blocks begin with a norm instead of
            ending with one; `None` for no such layer.
        **kwargs: `name`, `dtype`, `trainable`, see `keras.layers.Layer`.

    Call arguments:
        hidden_states: float, `(batch, seq_len, hidden_dim)`, the embeddings.
        attention_mask: bool, broadcastable to `(batch, num_heads, seq_len, seq_len)`, or `None`.
        return_attentions: bool, whether each block's attention probabilities are returned too.
        training: bool, whether dropout is active.

    Returns:
        `(hidden_states, attentions)`: a tuple of `len(blocks) + 1` floats
        `(batch, seq_len, hidden_dim)`, the embeddings first and the encoder's output last; and a
        tuple of `len(blocks)` floats `(batch, num_heads, seq_len, seq_len)`, or of `None`.
    """

    def __init__(
        self,
        blocks: Sequence[keras.layers.Layer],
        remat: bool = False,
        norm: keras.layers.LayerNormalization | None = None,
        **kwargs: Unpack[LayerOptions],
    ) -> None:
        super().__init__(**kwargs)
        self.blocks = blocks
        self.remat = remat
        self.norm = norm
        if remat:
            warn_where_useless()

    @property
    def layers(self) -> list[keras.layers.Layer]:
        """The blocks, by which `summary(expand_nested=True)` finds them."""
        return list(dict.fromkeys(self.blocks))

    def build(self, input_shape=None):
        for block in self.layers:
            block.build()
        if self.norm is not None:
            self.norm.build((None, None, self.blocks[-1].hidden_dim))

    def call(
        self,
        hidden_states: Tensor,
        attention_mask: Tensor | None = None,
        return_attentions: bool = False,
        training: bool | None = None,
    ) -> tuple[tuple[Tensor, ...], tuple[Tensor | None, ...]]:
        all_hidden_states, all_attentions = [hidden_states], []
        options = {"attention_mask": attention_mask, "training": training}
        for block in self.blocks:
            if self.remat and training and not return_attentions:
                hidden_states, attentions = rematerialized(block, hidden_states, **options), None
            else:
                hidden_states, attentions = block(
                    hidden_states, return_attentions=return_attentions, **options
                )
            all_hidden_states.append(hidden_states)
            all_attentions.append(attentions)
        if self.norm is not None:
            all_hidden_states[-1] = self.norm(hidden_states)
        return tuple(all_hidden_states), tuple(all_attentions)

    def get_config(self):
        blocks = keras.saving.serialize_keras_object(list(self.blocks))
        norm = self.norm and keras.saving.serialize_keras_object(self.norm)
        return {**super().get_config(), "blocks": blocks, "remat": self.remat, "norm": norm}

    @classmethod
    def from_config(cls, config):
        parts = {k: keras.saving.deserialize_keras_object(config[k]) for k in ("blocks", "norm")}
        return cls(**{**config, **parts})
