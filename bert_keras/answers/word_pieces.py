"""Words of sentences as pieces of windows: which piece stands for which word."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .windows import Windows, max_context, positions_of


def pieces_of_words(
    encodings: Iterable[Any], sentences: Sequence[str | Sequence[str]]
) -> tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.int64], list[int]]:
    """Returns the pieces of sentences, texts or lists of words, and which word each is part of.

    Every given word has a piece: where the tokenizer leaves nothing of it (it is empty, or control
    characters alone), a piece with the id -1.

    Args:
        encodings: for each sentence an object with `ids` and `word_ids`, without special tokens.
        sentences: list of str or of lists of str.

    Returns:
        ids: int32 `(num_pieces,)`, the ids of all sentences' pieces.
        words: int64 `(num_pieces,)`, the number of each piece's word. Words are numbered through
            all sentences: those of the second continue where the first ends.
        lengths: int64 `(num_sentences,)`, the number of pieces of each sentence.
        num_words: list of int, the number of words of each sentence.
    """
    ids, words, num_words, first_word = [], [], [], 0
    for encoding, sentence in zip(encodings, sentences, strict=True):
        ids.extend(encoding.ids)
        words.extend(first_word + word for word in encoding.word_ids)
        is_text = isinstance(sentence, str)
        num_words.append(max(encoding.word_ids, default=-1) + 1 if is_text else len(sentence))
        first_word += num_words[-1]
    ids, words = np.array(ids, np.int32), np.array(words, np.int64)
    lost = np.setdiff1d(np.arange(first_word), words)
    if len(lost):
        places = np.searchsorted(words, lost)
        ids = np.insert(ids, places, -1)
        words = np.insert(words, places, lost)
    sentence_of_word = np.repeat(np.arange(len(num_words)), num_words)
    lengths = np.bincount(sentence_of_word[words], minlength=len(num_words))
    return ids, words, lengths, num_words


def words_in_windows(
    words: NDArray[np.int64], lengths: ArrayLike, windows: Windows
) -> NDArray[np.int64]:
    """Returns for each piece of each window the number of the word that counts there, or -1.

    Each word counts once: at its first piece, in the window where that has the most context.

    Args:
        words: int64 `(num_pieces,)`, see `pieces_of_words`.
        lengths: int64 `(num_sentences,)`, likewise.
        windows: `Windows` over sentences.

    Returns:
        int64 `(total,)`, the pieces of one window after those of the other.
    """
    is_first = np.diff(words, prepend=-1) != 0
    window, place = positions_of(windows.lengths)
    starts = (np.cumsum(lengths) - lengths)[windows.documents] + windows.starts
    piece = starts[window] + place
    return np.where(is_first[piece] & max_context(windows), words[piece], -1)
