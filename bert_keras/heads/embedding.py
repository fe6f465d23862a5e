"""The head that turns a text into one vector."""

from typing import Unpack

import keras
from keras import ops

from bert_keras.checks import check_choice
from bert_keras.layers.pooler import POOLINGS, pool
from bert_keras.training.losses import of_length_1
from bert_keras.types import LayerOptions, Outputs, Pooling, Tensor


@keras.saving.register_keras_serializable(package="bert_keras")
class EmbeddingHead(keras.layers.Layer):
    """Pools the tokens' vectors and optionally scales the result to length 1.

    It has no weights. Only the backbone learns.

    Args:
        pooling: `"mean"`, `"cls"`, `"max"` or `"pooler"`, see `bert_keras.layers.pooler.pool`.
        normalize: bool, whether vectors have length 1, so that dot products are cosines.
        **kwargs: `name`, `dtype`, `trainable`, see `keras.layers.Layer`.

    Call arguments:
        outputs: dict of a backbone.
        padding_mask: `(batch, seq_len)`, or `None`.

    Returns:
        float32 `(batch, hidden_dim)`.

    Reference:
        [Reimers and Gurevych, 2019](https://arxiv.org/abs/1908.10084), section 3.
    """

    def __init__(
        self, pooling: Pooling = "mean", normalize: bool = True, **kwargs: Unpack[LayerOptions]
    ) -> None:
        super().__init__(**kwargs)
        self.pooling = check_choice("pooling", pooling, POOLINGS)
        self.normalize = normalize

    def build(self, input_shape=None):
        self.built = True

    def call(self, outputs: Outputs, padding_mask: Tensor | None = None) -> Tensor:
        # Small differences between cosines need float32, so nothing is rounded after pooling.
        outputs = {
            key: ops.cast(outputs[key], "float32")
            for key in ("sequence_output", "pooled_output")
            if key in outputs
        }
        vectors = pool(outputs, padding_mask, self.pooling)
        return of_length_1(vectors) if self.normalize else vectors

    def get_config(self):
        return {**super().get_config(), "pooling": self.pooling, "normalize": self.normalize}
