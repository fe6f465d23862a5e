import keras

from bert_keras._types import Activation, Dtype, Outputs, Tensor
from bert_keras.heads.head import Head
from bert_keras.layers.crf import LinearChainCRF

class TokenHead(Head):
    num_outputs: int
    dropout: float
    crf: LinearChainCRF | None
    hidden_activation: Activation | None
    norm: bool
    layer_norm_epsilon: float
    dense: keras.layers.Dense
    drop: keras.layers.Dropout
    def __init__(
        self,
        num_outputs: int,
        hidden_dim: int,
        dropout: float = 0.1,
        crf: bool = False,
        initializer_range: float = 0.02,
        hidden_activation: Activation | None = None,
        norm: bool = False,
        layer_norm_epsilon: float = 1e-12,
        *,
        name: str | None = ...,
        dtype: Dtype | None = ...,
        trainable: bool = ...,
    ) -> None: ...
    def __call__(self, outputs: Outputs, training: bool | None = None) -> Tensor: ...
    def read(self, outputs: Outputs, padding_mask: Tensor | None = None) -> Tensor: ...
