import pytest

from bert_keras.answers.tagged_texts import place_words
from bert_keras.tokenizers import WordPieceTokenizer
from bert_keras.tokenizers.words import join_words

pytestmark = pytest.mark.once

VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "don", "'", "t", "stop", "##s", "."]


def test_texts_are_split_as_the_tokenizer_does():
    tokenizer = WordPieceTokenizer(VOCABULARY)
    text = " Don't\tstops  Zürich[MASK]，北京…\u00a0x."
    (same, spans), (joined, places) = place_words(tokenizer, [text, ["Don't", "stop"]])
    assert same == text
    assert [text[start:end] for start, end in spans] == [
        *("Don", "'", "t", "stops", "Zürich", "[MASK]", "，", "北", "京", "…", "x", ".")
    ]
    assert (joined, places) == ("Don't stop", [(0, 5), (6, 10)])


def test_words_of_a_text_have_the_text_s_pieces():
    tokenizer = WordPieceTokenizer(VOCABULARY)
    text = "Don't stops [MASK] don\x00t  \u200b't. İ straße e\u0301t"
    words = [text[start:end] for start, end in place_words(tokenizer, [text])[0][1]]
    [encoding] = tokenizer.encode_sentences([words])
    assert encoding.ids == tokenizer(text)


def test_words_keep_the_marks_that_a_lower_casing_tokenizer_strips():
    tokenizer = WordPieceTokenizer(VOCABULARY)
    words = ["cafe\u0301", "\u2764\ufe0f", "e\u0301t", "x\u0301\u0323", ".", "\U0001f469\u200d"]
    text = "\r\n".join(words) + " \u0301"
    assert [text[start:end] for start, end in place_words(tokenizer, [text])[0][1]] == words


def test_words_keep_their_characters():
    for words in ([], ["a"], ["北", "京"], ["", "a"], ["New York", "is", "", "big"]):
        text, spans = join_words(words)
        assert [text[start:end] for start, end in spans] == words
    assert join_words(["北", "京"])[0] == "北京"
    assert join_words(["New", "York"])[0] == "New York"
