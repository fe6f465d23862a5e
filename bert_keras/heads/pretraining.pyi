import keras

from bert_keras._types import Dtype, Outputs, Tensor
from bert_keras.heads.masked_lm import MaskedLMHead
from bert_keras.heads.next_sentence import NextSentenceHead

class PretrainingHead(keras.layers.Layer):
    masked_lm: MaskedLMHead
    next_sentence: NextSentenceHead
    def __init__(
        self,
        masked_lm: MaskedLMHead,
        next_sentence: NextSentenceHead,
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
