"""Sentences of words to windows of pieces, each word on its first piece in one window."""

from typing import NamedTuple

import numpy as np

from bert_keras.preprocessing.ragged import Ragged, positions_of
from bert_keras.preprocessing.windows import cut_windows, max_context, take_windows
from bert_keras.tokenizers.tokenizer import TEXTS_AT_ONCE


class WordWindows(NamedTuple):
    """Windows over sentences; a sentence that fits has one.

    Words are numbered through all sentences: those of the second go on where the first ends.

    Fields:
        ids: `Ragged` int32, one row per window: ids of its pieces, without special tokens.
        words: `Ragged` int64, one row per window and an entry for each of its tokens, those before
            and after the sentence too: the number of the word that is labelled and predicted
            there, or -1. Each word occurs once: on its first piece, in the window where that has
            the most context.
        sentences: int64 `(num_windows,)`, the index of the sentence.
    """

    ids: Ragged
    words: Ragged
    sentences: np.ndarray


def cut_words(tokenizer, sentences, max_length, stride):
    """Tokenizes sentences of words and cuts those that do not fit into overlapping windows.

    A word of which the tokenizer leaves nothing (empty, or control characters alone) is read as
    the unknown token, so that every word has a piece, a label and a prediction.

    Args:
        tokenizer: a `Tokenizer`.
        sentences: list of lists of str.
        max_length: int, the longest sequence, special tokens included.
        stride: int, pieces between the beginnings of two windows.

    Returns:
        `WordWindows`.
    """
    ids, words = _pieces(tokenizer, sentences)
    num_before, num_special = len(tokenizer.layout.before), tokenizer.layout.num_special()
    windows = cut_windows(ids.lengths, max_length - num_special, stride)
    numbers = words.values
    is_first = np.ones(len(numbers), dtype=bool)
    is_first[1:] = numbers[1:] != numbers[:-1]
    inside = take_windows(words, windows)
    window, place = positions_of(inside.lengths)
    piece = inside.starts[window] + place
    lengths = inside.lengths + num_special
    with_special = np.full(int(lengths.sum()), -1, dtype=np.int64)
    counts = is_first[piece] & max_context(windows).values
    columns = np.arange(len(window)) + num_special * window + num_before
    with_special[columns] = np.where(counts, numbers[piece], -1)
    return WordWindows(
        take_windows(ids, windows), Ragged.from_flat(with_special, lengths), windows.documents
    )


def _pieces(tokenizer, sentences):
    """Returns two `Ragged`, one row per sentence: ids of the pieces, and their words' numbers."""
    ids, words, first_word = [], [], 0
    for start in range(0, len(sentences), TEXTS_AT_ONCE):
        part = sentences[start : start + TEXTS_AT_ONCE]
        encodings = tokenizer.encode_words(part, special_tokens=False)
        for sentence, encoding in zip(part, encodings, strict=True):
            ids.extend(encoding.ids)
            words.extend(first_word + word for word in encoding.word_ids)
            first_word += len(sentence)
    ids, words = np.array(ids, np.int32), np.array(words, np.int64)
    lost = np.setdiff1d(np.arange(first_word), words)
    if len(lost):
        places = np.searchsorted(words, lost)
        ids = np.insert(ids, places, tokenizer.unknown_token_id)
        words = np.insert(words, places, lost)
    sentence_of_word = np.repeat(np.arange(len(sentences)), [len(words) for words in sentences])
    lengths = np.bincount(sentence_of_word[words], minlength=len(sentences))
    return Ragged.from_flat(ids, lengths), Ragged.from_flat(words, lengths)
