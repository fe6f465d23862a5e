"""Reads SentencePiece files, which are protocol buffers."""

import collections
import functools
import re
import struct
from unicodedata import decomposition, normalize

from tokenizers import Regex, normalizers

from bert_keras.engine.atomic_files import reading
from bert_keras.tokenizers.protocol_buffers import fields

# Field numbers of sentencepiece_model.proto.
_PIECES, _TRAINER, _NORMALIZER = 1, 2, 3
_SCORE, _TYPE, _MODEL_TYPE, _CHARSMAP = 2, 3, (_TRAINER, 3), (_NORMALIZER, 2)
# The table of a file with this name was made from somebody's own rules.
_RULES_NAME, _OWN_RULES = (_NORMALIZER, 1), b"user_defined"
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
# Stands after a sequence that is replaced.
_END = "\ufff2"
# Code points among which are all that NFKC joins, those whose forms it joins, and the results.
_JOINED = (range(0x3400), range(0xA000, 0xD800), range(0xFB00, 0x12000), range(0x1D000, 0x1D800))
_JOINED += (range(0x1F100, 0x1F200),)
# Characters that form clusters with the one before them.
_FOLLOWERS = r"\p{M}\x{200d}\x{1160}-\x{11ff}\x{d7b0}-\x{d7fb}\x{1f3fb}-\x{1f3ff}"
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
        user_defined = types.get(_USER_DEFINED, [])
        normalizer = sentencepiece_normalizer(settings.get(_CHARSMAP), user_defined)
    kind = settings.get(_MODEL_TYPE, 1)
    problems = [] if kind == 1 else [("be of type UNIGRAM", _KINDS.get(kind, kind))]
    first = tuple(piece for piece, _ in pieces[: len(without_bytes or ())])
    for key, (name, value) in _FIXED.items():
        is_ignored = name == "byte_fallback" and first == without_bytes
        if (found := settings.get(key, value)) != value and not is_ignored:
            problems.append((f"have {name}={bool(value)}", f"{name}={bool(found)}"))
    if settings.get(_RULES_NAME) == _OWN_RULES:
        problems.append(("clean text by rules that SentencePiece comes with", "rules of its own"))
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


def sentencepiece_normalizer(table, symbols=()):
    """Returns what SentencePiece makes of a text before it is split, with spaces left as they are.

    The `tokenizers` library looks up a cluster of characters only if it has at most five bytes, and
    then drops what follows the first entry. So each character is looked up alone here. Where the
    table is one of NFKC, those sequences that SentencePiece joins, and no others, are joined by
    Unicode's rules.

    Args:
        table: bytes, the `precompiled_charsmap` of a file, or None.
        symbols: list of str, which are left as they are, so that the model finds them.
    """
    lookup = normalizers.Precompiled(table) if table else normalizers.Sequence([])
    joins, joined, followers = [], ".", f"[{_FOLLOWERS}]"
    if lookup.normalize_str("\uff9e") == "\u3099":  # NFKC.
        joined, followers = _joined_sequences()
        joins = [normalizers.NFC()]
    # Breaks go before every follower except inside a sequence that is joined. A match begins where
    # the last one ended, or at a character that follows none.
    patterns = [rf"(?m)(?=.{followers})(?:\G|(?!{followers}))(?>{joined}|.)\K(?={followers})"]
    symbols = sorted(symbols, key=len, reverse=True)
    if symbols:
        patterns.insert(0, rf"(?:{'|'.join(map(re.escape, symbols))})\K(?={followers})")
    steps = [normalizers.Replace(Regex(pattern), _BREAK) for pattern in patterns]
    alone = normalizers.Replace(Regex(rf"(?!\A)(?={followers})"), _ALONE)
    steps += [*joins, alone, lookup, normalizers.Replace(_ALONE, ""), *joins]
    steps.append(normalizers.Replace(_BREAK, ""))
    # Characters for private use stand meanwhile for symbols that would be changed.
    cleaning, before, after = normalizers.Sequence(steps), [], []
    if any(cleaning.normalize_str(x) != x for x in symbols):
        # As in SentencePiece the leftmost symbol is found, of several there the longest. So one
        # pass marks their ends.
        pattern = rf"(?:{'|'.join(map(re.escape, symbols))})\K"
        places = [(x, chr(0xF0000 + n)) for n, x in enumerate(symbols)]
        before = [normalizers.Replace(Regex(pattern), _END)]
        before += [normalizers.Replace(x + _END, place) for x, place in places]
        after = [normalizers.Replace(place, x) for x, place in places]
    # Only spaces are cut and joined, not tabs; and `Metaspace` puts none before a first `▁`.
    cuts = {r"\A +|[ ▁]+\z": "", "  +": " ", r"\A(?=▁)": "▁"}
    spaces = [normalizers.Replace(Regex(pattern), text) for pattern, text in cuts.items()]
    return normalizers.Sequence([*before, *(steps if table else ()), *after, *spaces])


@functools.cache
def _joined_sequences():
    """Returns patterns of the sequences that a table of NFKC joins, and of what can follow a base.

    They are the whole decompositions of characters, in which other forms may stand for each part
    (half-width kana, say). A character and a mark that are joined already take no second mark.
    """
    forms, tree, followers = collections.defaultdict(list), {}, set()
    # Few containers are made: the first load of a file otherwise waits for the garbage collector.
    for character in (chr(code) for codes in _JOINED for code in codes):
        if not decomposition(character) and not "\uac00" <= character <= "\ud7a3":
            continue
        form = normalize("NFKD", character)
        if len(form) == 1:
            forms[form].append(character)
        elif normalize("NFC", form) != form:
            node = tree
            for part in form:
                node = node.setdefault(part, {})
            node[""] = {}  # The end of a sequence.
            followers.update(form[1:])

    def pattern(node):
        return choices(frozenset((part, pattern(rest)) for part, rest in node.items()))

    @functools.cache
    def choices(sequences):
        firsts = collections.defaultdict(list)
        for part, rest in sequences - {("", "")}:
            firsts[rest] += [part, *forms[part]]
        patterns = sorted(_character_class(firsts[rest]) + rest for rest in firsts)
        return f"(?:{'|'.join(patterns)}){'?' * (('', '') in sequences)}" if patterns else ""

    followers = {form for part in followers for form in (part, *forms[part])}
    return pattern(tree), f"[{_character_class(followers)}{_FOLLOWERS}]"


def _character_class(characters):
    return "[" + "".join(rf"\x{{{ord(x):x}}}" for x in sorted(characters)) + "]"
