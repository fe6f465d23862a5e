"""Vocabularies of Japanese words, of SentencePiece's pieces, and with blanks at line ends."""

import pytest
import transformers
from files import write_json

from bert_keras.tokenizers import Tokenizer, WordPieceTokenizer, read_vocabulary
from bert_keras.tokenizers.vocabulary import write_vocabulary

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
JAPANESE = {"tokenizer_class": "BertJapaneseTokenizer"}


def test_japanese_word_pieces_do_not_split_chinese_characters(tmp_path):
    write_vocabulary(tmp_path / "vocab.txt", [*SPECIAL, "東京", "##都", "ａ", "a"])
    write_json(tmp_path / "tokenizer_config.json", JAPANESE)
    theirs = transformers.BertJapaneseTokenizer.from_pretrained(tmp_path)
    text = "東京都 a A"
    assert Tokenizer.load(tmp_path).tokenize(text) == theirs.tokenize(text) != []
    assert theirs.tokenize(text)[:2] == ["東京", "##都"]


def test_a_vocabulary_of_sentencepiece_s_pieces_is_refused(tmp_path):
    write_vocabulary(tmp_path / "vocab.txt", [*SPECIAL, "▁", "하", "▁안녕", "요"])
    with pytest.raises(ValueError, match=r"pieces of SentencePiece.*'▁안녕'.*tokenizer\.json"):
        Tokenizer.load(tmp_path)
    write_vocabulary(tmp_path / "vocab.txt", [*SPECIAL, "▁", "▁a", "##a"])
    assert Tokenizer.load(tmp_path).tokenize("▁aa") == ["▁a", "##a"]


def test_white_space_at_the_end_of_a_token_is_cut_as_in_hugging_faces_library(tmp_path):
    lines = [*SPECIAL[:2], "[CLS]\t", *SPECIAL[3:], "a ", "b\u3000", " c", "##e\u00a0", "\u2028"]
    (tmp_path / "vocab.txt").write_text("\n".join(lines) + "\n", encoding="utf-8", newline="")
    write_json(tmp_path / "tokenizer_config.json", {"tokenizer_class": "BertTokenizer"})
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path)
    ours = Tokenizer.load(tmp_path)
    assert ours.encode("a be ae").ids == theirs("a be ae")["input_ids"]
    assert ours.vocabulary[5:] == ["a", "b", " c", "##e", "\u2028"]
    assert read_vocabulary(tmp_path / "vocab.txt")[-1] == "\u2028"


def test_half_width_kana_and_full_width_letters_keep_the_spaces_between_words():
    tokenizer = WordPieceTokenizer([*SPECIAL, "ｶﾀ", "ｶﾅ", "ａ", "北", "京", "，", "！", "b"])
    for text in ("ｶﾀ ｶﾅ", "ａ ａ", "北京，北！ b b 北"):
        assert tokenizer.detokenize(tokenizer(text)) == text
