import keras

from bert_keras._types import Dtype, Tensor

class AttentionPooling(keras.layers.Layer):
    hidden_dim: int
    initializer_range: float
    def __init__(
        self,
        hidden_dim: int,
        initializer_range: float = 0.02,
        *,
        name: str | None = ...,
        dtype: Dtype | None = ...,
        trainable: bool = ...,
    ) -> None: ...
    def __call__(self, x: Tensor, exists: Tensor | None = None) -> Tensor: ...
