"""Labels of words to labels of pieces, and back."""

import numpy as np


def as_word_ids(word_ids):
    """Returns word ids as an int64 array, -1 in place of None for special tokens."""
    return np.array([-1 if word is None else word for word in word_ids], dtype=np.int64)


def first_pieces(word_ids, num_words):
    """Returns for each word the index of its first piece.

    Args:
        word_ids: list of int or None, or int `(num_pieces,)` with -1 for None: the word that each
            piece comes from.
        num_words: int.

    Returns:
        int64 `(num_words,)`; -1 for a word without pieces, cut off or all control characters.

    Example:

    >>> first_pieces([None, 0, 0, 1, None], num_words=3).tolist()
    [1, 3, -1]
    """
    word_ids = as_word_ids(word_ids)
    words, pieces = np.unique(word_ids, return_index=True)
    if words.max(initial=-1) >= num_words:
        raise ValueError(
            f"Word ids must lie below the number of words. Received: word {words.max()} of "
            f"{num_words} words."
        )
    firsts = np.full(num_words, -1, dtype=np.int64)
    firsts[words[words >= 0]] = pieces[words >= 0]
    return firsts


def labels_to_pieces(word_ids, word_labels):
    """Gives each word's label to its first piece; all other pieces weigh 0, as in the BERT paper.

    Args:
        word_ids: as for `first_pieces`.
        word_labels: list of int, or int `(num_words,)`.

    Returns:
        labels: int32 `(num_pieces,)`, 0 where there is none.
        weights: float32 `(num_pieces,)`, 1 for first pieces, else 0.

    Example:

    >>> labels, weights = labels_to_pieces([None, 0, 0, 1, None], [3, 5])
    >>> labels.tolist(), weights.tolist()
    ([0, 3, 0, 5, 0], [0.0, 1.0, 0.0, 1.0, 0.0])
    """
    firsts = first_pieces(word_ids, len(word_labels))
    found = firsts >= 0
    labels = np.zeros(len(word_ids), dtype=np.int32)
    labels[firsts[found]] = np.asarray(word_labels, dtype=np.int32)[found]
    weights = np.zeros(len(word_ids), dtype=np.float32)
    weights[firsts[found]] = 1
    return labels, weights


def pieces_to_words(word_ids, piece_values, num_words, missing):
    """Returns what the first piece of each word says.

    Args:
        word_ids: as for `first_pieces`.
        piece_values: array `(num_pieces, ...)`, labels or scores per piece.
        num_words: int.
        missing: the value for a word without pieces.

    Returns:
        An array `(num_words, ...)`.
    """
    piece_values = np.asarray(piece_values)
    firsts = first_pieces(word_ids, num_words)
    words = np.full((num_words, *piece_values.shape[1:]), missing, dtype=piece_values.dtype)
    found = firsts >= 0
    words[found] = piece_values[firsts[found]]
    return words
