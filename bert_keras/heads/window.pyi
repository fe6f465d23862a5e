from typing import Literal

import keras

from bert_keras._types import Dtype, Tensor
from bert_keras.heads.head import Head
from bert_keras.layers.attention_pooling import AttentionPooling

COMBINATIONS: tuple[str, ...]

class WindowHead(Head):
    num_outputs: int
    dropout: float
    combine: Literal["mean", "max", "self_attention"]
    attention: AttentionPooling | None
    dense: keras.layers.Dense
    drop: keras.layers.Dropout
    def __init__(
        self,
        num_outputs: int,
        hidden_dim: int,
        combine: Literal["mean", "max", "self_attention"] = "mean",
        dropout: float = 0.1,
        initializer_range: float = 0.02,
        *,
        name: str | None = ...,
        dtype: Dtype | None = ...,
        trainable: bool = ...,
    ) -> None: ...
    def __call__(
        self, vectors: Tensor, exists: Tensor | None = None, training: bool | None = None
    ) -> Tensor: ...
