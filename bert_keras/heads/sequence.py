"""The head for one prediction per sequence."""

from typing import Unpack

import keras

from bert_keras.checks import check_choice
from bert_keras.heads.head import Head
from bert_keras.layers.pooler import POOLINGS, pool
from bert_keras.types import Activation, LayerOptions, Outputs, Pooling, Tensor


@keras.saving.register_keras_serializable(package="bert_keras")
class SequenceHead(Head):
    """Dropout and a dense layer on one vector per sequence.

    `logits = Dropout(pool(outputs)) W + b`, section 4.1 of the paper with `pooling="pooler"`.
    With `hidden_activation` there is one more dense layer before,
    `Dropout(activation(Dropout(pool(outputs)) W_h + b_h)) W + b`, as in the classifiers of families
    without a pooler. With `norm`, a norm follows the activation, and neither of them has a bias.

    Args:
        num_outputs: int, number of logits or scores.
        hidden_dim: int, width of the backbone.
        dropout: float, rate on the hidden vector if there is one, else on the pooled one.
        pooling: `"pooler"`, `"cls"`, `"mean"` or `"max"`, see `bert_keras.layers.pooler.pool`.
        initializer_range: float, standard deviation of the initial kernels.
        hidden_activation: name of the hidden layer's activation, see
            `bert_keras.layers.activations.get_activation`; `None` for no such layer.
        dropout_first: bool, whether there is dropout before the hidden layer too.
        norm: bool, whether a norm follows the hidden layer.
        layer_norm_epsilon: float, added to its variance.
        **kwargs: `name`, `dtype`, `trainable`, see `keras.layers.Layer`.

    Call arguments:
        outputs: dict of a backbone.
        padding_mask: `(batch, seq_len)`, or `None`.
        training: bool, whether dropout is active.

    Returns:
        float, `(batch, num_outputs)`.

    Raises:
        ValueError: `pooling` is unknown, or `dropout_first` or `norm` is set without a hidden
            layer.
    """

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
        **kwargs: Unpack[LayerOptions],
    ) -> None:
        super().__init__(**kwargs)
        check_choice("pooling", pooling, POOLINGS)
        self.drop = self.make_dropout(dropout)
        self.add_hidden()
        self.dense = self.make_dense(hidden_dim, num_outputs)
        self.output_shape = (None, num_outputs)

    def call(
        self, outputs: Outputs, padding_mask: Tensor | None = None, training: bool | None = None
    ) -> Tensor:
        vector = pool(outputs, padding_mask, self.pooling)
        if training and self.dropout_first:
            vector = self.drop(vector, training=True)
        if self.hidden is not None:
            vector = self.through_hidden(vector)
        if training:
            vector = self.drop(vector, training=True)
        return self.dense(vector)
