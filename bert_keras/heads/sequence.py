"""The head for one prediction a sequence."""

import keras
from keras import ops

from bert_keras.layers.dropout import Dropout
from bert_keras.layers.initializer import bert_initializer
from bert_keras.layers.pooler import POOLINGS, pool


@keras.saving.register_keras_serializable(package="bert_keras")
class SequenceHead(keras.layers.Layer):
    """Dropout and a dense layer on one vector a sequence.

    `logits = Dropout(pool(outputs)) W + b`, section 4.1 of the paper with `pooling="pooler"`.

    Args:
        num_outputs: int, number of logits or scores.
        hidden_dim: int, width of the backbone.
        dropout: float, rate on the pooled vector.
        pooling: `"pooler"`, `"cls"`, `"mean"` or `"max"`, see `bert_keras.layers.pooler.pool`.
        initializer_range: float, standard deviation of the initial kernel.
        **kwargs: `name`, `dtype`, `trainable`, see `keras.layers.Layer`.

    Call arguments:
        outputs: dict of a backbone.
        padding_mask: `(batch, seq_len)`, or `None`.
        training: bool, whether dropout is active.

    Attributes:
        num_masks: int, how many dropout masks each pooled vector gets, see
            `bert_keras.training.SeveralMasks`: 1.

    Returns:
        float, `(num_masks * batch, num_outputs)`, the rows of the first mask first.
    """

    num_masks = 1

    def __init__(
        self,
        num_outputs,
        hidden_dim,
        dropout=0.1,
        pooling="pooler",
        initializer_range=0.02,
        **kwargs,
    ):
        super().__init__(**kwargs)
        if pooling not in POOLINGS:
            raise ValueError(f"`pooling` must be one of {POOLINGS}. Received: {pooling!r}.")
        self.num_outputs = num_outputs
        self.hidden_dim = hidden_dim
        self.pooling = pooling
        self.initializer_range = initializer_range
        self.dropout = Dropout(dropout, dtype=self.dtype_policy, name="dropout")
        self.dense = keras.layers.Dense(
            num_outputs,
            kernel_initializer=bert_initializer(initializer_range),
            dtype=self.dtype_policy,
            name="dense",
        )

    def build(self, input_shape=None):
        self.dense.build((None, self.hidden_dim))

    def call(self, outputs, padding_mask=None, training=None):
        pooled = pool(outputs, padding_mask, self.pooling)
        if self.num_masks > 1:
            pooled = ops.concatenate([pooled] * self.num_masks)
        return self.dense(self.dropout(pooled, training=training))

    def get_config(self):
        return {
            **super().get_config(),
            "num_outputs": self.num_outputs,
            "hidden_dim": self.hidden_dim,
            "dropout": self.dropout.rate,
            "pooling": self.pooling,
            "initializer_range": self.initializer_range,
        }
