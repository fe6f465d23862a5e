"""XLM-R's, CamemBERT's and ALBERT's tokenizer: the most probable split of a text into pieces."""

from typing import Literal, NamedTuple

import keras
import tokenizers
from tokenizers import decoders, models, normalizers, pre_tokenizers, processors

from bert_keras.checks import check_bool, check_choice
from bert_keras.tokenizers.building_blocks import add_special_tokens
from bert_keras.tokenizers.saved import refuse
from bert_keras.tokenizers.sentence_pieces import read_sentence_pieces
from bert_keras.tokenizers.tokenizer import Tokenizer
from bert_keras.types import Path


class _Kind(NamedTuple):
    """How the checkpoints of a family use a SentencePiece file.

    Fields:
        begins: tuple of str, the file's first pieces.
        first: tuple of str, the tokens that replace them.
        last: tuple of str, the tokens after all other pieces.
        single, pair: str, the special tokens around a text and a pair.
    """

    begins: tuple[str, ...] = ("<unk>", "<s>", "</s>")
    first: tuple[str, ...] = ("<s>", "<pad>", "</s>", "<unk>")
    last: tuple[str, ...] = ("<mask>",)
    single: str = "<s> $A </s>"
    pair: str = "<s> $A </s> </s> $B </s>"


_ALBERT = ("<pad>", "<unk>", "[CLS]", "[SEP]", "[MASK]")
_CAMEMBERT = ("<s>NOTUSED", "<pad>", "</s>NOTUSED", "<unk>", "<unk>NOTUSED", "<s>", "</s>")
KINDS = {
    "albert": _Kind(_ALBERT, _ALBERT, (), "[CLS] $A [SEP]", "[CLS] $A [SEP] $B:1 [SEP]:1"),
    "camembert": _Kind(first=_CAMEMBERT),
    "xlm_roberta": _Kind(),
}


@keras.saving.register_keras_serializable(package="bert_keras")
class UnigramTokenizer(Tokenizer, made_of="model"):
    """Splits text into the pieces of a SentencePiece model of the Unigram type.

    Characters are normalized as the file says, spaces become `▁` in front of words, and every word
    is split into the pieces whose probabilities have the largest product. Pairs of texts are
    `<s> A </s></s> B </s>`, all in segment 0.

    ALBERT's tokenizer has BERT's layout and segments. Before the file's normalization it turns two
    backquotes or quotes into `"`, strips accents, and lowercases. Pieces that end with a digit and
    a comma are not used, so that the comma becomes a piece of its own.

    The pieces equal SentencePiece's own except for ties between equally probable splits, and for
    combining marks after characters that they do not join. There the `tokenizers` library, and so
    Hugging Face's tokenizer, differs.

    Args:
        model: path of a SentencePiece file, such as sentencepiece.bpe.model.
        ids: `"xlm_roberta"`, `"camembert"` or `"albert"`, the family whose checkpoints define the
            ids. XLM-R puts `<s> <pad> </s> <unk>` first, CamemBERT seven tokens of its own, some
            unused; both add `<mask>` at the end. ALBERT has the file's ids. `None` means ALBERT if
            the file begins like its own, else XLM-R.
        model_max_length: int or None, the longest sequence of the model.
        lowercase: bool, for ALBERT only: lowercase the text. The default is `True`.
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
        ids: Literal["xlm_roberta", "camembert", "albert"] | None = None,
        model_max_length: int | None = None,
        *,
        lowercase: bool | None = None,
        strip_accents: bool | None = None,
    ) -> None:
        pieces, normalizer = read_sentence_pieces(model)
        begins = tuple(piece for piece, _ in pieces[: len(_ALBERT)])
        if ids is None:
            ids = "albert" if begins == _ALBERT else "xlm_roberta"
        kind = KINDS[check_choice("ids", ids, KINDS)]
        if begins[: len(kind.begins)] != kind.begins:
            raise ValueError(
                f"The pieces of ids={ids!r} begin with {kind.begins}. Received: {begins} in "
                f"{model}, which has other ids. Convert it to a tokenizer.json."
            )
        first = [(token, -100.0 if token == "<unk>NOTUSED" else 0.0) for token in kind.first]
        scores = [*first, *pieces[len(kind.begins) :], *((token, 0.0) for token in kind.last)]
        if ids == "albert":
            scores = [(piece, score - 100 * _ends_a_number(piece)) for piece, score in scores]
            normalizer = _albert_normalizer(lowercase, strip_accents, normalizer)
        elif lowercase or strip_accents:
            refuse(["lowercase" if lowercase else "strip_accents"], f"one of {ids}'s")
        backend = tokenizers.Tokenizer(
            models.Unigram(scores, unk_id=kind.first.index("<unk>"), byte_fallback=False)
        )
        if normalizer is not None:
            backend.normalizer = normalizer
        backend.pre_tokenizer = pre_tokenizers.Sequence(
            [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace(prepend_scheme="always")]
        )
        backend.decoder = decoders.Metaspace(prepend_scheme="always")
        *special, mask_token = *kind.first, *kind.last
        ids_of = [(token, backend.token_to_id(token)) for token in special]
        backend.post_processor = processors.TemplateProcessing(
            single=kind.single, pair=kind.pair, special_tokens=ids_of
        )
        add_special_tokens(backend, special, mask_token)
        super().__init__(backend, model_max_length=model_max_length)

    @classmethod
    def _settings_for(cls, name):
        return {"ids": next((ids for ids in KINDS if ids in name), None)}


def _ends_a_number(piece):
    """Whether a piece ends with a digit and a comma."""
    return len(piece) > 1 and piece[-1] == "," and piece[-2].isdigit()


def _albert_normalizer(lowercase, strip_accents, of_file):
    parts = [normalizers.Replace(quotes, '"') for quotes in ("``", "''")]
    if strip_accents is None or check_bool("strip_accents", strip_accents):
        parts += [normalizers.NFKD(), normalizers.StripAccents()]
    if lowercase is None or check_bool("lowercase", lowercase):
        parts.append(normalizers.Lowercase())
    return normalizers.Sequence([*parts, *([] if of_file is None else [of_file])])
