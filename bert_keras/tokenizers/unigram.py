"""The tokenizer of XLM-R, CamemBERT, ALBERT and DeBERTa: the most probable split into pieces."""

from typing import Literal, NamedTuple

import keras
import tokenizers
from tokenizers import decoders, models, normalizers, pre_tokenizers, processors

from bert_keras.checks import check_bool, check_choice
from bert_keras.engine.atomic_files import reading
from bert_keras.tokenizers.components import add_special_tokens
from bert_keras.tokenizers.sentencepiece_model import read_sentence_pieces
from bert_keras.tokenizers.tokenizer import HIDDEN, Tokenizer
from bert_keras.tokenizers.tokenizer_files import refuse
from bert_keras.types import Path


class _Kind(NamedTuple):
    """How the checkpoints of a family use a SentencePiece file.

    Attributes:
        begins: tuple of str, the file's first pieces.
        first: tuple of str, the tokens that replace them.
        last: tuple of str, the tokens after all other pieces.
        single, pair: str, the special tokens around a text and a pair.
        unknown: str, the unknown token.
        options: tuple of str, the arguments that only some kinds take.
    """

    begins: tuple[str, ...] = ("<unk>", "<s>", "</s>")
    first: tuple[str, ...] = ("<s>", "<pad>", "</s>", "<unk>")
    last: tuple[str, ...] = ("<mask>",)
    single: str = "<s> $A </s>"
    pair: str = "<s> $A </s> </s> $B </s>"
    unknown: str = "<unk>"
    options: tuple[str, ...] = ()


_BERT = ("[CLS] $A [SEP]", "[CLS] $A [SEP] $B:1 [SEP]:1")
_ALBERT = ("<pad>", "<unk>", "[CLS]", "[SEP]", "[MASK]")
_DEBERTA = ("[PAD]", "[CLS]", "[SEP]", "[UNK]")
_CAMEMBERT = ("<s>NOTUSED", "<pad>", "</s>NOTUSED", "<unk>", "<unk>NOTUSED", "<s>", "</s>")
KINDS = {
    "albert": _Kind(_ALBERT, _ALBERT, (), *_BERT, "<unk>", ("lowercase", "strip_accents")),
    "camembert": _Kind(first=_CAMEMBERT),
    "deberta": _Kind(_DEBERTA, _DEBERTA, ("[MASK]",), *_BERT, "[UNK]", ("lowercase",)),
    "xlm_roberta": _Kind(),
}


