"""XLM-R's and CamemBERT's tokenizer: the most probable way to cut a text into pieces."""

import keras

from bert_keras.tokenizers.backends import unigram_backend
from bert_keras.tokenizers.saved import make
from bert_keras.tokenizers.tokenizer import Tokenizer


@keras.saving.register_keras_serializable(package="bert_keras")
class UnigramTokenizer(Tokenizer):
    """Splits text into the pieces of a SentencePiece model of the Unigram type.

    Characters are normalized as the file says, spaces become `▁` in front of words, and every word
    is cut into the pieces whose probabilities have the largest product. Pairs of texts are
    `<s> A </s></s> B </s>`, all of them segment 0.

    The pieces are SentencePiece's own but for ties between equally probable cuts and for combining
    marks behind characters that they do not join, where the library, and with it Hugging Face's
    tokenizer, goes its own way.

    Args:
        model: path of a SentencePiece file, such as sentencepiece.bpe.model.
        ids: `"xlm_roberta"` or `"camembert"`, which ids the file's pieces have in the checkpoints:
            XLM-R puts `<s> <pad> </s> <unk>` first, CamemBERT five of its own, some not used; both
            add `<mask>` as the last.
        model_max_length: int or None, the longest sequence of the model.

    Raises:
        ValueError: the file is damaged, or its model is of another type.

    Reference: Kudo 2018, https://arxiv.org/abs/1804.10959; Conneau et al. 2020,
    https://arxiv.org/abs/1911.02116.
    """

    def __init__(self, model, ids="xlm_roberta", model_max_length=None):
        backend, roles = make(unigram_backend, locals())
        super().__init__(backend, **roles)
