import keras

from bert_keras._types import Activation, Dtype, Outputs, Pooling, Tensor
from bert_keras.heads.head import Head

class SequenceHead(Head):
    num_outputs: int
    dropout: float
    pooling: Pooling
    hidden_activation: Activation | None
    dropout_first: bool
    norm: bool
    layer_norm_epsilon: float
    num_masks: int
    dense: keras.layers.Dense
    drop: keras.layers.Dropout
    def __init__(
        self,
        num_outputs: int,
        hidden_dim: int,
        dropout: float = 0.1,
        pooling: Pooling = "pooler",
        initializer_range: float = 0.02,
        hidden_activation: Activation | None = None,
        dropout_first: bool = False,
        norm: bool = False,
        layer_norm_epsilon: float = 1e-12,
        *,
        name: str | None = ...,
        dtype: Dtype | None = ...,
        trainable: bool = ...,
    ) -> None: ...
    def __call__(
        self, outputs: Outputs, padding_mask: Tensor | None = None, training: bool | None = None
    ) -> Tensor: ...
    def read(self, outputs: Outputs, padding_mask: Tensor | None = None) -> Tensor: ...
