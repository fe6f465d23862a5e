"""Windows of pieces over sentences of words; each word counts at its first piece, in one window."""

from typing import NamedTuple

import numpy as np

from bert_keras.answers.windows import cut_windows, positions_of
from bert_keras.answers.word_pieces import pieces_of_words, words_in_windows
from bert_keras.preprocessing.ragged import Ragged
from bert_keras.tokenizers.tokenizer import TEXTS_AT_ONCE


class WordWindows(NamedTuple):
    """Windows over sentences; a sentence that fits has a single window.

    Words are numbered across sentences: the second continues where the first ends.

    Fields:
        ids: `Ragged` int32, one row per window: ids of its pieces, without special tokens.
        words: `Ragged` int64, one row per window with an entry for each of its tokens, special
            tokens included: the number of the word that has its label and prediction there, or -1.
            Each word occurs once: at its first piece, in the window where that piece has the most
            context.
        sentences: int64 `(num_windows,)`, the index of the sentence.
        num_words: list of int, the number of words of each sentence.
    """

    ids: Ragged
    words: Ragged
    sentences: np.ndarray
    num_words: list


def cut_words(tokenizer, sentences, max_length, stride, are_pieces=False):
    """Tokenizes sentences of words and cuts those that do not fit into overlapping windows.

    A given word without tokens (empty, or only control characters) becomes the unknown token, so
    that every word has a piece, a label and a prediction.

    Args:
        tokenizer: a `Tokenizer`.
        sentences: list of texts, which keep their own pieces and words, or of lists of words.
        max_length: int, the longest sequence, special tokens included.
        stride: int, pieces between the starts of two windows.
        are_pieces: bool, whether each piece counts as a word.

    Returns:
        `WordWindows`.
    """
    chunks = (sentences[i : i + TEXTS_AT_ONCE] for i in range(0, len(sentences), TEXTS_AT_ONCE))
    encodings = (encoding for chunk in chunks for encoding in tokenizer.encode_sentences(chunk))
    ids, words, lengths, num_words = pieces_of_words(encodings, sentences)
    if (ids < 0).any():
        ids[ids < 0] = tokenizer.unknown_token_id
    if are_pieces:
        words, num_words = np.arange(len(ids)), lengths.tolist()
    num_before, num_special = len(tokenizer.layout.before), tokenizer.layout.num_special()
    windows = cut_windows(lengths, max_length - num_special, stride)
    window, _ = positions_of(windows.lengths)
    packed = np.full(len(window) + num_special * len(windows.lengths), -1, np.int64)
    places = np.arange(len(window)) + num_special * window + num_before
    packed[places] = words_in_windows(words, lengths, windows)
    return WordWindows(
        Ragged.from_flat(ids, lengths).windows(windows),
        Ragged.from_flat(packed, windows.lengths + num_special),
        windows.documents,
        num_words,
    )
