"""Reads SentencePiece files, which are protocol buffers."""

import functools
import struct
from unicodedata import combining, normalize

from tokenizers import Regex, normalizers

from bert_keras.engine.atomic_files import reading
from bert_keras.tokenizers.protocol_buffers import fields

# Field numbers of sentencepiece_model.proto.
_PIECES, _TRAINER, _NORMALIZER = 1, 2, 3
_SCORE, _TYPE, _MODEL_TYPE, _CHARSMAP = 2, 3, (_TRAINER, 3), (_NORMALIZER, 2)
_RULES_NAME = (_NORMALIZER, 1)
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
# Stand between characters that must not be joined, and that must not be looked up together. Unicode
# assigns nothing to them, and no character forms a cluster with them.
_BREAK, _ALONE = "\ufff0\ufff1"
# Characters that form clusters with the one before them.
_FOLLOWERS = r"\p{M}\x{200d}\x{1160}-\x{11ff}\x{d7b0}-\x{d7fb}\x{1f3fb}-\x{1f3ff}\x{ff9e}\x{ff9f}"
_KINDS = {1: "UNIGRAM", 2: "BPE", 3: "WORD", 4: "CHAR"}


def read_sentence_pieces(path, without_bytes=None):
    """Reads a SentencePiece file of a Unigram model, without the package that wrote it.

    Args:
        path: str or path.
        without_bytes: tuple of str, or None. The `byte_fallback` of a file that begins with these
            pieces is ignored.

    Returns:
        pieces: list of (str, float), the pieces and their scores by id. Those of user-defined
            pieces are the scores with which SentencePiece prefers them to all others.
        control: list of str, the pieces that are special tokens.
        not_in_text: set of str, the pieces that are found in no text: bytes and unused ones.
        normalizer: the normalizer of characters and spaces.

    Raises:
        ValueError: the file is damaged, its model is of another type, or has settings that are not
            supported.

    Reference: Kudo 2018, https://arxiv.org/abs/1804.10959.
    """
    with open(path, "rb") as file:
        data = file.read()
    pieces, types, settings = [], {}, {}
    # On a damaged table of characters the library panics, which is not an `Exception`.
    with reading(path, "Download it again."):
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
        user_defined = types.get(_USER_DEFINED, [])
        normalizer = sentencepiece_normalizer(table)
        changed = [x for x in user_defined if normalizer.normalize_str(f"x{x}x") != f"x{x}x"]
    kind = settings.get(_MODEL_TYPE, 1)
    problems = [] if kind == 1 else [("be of type UNIGRAM", _KINDS.get(kind, kind))]
    problems += [("leave its symbols as they are when it normalizes text", x) for x in changed]
    if (rules := settings.get(_RULES_NAME, b"").decode()) == "user_defined":
        problems.append(("have one of SentencePiece's own normalization rules", rules))
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
    not_in_text = {*types.get(_UNUSED, ()), *types.get(_BYTE, ())}
    # Above all ordinary pieces, whose scores are logarithms; measured with sentencepiece 0.2.3.
    scores = {piece: 0.1 * len(piece.encode()) - 0.1 for piece in user_defined}
    pieces = [(piece, scores.get(piece, score)) for piece, score in pieces]
    return pieces, types.get(_CONTROL, []), not_in_text, normalizer


def sentencepiece_normalizer(table):
    """Returns what SentencePiece makes of a text before it is split, with spaces left as they are.

    The `tokenizers` library looks up a cluster of characters only if it has at most five bytes, and
    then drops what follows the first entry. So each character is looked up alone here. Where the
    table is one of NFKC, which also joins characters, NFC joins them, but for `_places_apart`.

    Args:
        table: bytes, the `precompiled_charsmap` of a file, or None.
    """
    lookup = normalizers.Precompiled(table) if table else normalizers.Sequence([])
    alone = normalizers.Replace(Regex(rf"(?!\A)(?=[{_FOLLOWERS}])"), _ALONE)
    steps = [alone, lookup, normalizers.Replace(_ALONE, "")]
    if lookup.normalize_str("\uff9e") == "\u3099":  # NFKC.
        apart, joins = normalizers.Replace(Regex(_places_apart()), _BREAK), normalizers.NFC()
        steps = [apart, joins, *steps, joins, normalizers.Replace(_BREAK, "")]
    # Only spaces are cut and joined, not tabs; and `Metaspace` puts none before a first `▁`.
    cuts = {r"\A +|[ ▁]+\z": "", "  +": " ", r"\A(?=▁)": "▁"}
    spaces = [normalizers.Replace(Regex(pattern), text) for pattern, text in cuts.items()]
    return normalizers.Sequence([*(steps if table else ()), *spaces])


@functools.cache
def _places_apart():
    """Returns a pattern of the places where SentencePiece joins nothing, though NFC may.

    SentencePiece joins whole decompositions: no mark to a letter that has one already, as in
    Vietnamese. It does not sort marks, which Arabic and Hebrew have in another order than NFC.
    """
    forms = {x: normalize("NFD", x) for x in map(chr, range(0x12000)) if normalize("NFC", x) == x}
    joined = {x: form for x, form in forms.items() if len(form) > 1}
    firsts = "".join({form[0] for form in joined.values()})
    voiced = "\u3099\u309a\uff9e\uff9f"  # Those of kana, which nothing follows.
    classes = [(combining(x), x) for form in joined.values() for x in form[1:]]
    classes = sorted({*classes, *((8, x) for x in voiced)})
    marks = "".join(mark for _, mark in classes)
    whole = rf"가-힣{voiced}\p{{C}}" + "".join(x for x in joined if not "가" <= x <= "힣")
    whole += "".join(x for x in forms if len(y := normalize("NFKD", x)) > 1 and combining(y[-1]))
    others = rf"[{whole}]|[{_FOLLOWERS}&&[^{firsts}{marks}]]"
    starts = [i for i in range(1, len(marks)) if classes[i - 1][0] < classes[i][0]]
    unsorted = "".join(f"|(?<=[{marks[i:]}])[{marks[:i]}]" for i in starts)
    marked = rf"(?!\A)(?=[{_FOLLOWERS}])(?=[^{marks}]|(?<={others}){unsorted})"
    return rf"{marked}|(?<=[가-힣])(?=[ㄱ-ㆎﾡ-ￜ])"
