"""Sentences of words become windows in which each word has one token."""

import numpy as np
import pytest

from bert_keras.preprocessing.collate import TextPacker
from bert_keras.preprocessing.word_windows import WordRows
from bert_keras.tokenizers import WordPieceTokenizer

pytestmark = pytest.mark.once

VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "b", "##b", "##c", "."]
A, B, B_INSIDE, C_INSIDE, UNK = 5, 6, 7, 8, 1


@pytest.fixture
def tokenizer():
    return WordPieceTokenizer(VOCABULARY)


def test_words_without_tokens_become_unknown(tokenizer):
    sentences = [["", "a", "\x00"], [], ["\x00"], ["b", "", "", "b"]]
    windows = WordRows(TextPacker(tokenizer, 10), sentences, stride=4)
    assert windows.ids.to_lists() == [[UNK, A, UNK], [], [UNK], [B, UNK, UNK, B]]
    words = [[w for w in row if w >= 0] for row in windows.words.to_lists()]
    assert words == [[0, 1, 2], [], [3], [4, 5, 6, 7]]


@pytest.mark.parametrize("kind", ["word piece", "byte pair"])
@pytest.mark.parametrize(("max_length", "stride"), [(3, 1), (4, 1), (7, 2), (7, 9), (16, 7)])
def test_every_word_counts_once_at_its_first_piece(tokenizer, byte_pair, kind, max_length, stride):
    rng = np.random.default_rng(0)
    choices = ["a", "abc", "b", "abbbc", "", "a.b"]
    first_ids = {"a": A, "b": B, "": UNK}
    if kind == "byte pair":
        tokenizer, choices = byte_pair, ["New", "York", "", "Hemingway's", "sea", "."]
        first_ids = {text[:1]: tokenizer(" " + text)[0] if text else 3 for text in choices}
    sentences = [list(rng.choice(choices, rng.integers(0, 30))) for _ in range(20)]
    windows = WordRows(TextPacker(tokenizer, max_length), sentences, stride)
    assert windows.words.lengths.max() <= max_length
    texts = [word for sentence in sentences for word in sentence]
    found = []
    for ids, words in zip(windows.ids.to_lists(), windows.words.to_lists(), strict=True):
        assert len(words) == len(ids) + 2
        assert words[0] == words[-1] == -1
        counted = [(word, id) for word, id in zip(words[1:-1], ids, strict=True) if word >= 0]
        assert [id for _, id in counted] == [first_ids[texts[word][:1]] for word, _ in counted]
        found += [word for word, _ in counted]
    assert sorted(found) == list(range(len(texts)))
    owners = np.repeat(np.arange(20), [len(sentence) for sentence in sentences])
    for words, sentence in zip(windows.words.to_lists(), windows.sentences, strict=True):
        assert {owners[word] for word in words if word >= 0} <= {sentence}
