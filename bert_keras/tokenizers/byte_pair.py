"""RoBERTa's tokenizer: bytes, joined pair by pair in the order in which training joined them."""

import keras

from bert_keras.tokenizers.backends import byte_pair_backend
from bert_keras.tokenizers.saved import make
from bert_keras.tokenizers.tokenizer import Tokenizer


@keras.saving.register_keras_serializable(package="bert_keras")
class BytePairTokenizer(Tokenizer):
    """Splits text into the byte-level byte-pair tokens of GPT-2 and RoBERTa.

    Text is split into words with the space before them, their bytes are written as 256 printable
    characters (a space is `Ġ`), and pairs of neighbours are merged, the pair that training merged
    first before all others. Any text can be spelled, nothing is cleaned, and nothing is unknown.
    Pairs of texts are `<s> A </s></s> B </s>`, all of them segment 0.

    Args:
        vocabulary: path of a vocab.json file, or a dict from token to id.
        merges: path of a merges.txt file, or a list of pairs of str or of `"first second"`.
        add_prefix_space: bool, put a space before the first word, which makes it a word like all
            others. `encode_words` does so in any case.
        cls_token: str.
        sep_token: str.
        pad_token: str.
        mask_token: str; takes the space before it with it.
        unknown_token: str; this and the mask may be absent from the vocabulary.
        model_max_length: int or None, the longest sequence of the model.

    Raises:
        ValueError: the vocabulary lacks a special token, or a merge's token.

    Reference: Radford et al. 2019, "Language Models are Unsupervised Multitask Learners", section
    2.2; Liu et al. 2019, https://arxiv.org/abs/1907.11692, section 4.4.
    """

    def __init__(
        self,
        vocabulary,
        merges,
        add_prefix_space=False,
        *,
        cls_token="<s>",
        sep_token="</s>",
        pad_token="<pad>",
        mask_token="<mask>",
        unknown_token="<unk>",
        model_max_length=None,
    ):
        backend, roles = make(byte_pair_backend, locals())
        super().__init__(backend, **roles)
