"""Reading of SentencePiece files, which are protocol buffers."""

import struct

from tokenizers import normalizers

from bert_keras.tokenizers.protocol_buffers import fields

# Field numbers of sentencepiece_model.proto.
_PIECES, _TRAINER, _NORMALIZER = 1, 2, 3
_SCORE, _MODEL_TYPE, _CHARSMAP = 2, (_TRAINER, 3), (_NORMALIZER, 2)
# Settings that the `tokenizers` library cannot express, and the values they must have.
_FIXED = {
    (_TRAINER, 24): ("treat_whitespace_as_suffix", 0),
    (_TRAINER, 35): ("byte_fallback", 0),
    (_NORMALIZER, 3): ("add_dummy_prefix", 1),
    (_NORMALIZER, 4): ("remove_extra_whitespaces", 1),
    (_NORMALIZER, 5): ("escape_whitespaces", 1),
}
_KINDS = {1: "UNIGRAM", 2: "BPE", 3: "WORD", 4: "CHAR"}


def read_sentence_pieces(path):
    """Reads a SentencePiece file of a Unigram model, without the package that wrote it.

    Args:
        path: str or path.

    Returns:
        pieces: list of (str, float), the pieces and their scores by id.
        normalizer: how characters are normalized, tried on all of them; None for not at all.

    Raises:
        ValueError: the file is damaged, its model is of another type, or has settings that are not
            supported.

    Reference: Kudo 2018, https://arxiv.org/abs/1804.10959.
    """
    with open(path, "rb") as file:
        data = file.read()
    pieces, said = [], {}
    try:
        for field, value in fields(data):
            part = dict(fields(value))
            if field == _PIECES:
                score = struct.unpack("<f", part.get(_SCORE, 0).to_bytes(4, "little"))[0]
                pieces.append((part[1].decode("utf-8"), score))
            else:
                said |= {(field, number): value for number, value in part.items()}
        normalizer = normalizers.Precompiled(said[_CHARSMAP]) if said.get(_CHARSMAP) else None
        if normalizer is not None:
            normalizer.normalize_str("".join(map(chr, range(0xD800))))
    except KeyboardInterrupt:
        raise
    # The library panics at a damaged table of characters, which is no `Exception`.
    except BaseException as error:
        raise ValueError(
            f"A SentencePiece file must be whole. Received: {path} ({error!r}). Download it again."
        ) from error
    kind, advice = said.get(_MODEL_TYPE, 1), "Convert it to a tokenizer.json."
    if kind != 1:
        raise ValueError(
            f"A SentencePiece model must be of type UNIGRAM. Received: {_KINDS.get(kind, kind)} in "
            f"{path}, which cuts words by another rule. {advice}"
        )
    for key, (name, value) in _FIXED.items():
        if said.get(key, value) != value:
            raise ValueError(
                f"A SentencePiece model must have {name}={bool(value)}. Received: {name}="
                f"{bool(said[key])} in {path}, which would cut otherwise. {advice}"
            )
    return pieces, normalizer
