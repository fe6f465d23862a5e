from collections.abc import Mapping, Sequence

import keras

from bert_keras._types import Activation, Dtype, Tensor
from bert_keras.layers.attention import SelfAttention
from bert_keras.layers.feed_forward import FeedForward

class EncoderBlock(keras.layers.Layer):
    hidden_dim: int
    attention: SelfAttention
    attention_norm: keras.layers.LayerNormalization
    feed_forward: FeedForward
    feed_forward_norm: keras.layers.LayerNormalization
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
        *,
        name: str | None = ...,
        dtype: Dtype | None = ...,
        trainable: bool = ...,
    ) -> None: ...
    def __call__(
        self,
        hidden_states: Tensor,
        attention_mask: Tensor | None = None,
        return_attentions: bool = False,
        training: bool | None = None,
    ) -> tuple[Tensor, Tensor | None]: ...
    @property
    def adaptable(self) -> Mapping[str, keras.layers.Dense]: ...

class Encoder(keras.layers.Layer):
    blocks: Sequence[keras.layers.Layer]
    remat: bool
    norm: keras.layers.LayerNormalization | None
    def __init__(
        self,
        blocks: Sequence[keras.layers.Layer],
        remat: bool = False,
        norm: keras.layers.LayerNormalization | None = None,
        *,
        name: str | None = ...,
        dtype: Dtype | None = ...,
        trainable: bool = ...,
    ) -> None: ...
    @property
    def layers(self) -> list[keras.layers.Layer]: ...
    def __call__(
        self,
        hidden_states: Tensor,
        attention_mask: Tensor | None = None,
        return_attentions: bool = False,
        training: bool | None = None,
    ) -> tuple[tuple[Tensor, ...], tuple[Tensor | None, ...]]: ...
