import keras

from bert_keras._types import Activation, Dtype, Outputs, Tensor
from bert_keras.heads.head import Head

class MaskedLMHead(Head):
    vocabulary_size: int
    embedding_dim: int
    activation: Activation
    layer_norm_epsilon: float
    use_bias: bool
    dense: keras.layers.Dense
    layer_norm: keras.layers.LayerNormalization
    bias: keras.Variable
    def __init__(
        self,
        vocabulary_size: int,
        hidden_dim: int,
        activation: Activation = "gelu",
        layer_norm_epsilon: float = 1e-12,
        initializer_range: float = 0.02,
        embedding_dim: int | None = None,
        use_bias: bool = True,
        *,
        name: str | None = ...,
        dtype: Dtype | None = ...,
        trainable: bool = ...,
    ) -> None: ...
    def __call__(
        self,
        outputs: Outputs,
        token_embedding: keras.layers.ReversibleEmbedding,
        mask_positions: Tensor | None = None,
    ) -> Tensor: ...

def gather_positions(hidden_states: Tensor, positions: Tensor) -> Tensor: ...
