"""WordPiece against BERT's rules in plain Python."""

import unicodedata

import pytest
from transformers.models.bert.tokenization_bert_legacy import BasicTokenizer, WordpieceTokenizer

from bert_keras.tokenizers import WordPieceTokenizer

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


def reference_words(text, lowercase):
    """Returns the words of BERT's own code, of which transformers has a copy.

    Its `tokenize` composes characters first, which BERT's does not.
    """
    basic, words = BasicTokenizer(), []
    for word in basic._tokenize_chinese_chars(basic._clean_text(text)).split():
        word = basic._run_strip_accents(word.lower()) if lowercase else word
        words += basic._run_split_on_punc(word)
    return " ".join(words)


def reference_pieces(text, vocabulary, lowercase):
    words = reference_words(text, lowercase)
    return WordpieceTokenizer(vocabulary, "[UNK]").tokenize(words)


@pytest.mark.parametrize("lowercase", [True, False])
def test_every_older_character_follows_berts_rules(lowercase):
    # A vocabulary of single characters shows the effect of cleaning and splitting.
    settled = [*filter(is_settled, map(chr, range(0x30000)))]
    assert len(settled) > 90_000
    settled = [c for c in settled if ord(c) % 16 == 0 or not is_amid_its_like(ord(c))]
    starts = range(0, len(settled), 500)
    texts = [" ".join(f"a{c}b {c}" for c in settled[start : start + 500]) for start in starts]
    words = [reference_words(text, lowercase) for text in texts]
    found = set("".join(words)) - {" "}
    vocabulary = [*SPECIAL_TOKENS, *sorted(found), *(f"##{c}" for c in sorted(found))]
    tokenizer = WordPieceTokenizer(vocabulary, lowercase=lowercase)
    reference = WordpieceTokenizer(set(vocabulary), "[UNK]")
    for row, pieces in zip(words, tokenizer.tokenize(texts), strict=True):
        assert pieces == reference.tokenize(row), row


def test_the_library_deviates_from_berts_rules_only_in_known_corners():
    vocabulary = [*SPECIAL_TOKENS, "α", "##σ", "##ς", "x", "##y", "\U0002b820", "##\U0002b820"]
    vocabulary.append("##\u0378")
    tokenizer = WordPieceTokenizer(vocabulary)
    # BERT keeps private characters, too.
    assert tokenizer.tokenize("x\ue000\u0378y") == ["x", "##\u0378", "##y"]
    for text, ours, reference in [
        ("ΑΣ", ["α", "##σ"], ["α", "##ς"]),
        ("x\U0002b820", ["x", "##\U0002b820"], ["x", "\U0002b820"]),
    ]:
        assert tokenizer.tokenize(text) == ours
        assert reference_pieces(text, vocabulary, True) == reference
