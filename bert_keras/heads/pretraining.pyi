import keras

from bert_keras._types import Dtype, Outputs, Tensor
from bert_keras.heads.masked_lm import MaskedLMHead
from bert_keras.heads.next_sentence import NextSentenceHead
from bert_keras.heads.span_boundary import SpanBoundaryHead

NAMES: tuple[str, ...]

class PretrainingHead(keras.layers.Layer):
    masked_lm: MaskedLMHead
    next_sentence: NextSentenceHead | None
    span_boundary: SpanBoundaryHead | None
    def __init__(
        self,
        masked_lm: MaskedLMHead,
        next_sentence: NextSentenceHead | None = None,
        span_boundary: SpanBoundaryHead | None = None,
        *,
        name: str | None = ...,
        dtype: Dtype | None = ...,
        trainable: bool = ...,
    ) -> None: ...
    def __call__(
        self,
        outputs: Outputs,
        token_embedding: keras.layers.ReversibleEmbedding,
        mask_positions: Tensor | None = None,
    ) -> dict[str, Tensor]: ...
