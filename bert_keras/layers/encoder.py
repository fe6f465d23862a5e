"""The encoder: a stack of blocks of attention and feed-forward."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Unpack

import keras

from bert_keras.engine.fast_layer_call import DirectCall
from bert_keras.engine.remat import rematerialized
from bert_keras.engine.size_limit import count_parameters
from bert_keras.layers.dropout import Dropout
from bert_keras.layers.initializer import build_parts
from bert_keras.signatures import parameters_of
from bert_keras.types import LayerOptions, Tensor


def _can_skip_tokens(layer):
    """Whether a block or an attention can compute the first token only."""
    return "first_token_only" in parameters_of(layer.call)[0]


class LayerWithSublayers(DirectCall, keras.layers.Layer):
    """A layer whose constructor takes other layers: its config holds theirs.

    Attributes:
        arguments: names of the constructor's arguments that are attributes too.
        hidden_dim: int, width of what it is called on, if its layers need it when they are built.
    """

    arguments = ()
    hidden_dim = None

    def build(self, input_shape=None):
        parts = keras.tree.flatten([getattr(self, name) for name in self.arguments])
        build_parts(parts, (None, None, self.hidden_dim))

    def get_config(self):
        arguments = {name: getattr(self, name) for name in self.arguments}
        return {**super().get_config(), **keras.saving.serialize_keras_object(arguments)}

    @classmethod
    def from_config(cls, config):
        return cls(**keras.saving.deserialize_keras_object(config))


@keras.saving.register_keras_serializable(package="bert_keras")
class EncoderBlock(LayerWithSublayers):
    """One Transformer block, made of an attention, a feed-forward network and their norms.

    As in BERT, `a = Norm(x + Dropout(Attention(x)))`, then
    `output = Norm(a + Dropout(FeedForward(a)))`. With `norm_first`,
    `a = x + Dropout(Attention(Norm(x)))`, then `output = a + Dropout(FeedForward(Norm(a)))`.

    Args:
        attention: layer called as `SelfAttention` is.
        feed_forward: layer called as `FeedForward` is.
        attention_norm: layer, such as `LayerNorm`, or `None` for no norm.
        feed_forward_norm: layer.
        dropout: float, rate on both residual branches.
        norm_first: bool, whether each half of the block begins with its norm instead of ending
            with it.
        **kwargs: `name`, `dtype`, `trainable`, see `keras.layers.Layer`.

    Call arguments:
        hidden_states: float, `(batch, seq_len, hidden_dim)`.
        attention_mask: bool, broadcastable to `(batch, num_heads, seq_len, seq_len)`, or `None`.
        return_attentions: bool, whether the attention probabilities are returned too.
        training: bool, whether dropout is active.
        first_token_only: bool, whether only the output of the first token is computed.
        **shared: further arguments of the attention, such as `attention_bias`.

    Returns:
        `(output, attentions)`: float `(batch, seq_len, hidden_dim)`, and float
        `(batch, num_heads, seq_len, seq_len)` or `None`. With `first_token_only`, the output is
        `(batch, 1, hidden_dim)`.

    Reference:
        [Vaswani et al., 2017](https://arxiv.org/abs/1706.03762), section 3.1;
        [Xiong et al., 2020](https://arxiv.org/abs/2002.04745) for `norm_first`.
    """

    arguments = ("attention", "feed_forward", "attention_norm", "feed_forward_norm", "norm_first")

    def __init__(
        self,
        attention: keras.layers.Layer,
        feed_forward: keras.layers.Layer,
        attention_norm: keras.layers.Layer | None,
        feed_forward_norm: keras.layers.Layer,
        dropout: float = 0.0,
        norm_first: bool = False,
        **kwargs: Unpack[LayerOptions],
    ) -> None:
        super().__init__(**kwargs)
        self.norm_first, self.hidden_dim = norm_first, attention.hidden_dim
        self.output_shape = (None, None, self.hidden_dim)  # For `summary`.
        self._attention_can_skip = _can_skip_tokens(attention)
        halves = [("attention", attention), ("attention_norm", attention_norm)]
        halves += [("feed_forward", feed_forward), ("feed_forward_norm", feed_forward_norm)]
        # Layers become attributes, and their weights are listed, in the order of the calls.
        for i in (1, 0, 3, 2) if norm_first else range(4):
            setattr(self, *halves[i])
        self.dropout = Dropout(dropout, dtype=self.dtype_policy, name="dropout")
        # Counted now, so that the size limit acts before a thousand blocks are made: the kernels
        # themselves are counted only when they are built.
        count_parameters((self.hidden_dim, sum(layer.units for layer in self.adaptable.values())))

    @property
    def adaptable(self) -> Mapping[str, keras.layers.Dense]:
        """The dense layers that can have an adapter, by name."""
        parts = self.attention, self.feed_forward
        layers = {name: getattr(part, x) for part in parts for name, x in part.adaptable.items()}
        # Not a dict, in which Keras would find the layers and name them accordingly in files.
        return MappingProxyType(layers)

    def call(
        self,
        hidden_states: Tensor,
        attention_mask: Tensor | None = None,
        return_attentions: bool = False,
        training: bool | None = None,
        first_token_only: bool = False,
        **shared: Tensor,
    ) -> tuple[Tensor, Tensor | None]:
        if first_token_only and self._attention_can_skip:
            shared["first_token_only"] = True
        x = hidden_states
        if self.norm_first and self.attention_norm is not None:
            x = self.attention_norm(x)
        attended, attentions = self.attention(
            x,
            attention_mask=attention_mask,
            return_attentions=return_attentions,
            training=training,
            **shared,
        )
        if first_token_only:
            hidden_states, attended = hidden_states[:, :1], attended[:, :1]
        x = self._add(hidden_states, attended, training)
        if not self.norm_first and self.attention_norm is not None:
            x = self.attention_norm(x)
        normalized = self.feed_forward_norm(x) if self.norm_first else x
        x = self._add(x, self.feed_forward(normalized, training=training), training)
        return (x if self.norm_first else self.feed_forward_norm(x)), attentions

    def _add(self, x, change, training):
        if training:  # Otherwise a call that changes nothing would cost PyTorch time.
            return self.dropout(change, training=True, residual=x)
        return x + change

    def get_config(self):
        return {**super().get_config(), "dropout": self.dropout.rate}


@keras.saving.register_keras_serializable(package="bert_keras")
class Encoder(LayerWithSublayers):
    """Blocks, each of which is called on the output of the one before.

    Args:
        blocks: list of layers such as `EncoderBlock`, with its call arguments and its `adaptable`,
            and built without a shape. A block may occur several times, so that layers share its
            weights. A block that does not take `first_token_only` computes all tokens.
        remat: bool, whether training keeps each block's input only and computes the block again in
            the backward pass, see `rematerialized`. It has no effect if the attention
            probabilities are returned.
        norm: layer for the output of the last block, for blocks that begin with a norm instead of
            ending with one; `None` for no such layer.
        shared: list of layers that are called once, on the embeddings, before the first block.
            Every block gets their outputs as keyword arguments with the layers' names, such as
            `attention_bias`.
        **kwargs: `name`, `dtype`, `trainable`, see `keras.layers.Layer`.

    Call arguments:
        hidden_states: float, `(batch, seq_len, hidden_dim)`, the embeddings.
        attention_mask: bool, broadcastable to `(batch, num_heads, seq_len, seq_len)`, or `None`.
        return_attentions: bool, whether each block's attention probabilities are returned too.
        training: bool, whether dropout is active.
        first_token_only: bool, whether the last block computes the first token only, if it can.

    Returns:
        `(hidden_states, attentions)`: a tuple of `len(blocks) + 1` floats
        `(batch, seq_len, hidden_dim)`, the embeddings first and the encoder's output last, with
        `first_token_only` `(batch, 1, hidden_dim)`; and a tuple of `len(blocks)` floats
        `(batch, num_heads, seq_len, seq_len)`, or of `None`.
    """

    arguments = ("blocks", "remat", "norm", "shared")

    def __init__(
        self,
        blocks: Sequence[keras.layers.Layer],
        remat: bool = False,
        norm: keras.layers.LayerNormalization | None = None,
        shared: Sequence[keras.layers.Layer] = (),
        **kwargs: Unpack[LayerOptions],
    ) -> None:
        super().__init__(**kwargs)
        # The shared layers first, since the order of attributes is that of the weights.
        self.shared, self.blocks = list(shared), blocks
        self.remat, self.norm = remat, norm
        self.hidden_dim = blocks[-1].hidden_dim
        self.output_shape = (None, None, self.hidden_dim)
        self._last_can_skip = _can_skip_tokens(blocks[-1])

    @property
    def layers(self) -> list[keras.layers.Layer]:
        """The shared layers and the blocks, for `summary(expand_nested=True)`."""
        return list(dict.fromkeys([*self.shared, *self.blocks]))

    def call(
        self,
        hidden_states: Tensor,
        attention_mask: Tensor | None = None,
        return_attentions: bool = False,
        training: bool | None = None,
        first_token_only: bool = False,
    ) -> tuple[tuple[Tensor, ...], tuple[Tensor | None, ...]]:
        all_hidden_states, all_attentions, shared = [hidden_states], [], {}
        for layer in self.shared:
            shared[layer.name] = layer(hidden_states)
        options = {"training": training, "attention_mask": attention_mask}
        for i, block in enumerate(self.blocks, start=1):
            if first_token_only and self._last_can_skip and i == len(self.blocks):
                options["first_token_only"] = True
            if self.remat and training and not return_attentions:
                hidden_states = rematerialized(block, hidden_states, shared, **options)
                attentions = None
            else:
                options["return_attentions"] = return_attentions
                hidden_states, attentions = block(hidden_states, **shared, **options)
            all_hidden_states.append(hidden_states)
            all_attentions.append(attentions)
        if self.norm is not None:
            all_hidden_states[-1] = self.norm(hidden_states)
        return tuple(all_hidden_states), tuple(all_attentions)
