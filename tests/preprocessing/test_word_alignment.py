import doctest

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bert_keras.preprocessing import (
    first_pieces,
    labels_to_pieces,
    pieces_to_words,
    word_alignment,
)
from bert_keras.tokenizers import WordPieceTokenizer


def test_examples_in_docstrings_hold():
    assert doctest.testmod(word_alignment).failed == 0


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(1, 9)), max_size=8))
def test_labels_come_back_from_pieces(words):
    word_ids = [None]
    for word, (num_pieces, _) in enumerate(words):
        word_ids += [word] * num_pieces
    word_ids += [None, None]
    labels, weights = labels_to_pieces(word_ids, [label for _, label in words])
    assert labels.dtype == np.int32 and weights.dtype == np.float32
    assert weights.sum() == sum(num_pieces > 0 for num_pieces, _ in words)
    assert np.all(labels[weights == 0] == 0)
    back = pieces_to_words(word_ids, labels, len(words), missing=-1)
    assert back.tolist() == [label if pieces else -1 for pieces, label in words]


def test_words_cut_off_or_without_pieces_are_missing():
    assert first_pieces([None, 0, 2, 2], num_words=5).tolist() == [1, -1, 2, -1, -1]
    assert first_pieces(np.array([-1, 0, 2]), num_words=3).tolist() == [1, -1, 2]
    assert first_pieces([], num_words=1).tolist() == [-1]
    scores = np.arange(8.0).reshape(4, 2)
    words = pieces_to_words([None, 0, 2, 2], scores, 3, missing=np.nan)
    np.testing.assert_array_equal(words, [[2, 3], [np.nan, np.nan], [4, 5]])


def test_more_words_than_labels_are_refused():
    with pytest.raises(ValueError, match="word 2 of 2 words"):
        labels_to_pieces([None, 0, 1, 2, None], [1, 1])


def test_labels_follow_the_words_of_the_tokenizer():
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "new", "york", "##er", "!"]
    encoding = WordPieceTokenizer(vocabulary).encode_words(["New", "\u200d", "Yorker!", "!"])
    labels, weights = labels_to_pieces(encoding.word_ids, [1, 9, 2, 3])
    assert encoding.pieces == ["[CLS]", "new", "york", "##er", "!", "!", "[SEP]"]
    assert labels.tolist() == [0, 1, 2, 0, 0, 3, 0]
    assert weights.tolist() == [0, 1, 1, 0, 0, 1, 0]
