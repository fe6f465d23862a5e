"""Reads SentencePiece files, which are protocol buffers."""

import struct
import unicodedata

from tokenizers import normalizers

from bert_keras.tokenizers.protocol_buffers import fields

# Field numbers of sentencepiece_model.proto.
_PIECES, _TRAINER, _NORMALIZER = 1, 2, 3
_SCORE, _TYPE, _MODEL_TYPE, _CHARSMAP = 2, 3, (_TRAINER, 3), (_NORMALIZER, 2)
# Types of pieces.
_ORDINARY, _CONTROL, _USER_DEFINED, _UNUSED, _BYTE = 1, 3, 4, 5, 6
# Settings that the `tokenizers` library does not support -> the values they must have.
_FIXED = {
    (_TRAINER, 24): ("treat_whitespace_as_suffix", 0),
    (_TRAINER, 35): ("byte_fallback", 0),
    (_NORMALIZER, 3): ("add_dummy_prefix", 1),
    (_NORMALIZER, 4): ("remove_extra_whitespaces", 1),
    (_NORMALIZER, 5): ("escape_whitespaces", 1),
}
# Kana with a voice mark -> the character that tables of NFKC join them to. The `tokenizers` library
# looks up each character alone where several have more than five bytes together.
VOICED = {
    chr(kana) + mark: joined
    for kana in range(0x3041, 0x3100)
    for mark in "\u3099\u309a"
    if len(joined := unicodedata.normalize("NFC", chr(kana) + mark)) == 1
}
_KINDS = {1: "UNIGRAM", 2: "BPE", 3: "WORD", 4: "CHAR"}


def read_sentence_pieces(path, without_bytes=None):
    """Reads a SentencePiece file of a Unigram model, without the package that wrote it.

    Args:
        path: str or path.
        without_bytes: tuple of str, or None. The `byte_fallback` of a file that begins with these
            pieces is ignored.

    Returns:
        pieces: list of (str, float), the pieces and their scores by id.
        control: list of str, the pieces that are special tokens.
        not_in_text: set of str, the pieces that are found in no text: bytes and unused ones.
        user_defined: list of str, the pieces that are never split in text. Their scores are those
            with which SentencePiece prefers them to all others.
        normalizer: the normalizer of characters, tested on all of them, or None.

    Raises:
        ValueError: the file is damaged, its model is of another type, or has settings that are not
            supported.

    Reference: Kudo 2018, https://arxiv.org/abs/1804.10959.
    """
    with open(path, "rb") as file:
        data = file.read()
    pieces, types, settings = [], {}, {}
    try:
        for field, value in fields(data):
            part = dict(fields(value))
            if field == _PIECES:
                score = struct.unpack("<f", part.get(_SCORE, 0).to_bytes(4, "little"))[0]
                pieces.append((part[1].decode("utf-8"), score))
                kind = part.get(_TYPE, _ORDINARY)
                types.setdefault(kind, []).append(pieces[-1][0])
            else:
                settings |= {(field, number): value for number, value in part.items()}
        table = settings.get(_CHARSMAP)
        normalizer = normalizers.Precompiled(table) if table else None
        if normalizer is not None:
            normalizer.normalize_str("".join(map(chr, range(0xD800))))
            if normalizer.normalize_str("\uff9e") == "\u3099":  # NFKC.
                joins = [normalizers.Replace(*pair) for pair in VOICED.items()]
                normalizer = normalizers.Sequence([normalizer, *joins])
    except KeyboardInterrupt:
        raise
    # On a damaged table of characters the library panics, which is not an `Exception`.
    except BaseException as error:
        raise ValueError(
            f"A SentencePiece file must be whole. Received: {path} ({error!r}). Download it again."
        ) from error
    kind = settings.get(_MODEL_TYPE, 1)
    problems = [] if kind == 1 else [("be of type UNIGRAM", _KINDS.get(kind, kind))]
    first = tuple(piece for piece, _ in pieces[: len(without_bytes or ())])
    for key, (name, value) in _FIXED.items():
        is_ignored = name == "byte_fallback" and first == without_bytes
        if (found := settings.get(key, value)) != value and not is_ignored:
            problems.append((f"have {name}={bool(value)}", f"{name}={bool(found)}"))
    for rule, found in problems[:1]:
        raise ValueError(
            f"A SentencePiece model must {rule}. Received: {found} in {path}, which splits text by "
            "other rules. Convert it to a tokenizer.json."
        )
    control, user_defined = types.get(_CONTROL, []), types.get(_USER_DEFINED, [])
    not_in_text = {*types.get(_UNUSED, ()), *types.get(_BYTE, ())}
    # Above all ordinary pieces, whose scores are logarithms; measured with sentencepiece 0.2.3.
    scores = {piece: 0.1 * len(piece.encode()) - 0.1 for piece in user_defined}
    pieces = [(piece, scores.get(piece, score)) for piece, score in pieces]
    return pieces, control, not_in_text, user_defined, normalizer
