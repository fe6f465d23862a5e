from typing import Any

import keras

from bert_keras._types import Activation, Dtype, Tensor

class Head(keras.layers.Layer):
    hidden_dim: int
    initializer_range: float
    hidden: keras.layers.Dense | None
    hidden_norm: keras.layers.LayerNormalization | None
    def __init__(
        self,
        arguments: dict[str, Any],
        *,
        name: str | None = ...,
        dtype: Dtype | None = ...,
        trainable: bool = ...,
    ) -> None: ...
    def make_dense(
        self,
        units: int,
        activation: Activation | None = None,
        name: str = "dense",
        use_bias: bool = True,
    ) -> keras.layers.Dense: ...
    def make_dropout(self, rate: float) -> keras.layers.Dropout: ...
    def make_norm(
        self, epsilon: float, name: str = "layer_norm", use_bias: bool = True
    ) -> keras.layers.LayerNormalization: ...
    def add_hidden(self) -> None: ...
    def through_hidden(self, vectors: Tensor) -> Tensor: ...

def own_arguments(settings: dict[str, Any]) -> dict[str, Any]: ...
