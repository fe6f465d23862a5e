import keras

from bert_keras._types import Dtype, Tensor

class BertEmbeddings(keras.layers.Layer):
    hidden_dim: int
    embedding_dim: int
    num_segments: int
    padding_id: int | None
    initializer_range: float
    token_embedding: keras.layers.ReversibleEmbedding
    position_embedding: keras.layers.Embedding
    segment_embedding: keras.layers.Embedding
    layer_norm: keras.layers.LayerNormalization
    projection: keras.layers.Dense | None
    def __init__(
        self,
        vocabulary_size: int,
        hidden_dim: int,
        max_sequence_length: int = 512,
        num_segments: int = 2,
        dropout: float = 0.1,
        layer_norm_epsilon: float = 1e-12,
        initializer_range: float = 0.02,
        padding_id: int | None = None,
        embedding_dim: int | None = None,
        *,
        name: str | None = ...,
        dtype: Dtype | None = ...,
        trainable: bool = ...,
    ) -> None: ...
    def __call__(
        self,
        token_ids: Tensor,
        segment_ids: Tensor | None = None,
        token_vectors: Tensor | None = None,
        training: bool | None = None,
    ) -> Tensor: ...

def share_embeddings(backbone: keras.Model, other: keras.Model) -> None: ...
