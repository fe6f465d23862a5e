import keras

from bert_keras._types import Dtype, Outputs, Pooling, Tensor

class Pooler(keras.layers.Layer):
    hidden_dim: int
    dense: keras.layers.Dense
    def __init__(
        self,
        hidden_dim: int,
        initializer_range: float = 0.02,
        *,
        name: str | None = ...,
        dtype: Dtype | None = ...,
        trainable: bool = ...,
    ) -> None: ...
    def __call__(self, hidden_states: Tensor) -> Tensor: ...

POOLINGS: tuple[Pooling, ...]

def pool(outputs: Outputs, padding_mask: Tensor | None, pooling: Pooling) -> Tensor: ...
