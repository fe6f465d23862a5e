"""The head for one prediction per document that is read in windows."""

from typing import Unpack

import keras

from bert_keras.checks import check_choice
from bert_keras.heads.head import Head
from bert_keras.layers.attention_pooling import AttentionPooling
from bert_keras.layers.initializer import build_parts
from bert_keras.layers.pooler import pool
from bert_keras.types import Combination, LayerOptions, Tensor

COMBINATIONS = ("mean", "max", "self_attention")


@keras.saving.register_keras_serializable(package="bert_keras")
class WindowHead(Head):
    """Combines the vectors of a document's windows, then applies dropout and a dense layer.

    `logits = Dropout(combine(x_1, ..., x_k)) W + b` over the `k` windows of the document.

    Args:
        num_outputs: int, number of logits or scores.
        hidden_dim: int, width of the vectors.
        combine: `"mean"`, `"max"`, or `"self_attention"`, see
            `bert_keras.layers.attention_pooling.AttentionPooling`.
        dropout: float, rate on the combined vector.
        initializer_range: float, standard deviation of the initial kernels.
        **kwargs: `name`, `dtype`, `trainable`, see `keras.layers.Layer`.

    Call arguments:
        vectors: float, `(batch, num_windows, hidden_dim)`.
        exists: bool, `(batch, num_windows)`, which windows exist, or `None` for all.
        training: bool, whether dropout is active.

    Returns:
        float, `(batch, num_outputs)`.

    Raises:
        ValueError: `combine` is unknown.

    Reference:
        [Sun et al., 2019](https://arxiv.org/abs/1905.05583), section 5.3.1, "Hierarchical methods".
    """

    def __init__(
        self,
        num_outputs: int,
        hidden_dim: int,
        combine: Combination = "mean",
        dropout: float = 0.1,
        initializer_range: float = 0.02,
        **kwargs: Unpack[LayerOptions],
    ) -> None:
        super().__init__(**kwargs)
        check_choice("combine", combine, COMBINATIONS)
        self.attention = None
        if combine == "self_attention":
            self.attention = AttentionPooling(
                hidden_dim, initializer_range, dtype=self.dtype_policy, name="attention"
            )
        self.drop = self.make_dropout(dropout)
        self.dense = self.make_dense(num_outputs)

    def build(self, input_shape=None):
        build_parts([self.attention])
        super().build()

    def call(
        self, vectors: Tensor, exists: Tensor | None = None, training: bool | None = None
    ) -> Tensor:
        if self.attention is None:
            document = pool({"sequence_output": vectors}, exists, self.combine)
        else:
            document = self.attention(vectors, exists)
        return self.dense(self.drop(document, training=training))
