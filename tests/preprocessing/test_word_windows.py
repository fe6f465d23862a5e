"""Sentences of words become windows in which each word has one token."""

import numpy as np
import pytest

from bert_keras.preprocessing.word_windows import cut_words
from bert_keras.tokenizers import WordPieceTokenizer

VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "b", "##b", "##c", "."]
A, B, B_INSIDE, C_INSIDE, UNK = 5, 6, 7, 8, 1


@pytest.fixture
def tokenizer():
    return WordPieceTokenizer(VOCABULARY)


def test_each_word_is_assigned_to_its_first_piece(tokenizer):
    windows = cut_words(tokenizer, [["abc", "b"], ["a"]], max_length=10, stride=4)
    assert windows.ids.to_lists() == [[A, B_INSIDE, C_INSIDE, B], [A]]
    assert windows.words.to_lists() == [[-1, 0, -1, -1, 1, -1], [-1, 2, -1]]
    assert windows.sentences.tolist() == [0, 1]


def test_a_word_of_several_tokens_is_still_one_word(tokenizer):
    windows = cut_words(tokenizer, [["a.b c", "a"]], max_length=10, stride=4)
    assert windows.words.to_lists()[0] == [-1, 0, -1, -1, -1, 1, -1]


def test_words_without_tokens_become_unknown(tokenizer):
    sentences = [["", "a", "\x00"], [], ["\x00"], ["b", "", "", "b"]]
    windows = cut_words(tokenizer, sentences, max_length=10, stride=4)
    assert windows.ids.to_lists() == [[UNK, A, UNK], [], [UNK], [B, UNK, UNK, B]]
    words = [[w for w in row if w >= 0] for row in windows.words.to_lists()]
    assert words == [[0, 1, 2], [], [3], [4, 5, 6, 7]]


def test_no_sentences_give_no_windows(tokenizer):
    windows = cut_words(tokenizer, [], max_length=10, stride=4)
    assert len(windows.ids) == len(windows.words) == len(windows.sentences) == 0


@pytest.mark.parametrize(("max_length", "stride"), [(3, 1), (4, 1), (7, 2), (7, 9), (16, 7)])
def test_every_word_counts_once_at_its_first_piece(tokenizer, max_length, stride):
    rng = np.random.default_rng(0)
    choices = ["a", "abc", "b", "abbbc", "", "a.b"]
    sentences = [list(rng.choice(choices, rng.integers(0, 30))) for _ in range(20)]
    windows = cut_words(tokenizer, sentences, max_length, stride)
    assert windows.words.lengths.max() <= max_length
    number_of = np.cumsum([0, *map(len, sentences)])
    found = []
    rows = (windows.ids.to_lists(), windows.words.to_lists(), windows.sentences)
    for ids, words, sentence in zip(*rows, strict=True):
        assert len(words) == len(ids) + 2
        assert words[0] == words[-1] == -1
        for id, word in zip(ids, words[1:-1], strict=True):
            if word >= 0:
                found.append(word)
                text = sentences[sentence][word - number_of[sentence]]
                assert id == {"a": A, "b": B, "": UNK}[text[:1]]
    assert sorted(found) == list(range(number_of[-1]))
