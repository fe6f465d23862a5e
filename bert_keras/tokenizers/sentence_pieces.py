"""Reading of SentencePiece files, which are protocol buffers."""

import struct

# Field numbers of sentencepiece_model.proto.
_PIECES, _TRAINER, _NORMALIZER = 1, 2, 3
_MODEL_TYPE, _CHARSMAP = 3, 2
_KINDS = {1: "UNIGRAM", 2: "BPE", 3: "WORD", 4: "CHAR"}


def read_sentence_pieces(path):
    """Reads a SentencePiece file of a Unigram model, without the package that wrote it.

    Args:
        path: str or path.

    Returns:
        pieces: list of (str, float), the pieces and their scores by id; `<unk>`, `<s>`, `</s>`
            first.
        charsmap: bytes, how characters are normalized; empty for not at all.

    Raises:
        ValueError: the file is damaged, its model is of another type, or begins otherwise.

    Reference: Kudo 2018, https://arxiv.org/abs/1804.10959.
    """
    with open(path, "rb") as file:
        data = file.read()
    pieces, kind, charsmap = [], 1, b""
    try:
        for field, value in _fields(data):
            part = dict(_fields(value))
            if field == _PIECES:
                score = struct.unpack("<f", part.get(2, b"\0" * 4))[0]
                pieces.append((part[1].decode("utf-8"), score))
            elif field == _TRAINER:
                kind = part.get(_MODEL_TYPE, 1)
            elif field == _NORMALIZER:
                charsmap = part.get(_CHARSMAP, b"")
    except (IndexError, KeyError, ValueError, TypeError, struct.error, AttributeError) as error:
        raise ValueError(
            f"A SentencePiece file must be whole. Received: {path} ({error!r}). Download it again."
        ) from error
    first, advice = [piece for piece, _ in pieces[:3]], "Convert it to a tokenizer.json."
    if kind != 1:
        raise ValueError(
            f"A SentencePiece model must be of type UNIGRAM. Received: {_KINDS.get(kind, kind)} in "
            f"{path}, which cuts words by another rule. {advice}"
        )
    if first != ["<unk>", "<s>", "</s>"]:
        raise ValueError(
            "The pieces of XLM-R and CamemBERT begin with <unk>, <s>, </s>. Received: "
            f"{first} in {path}, whose ids are laid out otherwise. {advice}"
        )
    return pieces, charsmap


def _fields(data):
    """Yields the number and the value of each field of a message: an int, or bytes."""
    place = 0

    def number():
        nonlocal place
        value, shift = 0, 0
        while True:
            byte = data[place]
            place += 1
            value |= (byte & 127) << shift
            if byte < 128:
                return value
            shift += 7

    while place < len(data):
        key = number()
        if key & 7 == 0:
            yield key >> 3, number()
            continue
        size = number() if key & 7 == 2 else {1: 8, 5: 4}[key & 7]
        if size > len(data) - place:
            raise ValueError(f"{size} bytes at {place} of {len(data)}")
        yield key >> 3, data[place : place + size]
        place += size
