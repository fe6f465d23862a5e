from collections.abc import Callable

import keras

from bert_keras._types import Activation, Dtype, Tensor

def gelu(x: Tensor) -> Tensor: ...
def gelu_tanh(x: Tensor) -> Tensor: ...
def get_activation(activation: Activation | None) -> Callable[[Tensor], Tensor]: ...

class FeedForward(keras.layers.Layer):
    intermediate_dim: int
    hidden_dim: int
    activation: Callable[[Tensor], Tensor]
    intermediate: keras.layers.Dense
    output_dense: keras.layers.Dense
    def __init__(
        self,
        intermediate_dim: int,
        hidden_dim: int,
        activation: Activation = "gelu",
        initializer_range: float = 0.02,
        *,
        name: str | None = ...,
        dtype: Dtype | None = ...,
        trainable: bool = ...,
    ) -> None: ...
    def __call__(self, hidden_states: Tensor, training: bool | None = None) -> Tensor: ...
