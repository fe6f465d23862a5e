import keras

from bert_keras._types import Activation, Dtype

class Head(keras.layers.Layer):
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
    def make_dense(
        self, units: int, activation: Activation | None = None, name: str = "dense"
    ) -> keras.layers.Dense: ...
    def make_dropout(self, rate: float) -> keras.layers.Dropout: ...
