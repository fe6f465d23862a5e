import keras

from bert_keras._types import Activation, Dtype, Outputs, Tensor
from bert_keras.heads.head import Head

class ReplacedTokenHead(Head):
    activation: Activation
    hidden: keras.layers.Dense
    dense: keras.layers.Dense
    def __init__(
        self,
        hidden_dim: int,
        activation: Activation = "gelu",
        initializer_range: float = 0.02,
        *,
        name: str | None = ...,
        dtype: Dtype | None = ...,
        trainable: bool = ...,
    ) -> None: ...
    def __call__(self, outputs: Outputs) -> Tensor: ...
