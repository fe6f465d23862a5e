"""The heads of pre-training, on one encoder."""

from typing import Unpack

import keras

from bert_keras.heads.masked_tokens import MaskedLMHead
from bert_keras.heads.sequence import SequenceHead
from bert_keras.heads.span_border import SpanBoundaryHead
from bert_keras.layers.encoder import LayerWithSublayers
from bert_keras.types import LayerOptions, Outputs, Tensor


@keras.saving.register_keras_serializable(package="bert_keras")
class PretrainingHead(LayerWithSublayers):
    """The head for masked tokens together with that of another objective.

    Args:
        masked_lm: a `MaskedLMHead`.
        next_sentence: a `SequenceHead` with two outputs, or `None`.
        span_boundary: a `SpanBoundaryHead`, or `None`.
        **kwargs: `name`, `dtype`, `trainable`, see `keras.layers.Layer`.

    Call arguments: those of `MaskedLMHead`.

    Returns:
        A dict with a key for each head: `masked_lm` and `span_boundary`, float32
        `(batch, num_predictions, vocabulary_size)`, and `next_sentence`, float32 `(batch, 2)`.
    """

    arguments = ("masked_lm", "next_sentence", "span_boundary")

    def __init__(
        self,
        masked_lm: MaskedLMHead,
        next_sentence: SequenceHead | None = None,
        span_boundary: SpanBoundaryHead | None = None,
        **kwargs: Unpack[LayerOptions],
    ) -> None:
        super().__init__(**kwargs)
        self.masked_lm = masked_lm
        self.next_sentence = next_sentence
        self.span_boundary = span_boundary

    def call(
        self,
        outputs: Outputs,
        token_embedding: keras.layers.ReversibleEmbedding,
        mask_positions: Tensor | None = None,
    ) -> dict[str, Tensor]:
        tokens = {"token_embedding": token_embedding, "mask_positions": mask_positions}
        logits = {"masked_lm": self.masked_lm(outputs, **tokens)}
        if self.next_sentence is not None:
            logits["next_sentence"] = keras.ops.cast(self.next_sentence(outputs), "float32")
        if self.span_boundary is not None:
            logits["span_boundary"] = self.span_boundary(outputs, **tokens)
        return logits
