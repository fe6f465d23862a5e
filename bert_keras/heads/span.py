"""The head for a span of text: where it starts and where it ends."""

from typing import Unpack

import keras
from keras import ops

from bert_keras.checks import check_bool
from bert_keras.heads.head import Head
from bert_keras.types import Activation, LayerOptions, Outputs, Tensor

# Far below every logit, but finite, so that the difference of two of them is 0, not NaN.
MASKED_LOGIT = -1e9


@keras.saving.register_keras_serializable(package="bert_keras")
class SpanHead(Head):
    """Two scores per token: how likely a span starts there, and how likely it ends there.

    `start, end = H W + b`, a dense layer with two outputs, section 4.2 of the paper, where its two
    columns are the vectors `S` and `E`. There is no activation and, as in Google's run_squad.py, no
    dropout by default. Difference from the paper: padding gets the logit -1e9, so that a softmax
    gives it no probability. With `mask_padding=False` padding takes part, as in the original.

    Args:
        hidden_dim: int, width of the backbone.
        initializer_range: float, standard deviation of the initial kernel.
        dropout: float, rate on the tokens' vectors.
        mask_padding: bool, whether padding gets no probability in a softmax over the logits.
        hidden_activation, norm, layer_norm_epsilon: see `SequenceHead`; `None` for no hidden layer.
        **kwargs: `name`, `dtype`, `trainable`, see `keras.layers.Layer`.

    Call arguments:
        outputs: dict of a backbone; only `sequence_output` is read.
        padding_mask: `(batch, seq_len)`, 1 or `True` for a real token, or `None`.
        training: bool, whether dropout is active.

    Returns:
        Two float32 tensors `(batch, seq_len)`: start logits and end logits.

    Reference:
        [Devlin et al., 2019](https://arxiv.org/abs/1810.04805), section 4.2.
    """

    def __init__(
        self,
        hidden_dim: int,
        initializer_range: float = 0.02,
        dropout: float = 0.0,
        mask_padding: bool = True,
        hidden_activation: Activation | None = None,
        norm: bool = False,
        layer_norm_epsilon: float = 1e-12,
        **kwargs: Unpack[LayerOptions],
    ) -> None:
        super().__init__(**kwargs)
        check_bool("mask_padding", mask_padding)
        self.add_hidden()
        self.drop = self.make_dropout(dropout)
        self.dense = self.make_dense(hidden_dim, 2)

    def call(
        self, outputs: Outputs, padding_mask: Tensor | None = None, training: bool | None = None
    ) -> tuple[Tensor, Tensor]:
        vectors = self.through_hidden(outputs["sequence_output"])
        vectors = self.drop(vectors, training=training)
        # In float16 the logit of padding would overflow.
        logits = ops.cast(self.dense(vectors), "float32")
        if padding_mask is not None and self.mask_padding:
            is_token = ops.cast(ops.expand_dims(padding_mask, 2), "bool")
            logits = ops.where(is_token, logits, MASKED_LOGIT)
        return logits[:, :, 0], logits[:, :, 1]
