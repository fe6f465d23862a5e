import keras

from bert_keras._types import Activation, Dtype, Outputs, Tensor
from bert_keras.heads.head import Head

MASKED_LOGIT: float

class SpanHead(Head):
    dropout: float
    mask_padding: bool
    hidden_activation: Activation | None
    norm: bool
    layer_norm_epsilon: float
    dense: keras.layers.Dense
    drop: keras.layers.Dropout
    def __init__(
        self,
        hidden_dim: int,
        initializer_range: float = 0.02,
        dropout: float = 0.0,
        mask_padding: bool = True,
        hidden_activation: Activation | None = None,
        norm: bool = False,
        layer_norm_epsilon: float = 1e-12,
        *,
        name: str | None = ...,
        dtype: Dtype | None = ...,
        trainable: bool = ...,
    ) -> None: ...
    def __call__(
        self, outputs: Outputs, padding_mask: Tensor | None = None, training: bool | None = None
    ) -> tuple[Tensor, Tensor]: ...
