"""The head for one prediction a token."""

import keras

from bert_keras.layers.crf import LinearChainCRF
from bert_keras.layers.dropout import Dropout
from bert_keras.layers.initializer import bert_initializer


@keras.saving.register_keras_serializable(package="bert_keras")
class TokenHead(keras.layers.Layer):
    """Dropout and a dense layer on each token's vector, section 5.3 of the paper.

    `logits = Dropout(H) W + b`. With `crf=True` the logits are the emissions of a conditional
    random field, `head.crf`, which takes part in the loss and in decoding, not in the call.

    Args:
        num_outputs: int, number of logits a token.
        hidden_dim: int, width of the backbone.
        dropout: float, rate on the tokens' vectors.
        crf: bool, whether there is a conditional random field.
        initializer_range: float, standard deviation of the initial kernel.
        **kwargs: `name`, `dtype`, `trainable`, see `keras.layers.Layer`.

    Call arguments:
        outputs: dict of a backbone; only `sequence_output` is read.
        training: bool, whether dropout is active.

    Returns:
        float, `(batch, seq_len, num_outputs)`.
    """

    def __init__(
        self, num_outputs, hidden_dim, dropout=0.1, crf=False, initializer_range=0.02, **kwargs
    ):
        super().__init__(**kwargs)
        self.num_outputs = num_outputs
        self.hidden_dim = hidden_dim
        self.initializer_range = initializer_range
        self.dropout = Dropout(dropout, dtype=self.dtype_policy, name="dropout")
        self.dense = keras.layers.Dense(
            num_outputs,
            kernel_initializer=bert_initializer(initializer_range),
            dtype=self.dtype_policy,
            name="dense",
        )
        self.crf = LinearChainCRF(num_outputs, name="crf") if crf else None

    def build(self, input_shape=None):
        self.dense.build((None, None, self.hidden_dim))
        if self.crf is not None:
            self.crf.build()

    def call(self, outputs, training=None):
        return self.dense(self.dropout(outputs["sequence_output"], training=training))

    def get_config(self):
        return {
            **super().get_config(),
            "num_outputs": self.num_outputs,
            "hidden_dim": self.hidden_dim,
            "dropout": self.dropout.rate,
            "crf": self.crf is not None,
            "initializer_range": self.initializer_range,
        }
