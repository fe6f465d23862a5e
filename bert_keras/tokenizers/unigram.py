"""XLM-R's and CamemBERT's tokenizer: the most probable way to cut a text into pieces."""

import keras
import tokenizers
from tokenizers import decoders, models, pre_tokenizers, processors

from bert_keras.checks import check_choice
from bert_keras.tokenizers.parts import add_special_tokens
from bert_keras.tokenizers.sentence_pieces import read_sentence_pieces
from bert_keras.tokenizers.tokenizer import Tokenizer

# What stands before the pieces of a file, and how many of its own it replaces.
IDS = {
    "camembert": (["<s>NOTUSED", "<pad>", "</s>NOTUSED", "<unk>", "<unk>NOTUSED"], 1),
    "xlm_roberta": (["<s>", "<pad>", "</s>", "<unk>"], 3),
}


@keras.saving.register_keras_serializable(package="bert_keras")
class UnigramTokenizer(Tokenizer, made_of="model"):
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
        ValueError: the file is damaged, its model is of another type, or has settings that this
            tokenizer has not.

    Reference: Kudo 2018, https://arxiv.org/abs/1804.10959; Conneau et al. 2020,
    https://arxiv.org/abs/1911.02116.
    """

    def __init__(self, model, ids="xlm_roberta", model_max_length=None):
        pieces, normalizer = read_sentence_pieces(model)
        first, num_replaced = IDS[check_choice("ids", ids, IDS)]
        scores = [(token, -100.0 if token == "<unk>NOTUSED" else 0.0) for token in first]
        scores += [*pieces[num_replaced:], ("<mask>", 0.0)]
        backend = tokenizers.Tokenizer(models.Unigram(scores, unk_id=3, byte_fallback=False))
        if normalizer is not None:
            backend.normalizer = normalizer
        backend.pre_tokenizer = pre_tokenizers.Sequence(
            [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace(prepend_scheme="always")]
        )
        backend.decoder = decoders.Metaspace(prepend_scheme="always")
        backend.post_processor = processors.TemplateProcessing(
            single="<s> $A </s>",
            pair="<s> $A </s> </s> $B </s>",
            special_tokens=[(token, backend.token_to_id(token)) for token in ("<s>", "</s>")],
        )
        add_special_tokens(backend, ["<s>", "</s>", *first], "<mask>")
        super().__init__(backend, model_max_length=model_max_length)

    @classmethod
    def _settings_for(cls, name):
        return {"ids": next((ids for ids in IDS if ids in name), "xlm_roberta")}