@keras.saving.register_keras_serializable(package="bert_keras")
class UnigramTokenizer(Tokenizer):
    """Splits text into the pieces of a SentencePiece model of the Unigram type.

    Characters are normalized as the file says, spaces become `▁` in front of words, and every word
    is split into the pieces whose probabilities have the largest product. Pairs of texts are
    `<s> A </s></s> B </s>`, all in segment 0.

    ALBERT's tokenizer has BERT's layout and segments. Before the file's normalization it turns two
    backquotes or quotes into `"`, strips accents, and lowercases. Pieces that end with a digit and
    a comma are not used, so that the comma becomes a piece of its own.

    DeBERTa's (v2 and v3) has BERT's layout and segments too. It adds `[MASK]` at the end, and
    spells no bytes, even if the file could. Characters are normalized as the file says, as in
    Microsoft's code and transformers 4; transformers 5 only composes them (NFC).

    Symbols that the file defines are never split. Its control symbols are
    special tokens, as in transformers. Unused pieces and bytes are found in no text.

    The pieces equal SentencePiece's own except for ties between equally probable splits, and for
    marks after some rare letters, such as those that are newer than Python's Unicode. Hugging
    Face's tokenizers lose marks after a letter, do not join jamo to syllables, and take other white
    space than SentencePiece's for spaces.

    Args:
        model: path of a SentencePiece file, such as sentencepiece.bpe.model.
        ids: `"xlm_roberta"`, `"camembert"`, `"albert"` or `"deberta"`, the family whose checkpoints
            define the ids. XLM-R puts `<s> <pad> </s> <unk>` first, CamemBERT seven tokens of its
            own, some unused; both add `<mask>` at the end. ALBERT and DeBERTa have the file's ids.
            `None` means ALBERT or DeBERTa if the file begins like theirs, else XLM-R.
        model_max_length: int or None, the longest sequence of the model.
        lowercase: bool, for ALBERT and DeBERTa only: lowercase the text. The default is `True` for
            ALBERT, `False` for DeBERTa.
        strip_accents: bool, for ALBERT only: strip accents. The default is `True`.

    Raises:
        ValueError: the file is damaged, its model is of another type or has unsupported settings,
            or its first pieces are not those of `ids`.

    Reference: Kudo 2018, https://arxiv.org/abs/1804.10959; Conneau et al. 2020,
    https://arxiv.org/abs/1911.02116; `preprocess_text` and `encode_pieces` in
    google-research/albert, `tokenization.py`.
    """

    def __init__(
        self,
        model: Path,
        ids: Literal["xlm_roberta", "camembert", "albert", "deberta"] | None = None,
        model_max_length: int | None = None,
        *,
        lowercase: bool | None = None,
        strip_accents: bool | None = None,
    ) -> None:
        pieces, control, not_in_text, normalizer = read_sentence_pieces(model, _DEBERTA)
        begins = tuple(piece for piece, _ in pieces[: len(_ALBERT)])
        if ids is None:
            named = {_ALBERT: "albert", _DEBERTA: "deberta"}
            ids = named.get(begins, named.get(begins[: len(_DEBERTA)], "xlm_roberta"))
        kind = KINDS[check_choice("ids", ids, KINDS)]
        if begins[: len(kind.begins)] != kind.begins:
            raise ValueError(
                f"The pieces of ids={ids!r} begin with {kind.begins}. Received: {begins} in "
                f"{model}, which has other ids. Convert it to a tokenizer.json."
            )
        first = [(token, -100.0 if token == "<unk>NOTUSED" else 0.0) for token in kind.first]
        scores = [*first, *pieces[len(kind.begins) :], *((token, 0.0) for token in kind.last)]
        options = {"lowercase": lowercase, "strip_accents": strip_accents}
        refuse([o for o in options if options[o] and o not in kind.options], f"one of {ids}'s")
        # Pieces of several words are found only in texts that are not split.
        splits = not any("▁" in piece[1:] for piece, _ in pieces if piece not in not_in_text)
        spaces = pre_tokenizers.Split(tokenizers.Regex(" (?!▁)"), "removed")
        words, cleaning = [spaces] * splits, []
        if is_albert := ids == "albert":
            words = [pre_tokenizers.WhitespaceSplit()] * splits
            scores = [(piece, score - 100 * _ends_a_number(piece)) for piece, score in scores]
            cleaning = [normalizers.Replace(quotes, '"') for quotes in ("``", "''")]
        elif ids == "deberta":
            words = []
        if is_albert if strip_accents is None else check_bool("strip_accents", strip_accents):
            cleaning += [normalizers.NFKD(), normalizers.StripAccents()]
        if is_albert if lowercase is None else check_bool("lowercase", lowercase):
            cleaning.append(normalizers.Lowercase())
        roles = {*kind.first, *kind.last}
        scores = [
            (HIDDEN + piece if piece in not_in_text - roles else piece, score)
            for piece, score in scores
        ]
        backend = tokenizers.Tokenizer(
            models.Unigram(scores, unk_id=kind.first.index(kind.unknown), byte_fallback=False)
        )
        backend.normalizer = normalizers.Sequence([*cleaning, normalizer])
        metaspace = pre_tokenizers.Metaspace(prepend_scheme="always", split=splits)
        backend.pre_tokenizer = pre_tokenizers.Sequence([*words, metaspace])
        backend.decoder = decoders.Metaspace(prepend_scheme="always")
        *special, mask_token = *kind.first, *kind.last
        ids_of = [(token, backend.token_to_id(token)) for token in special]
        backend.post_processor = processors.TemplateProcessing(
            single=kind.single, pair=kind.pair, special_tokens=ids_of
        )
        special += [token for token in control if token != mask_token]
        if ids == "deberta":  # Its mask does not include the space before it.
            backend.add_special_tokens([*special, mask_token])
        else:
            add_special_tokens(backend, special, mask_token)
        with reading(model):  # A damaged table of characters makes the library panic.
            super().__init__(backend, model_max_length=model_max_length)


def _ends_a_number(piece):
    """Whether a piece ends with a digit and a comma."""
    return len(piece) > 1 and piece[-1] == "," and piece[-2].isdigit()
