"""BERT's tokenizer: clean, split at spaces and punctuation, then longest match first."""

from collections.abc import Sequence

import keras
import tokenizers
from tokenizers import decoders, models, pre_tokenizers

from bert_keras.checks import check_int
from bert_keras.tokenizers.building_blocks import bert_normalizer, bert_template, require
from bert_keras.tokenizers.harmless import LONGEST_WORD
from bert_keras.tokenizers.saved import arguments_of
from bert_keras.tokenizers.tokenizer import Tokenizer
from bert_keras.tokenizers.vocabulary import numbered
from bert_keras.types import Path


@keras.saving.register_keras_serializable(package="bert_keras")
class WordPieceTokenizer(Tokenizer, made_of="vocab.txt"):
    """Splits text into the WordPiece tokens of a BERT vocabulary.

    Control characters are dropped, every CJK character becomes a word of its own, text is
    lowercased and stripped of accents if asked, then split at white space and around each
    punctuation sign. Every word is cut into the longest pieces that the vocabulary holds, from left
    to right (`"unaffable"` gives `un ##aff ##able`); a word that cannot be cut becomes `[UNK]`.

    The pieces are those of Google's tokenization.py, tried with every character of Unicode, but for
    four corners where the library, and with it Hugging Face's tokenizer, goes its own way: a
    capital sigma at the end of a word becomes `σ` where Python writes `ς`; private use characters
    are dropped; U+2B820 to U+2B91F, rare Chinese characters, are not set apart; and characters that
    entered Unicode after the library's tables (version 8) are neither punctuation nor accents.

    Args:
        vocabulary: path of a vocab.txt file, or a list of str where the index is the id.
        lowercase: bool, lowercase the text.
        strip_accents: bool, or None for "as `lowercase` says", which is BERT's rule.
        split_chinese: bool, put spaces around CJK characters.
        unknown_token: str.
        cls_token: str.
        sep_token: str.
        pad_token: str.
        mask_token: str; may be absent from the vocabulary as long as nobody asks for its id.
        added_tokens: list of str, further tokens of the vocabulary that are never split in text,
            such as the `[E1]` of relation extraction.
        special_tokens_in_text: bool, take `[MASK]`, `[SEP]` and the others in text for the tokens
            they name, as BERT's reference does. False reads them as ordinary characters.
        max_characters_per_word: int, longer words become `unknown_token`. Google's code says 200,
            Hugging Face's 100; at most 1,000.
        model_max_length: int or None, the longest sequence the checkpoint takes; kept for
            preprocessing, not applied here.

    Raises:
        TypeError: an entry of the vocabulary is not a str.
        ValueError: the vocabulary lacks a special token, or an entry holds a line end.

    Reference: Devlin et al. 2019, https://arxiv.org/abs/1810.04805; Wu et al. 2016,
    https://arxiv.org/abs/1609.08144, section 4.1.
    """

    def __init__(
        self,
        vocabulary: Path | Sequence[str],
        lowercase: bool = True,
        strip_accents: bool | None = None,
        split_chinese: bool = True,
        unknown_token: str = "[UNK]",
        cls_token: str = "[CLS]",
        sep_token: str = "[SEP]",
        pad_token: str = "[PAD]",
        mask_token: str = "[MASK]",
        added_tokens: Sequence[str] = (),
        special_tokens_in_text: bool = True,
        max_characters_per_word: int = 100,
        model_max_length: int | None = None,
    ) -> None:
        ids, arguments = numbered(vocabulary), arguments_of(locals())
        required = {f"added_tokens[{i}]": token for i, token in enumerate(added_tokens)}
        required |= {"unknown_token": unknown_token, "cls_token": cls_token, "sep_token": sep_token}
        require(ids, pad_token=pad_token, **required)
        longest = check_int("max_characters_per_word", max_characters_per_word, 1, LONGEST_WORD)
        backend = tokenizers.Tokenizer(
            models.WordPiece(ids, unk_token=unknown_token, max_input_chars_per_word=longest)
        )
        backend.normalizer = bert_normalizer(lowercase, strip_accents, split_chinese)
        backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        backend.decoder = decoders.WordPiece(prefix="##")
        backend.post_processor = bert_template(ids, cls_token, sep_token)
        in_text = [pad_token, unknown_token, cls_token, sep_token, mask_token]
        never_split = [*added_tokens, *(in_text if special_tokens_in_text else ())]
        backend.add_special_tokens([token for token in never_split if token in ids])
        super().__init__(backend, **arguments)
