import keras

from bert_keras._types import Dtype, Tensor

MASKED: float

class SelfAttention(keras.layers.Layer):
    num_heads: int
    hidden_dim: int
    head_dim: int
    initializer_range: float
    def __init__(
        self,
        num_heads: int,
        hidden_dim: int,
        dropout: float = 0.1,
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
