"""The head for one prediction per token."""

from typing import Unpack

import keras

from bert_keras.heads.head import Head
from bert_keras.layers.crf import LinearChainCRF
from bert_keras.types import Activation, LayerOptions, Outputs, Tensor


@keras.saving.register_keras_serializable(package="bert_keras")
class TokenHead(Head):
    """Dropout and a dense layer on each token's vector, section 5.3 of the paper.

    `logits = Dropout(H) W + b`, with a hidden layer before the dropout in families that have one.
    With `crf=True` the logits are the emissions of a conditional random field, `head.crf`, which is
    used in the loss and in decoding, but not in the call.

    Args:
        num_outputs: int, number of logits per token.
        hidden_dim: int, width of the backbone.
        dropout: float, rate on the tokens' vectors.
        crf: bool, whether there is a conditional random field.
        initializer_range: float, standard deviation of the initial kernels.
        hidden_activation, norm, layer_norm_epsilon: see `SequenceHead`; `None` for no hidden layer.
        **kwargs: `name`, `dtype`, `trainable`, see `keras.layers.Layer`.

    Call arguments:
        outputs: dict of a backbone; only `sequence_output` is read.
        training: bool, whether dropout is active.

    Returns:
        float, `(batch, seq_len, num_outputs)`.
    """

    def __init__(
        self,
        num_outputs: int,
        hidden_dim: int,
        dropout: float = 0.1,
        crf: bool = False,
        initializer_range: float = 0.02,
        hidden_activation: Activation | None = None,
        norm: bool = False,
        layer_norm_epsilon: float = 1e-12,
        **kwargs: Unpack[LayerOptions],
    ) -> None:
        super().__init__(**kwargs)
        self.add_hidden()
        self.drop = self.make_dropout(dropout)
        self.dense = self.make_dense(hidden_dim, num_outputs)
        self.output_shape = (None, None, num_outputs)
        self.crf = self.make(LinearChainCRF, num_outputs, name="crf") if crf else None

    def call(self, outputs: Outputs, training: bool | None = None) -> Tensor:
        vectors = self.through_hidden(outputs["sequence_output"])
        return self.dense(self.drop(vectors, training=training))

    def get_config(self):
        return {**super().get_config(), "crf": self.crf is not None}
