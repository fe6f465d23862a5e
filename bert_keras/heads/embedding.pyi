import keras

from bert_keras._types import Dtype, Outputs, Pooling, Tensor

class EmbeddingHead(keras.layers.Layer):
    pooling: Pooling
    normalize: bool
    def __init__(
        self,
        pooling: Pooling = "mean",
        normalize: bool = True,
        *,
        name: str | None = ...,
        dtype: Dtype | None = ...,
        trainable: bool = ...,
    ) -> None: ...
    def __call__(self, outputs: Outputs, padding_mask: Tensor | None = None) -> Tensor: ...
