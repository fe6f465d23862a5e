"""BERT's tokenizer: clean, split at spaces and punctuation, then longest match first."""

from collections.abc import Sequence

import keras
import tokenizers
from tokenizers import models, pre_tokenizers, processors

from bert_keras.checks import check_int
from bert_keras.tokenizers.components import add_special_tokens, bert_normalizer
from bert_keras.tokenizers.text_encoder import ROLES
from bert_keras.tokenizers.tokenizer import Tokenizer
from bert_keras.tokenizers.untrusted import LONGEST_WORD
from bert_keras.tokenizers.vocabulary import numbered, require_tokens
from bert_keras.types import Path


@keras.saving.register_keras_serializable(package="bert_keras")
class WordPieceTokenizer(Tokenizer):
    """Splits text into the WordPiece tokens of a BERT vocabulary.

    Control characters are dropped, every CJK character becomes a word, and text is optionally
    lowercased and stripped of accents. Then it is split at white space and around punctuation.
    Every word is split from left to right into the longest pieces in the vocabulary (`"unaffable"`
    gives `un ##aff ##able`); a word that cannot be split becomes `[UNK]`.

    The pieces equal those of Google's tokenization.py for every character of Unicode, except for
    four cases in which the `tokenizers` library, and so Hugging Face's tokenizer, differs: capital
    sigma at the end of a word becomes `σ` instead of `ς`; private use characters are dropped; the
    rare Chinese characters U+2B820 to U+2B91F do not become words; and characters that are newer
    than the library's Unicode tables (version 8) are neither punctuation nor accents.

    Args:
        vocabulary: path of a vocab.txt file, or a list of str where the index is the id.
        lowercase: bool, lowercase the text.
        strip_accents: bool, or None for the value of `lowercase`, which is BERT's rule.
        split_chinese: bool, put spaces around CJK characters.
        unknown_token: str. Roles that are `None` have BERT's names, `[UNK]`, `[CLS]`, `[SEP]`,
            `[PAD]` and `[MASK]`, and in MPNet's vocabulary, which begins with `<s>`, `<pad>`,
            `</s>`, these names, `<mask>` and `[UNK]`.
        cls_token: str.
        sep_token: str. In MPNet's vocabulary it is repeated between the texts of a pair.
        pad_token: str.
        mask_token: str; may be absent from the vocabulary as long as nobody asks for its id.
        added_tokens: list of str, more tokens of the vocabulary that are never split in text, such
            as `[E1]` for relation extraction.
        special_tokens_in_text: bool, whether `[MASK]`, `[SEP]` and the others are special tokens
            in text, as in BERT's reference. False reads them as ordinary characters.
        max_characters_per_word: int, at most 1,000; longer words become `unknown_token`. Google's
            code has 200, Hugging Face's 100.
        model_max_length: int or None, the longest sequence that the checkpoint takes. It is kept
            for preprocessing and not applied here.

    Raises:
        TypeError: an entry of the vocabulary is not a str.
        ValueError: the vocabulary lacks a special token, or an entry contains a line end.

    Reference: Devlin et al. 2019, https://arxiv.org/abs/1810.04805; Wu et al. 2016,
    https://arxiv.org/abs/1609.08144, section 4.1.
    """

    def __init__(
        self,
        vocabulary: Path | Sequence[str],
        lowercase: bool = True,
        strip_accents: bool | None = None,
        split_chinese: bool = True,
        unknown_token: str | None = None,
        cls_token: str | None = None,
        sep_token: str | None = None,
        pad_token: str | None = None,
        mask_token: str | None = None,
        added_tokens: Sequence[str] = (),
        special_tokens_in_text: bool = True,
        max_characters_per_word: int = 100,
        model_max_length: int | None = None,
    ) -> None:
        ids = numbered(vocabulary)
        is_mpnet = tuple(ids)[:3] == ("<s>", "<pad>", "</s>")
        usual = {role: names[is_mpnet] for role, names in ROLES.items()}
        usual["unknown_token"] = "[UNK]"
        roles = {"unknown_token": unknown_token, "cls_token": cls_token, "sep_token": sep_token}
        roles |= {"pad_token": pad_token, "mask_token": mask_token}
        roles = {role: usual[role] if token is None else token for role, token in roles.items()}
        unknown_token, cls_token, sep_token, _, mask_token = roles.values()
        required = {role: token for role, token in roles.items() if role != "mask_token"}
        require_tokens(
            ids, **required, **{f"added_tokens[{i}]": t for i, t in enumerate(added_tokens)}
        )
        longest = check_int("max_characters_per_word", max_characters_per_word, 1, LONGEST_WORD)
        backend = tokenizers.Tokenizer(
            models.WordPiece(ids, unk_token=unknown_token, max_input_chars_per_word=longest)
        )
        backend.normalizer = bert_normalizer(lowercase, strip_accents, split_chinese)
        backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        never_split = [*added_tokens, *(required.values() if special_tokens_in_text else ())]
        if is_mpnet and sep_token == "</s>":
            cls, sep = ((token, ids[token]) for token in (cls_token, sep_token))
            backend.post_processor = processors.RobertaProcessing(sep, cls, add_prefix_space=False)
            # The mask includes the space before it.
            add_special_tokens(backend, never_split, mask_token if special_tokens_in_text else "")
        else:
            never_split += [mask_token] if special_tokens_in_text and mask_token in ids else []
            backend.add_special_tokens(never_split)
        super().__init__(backend, model_max_length=model_max_length, **roles)
