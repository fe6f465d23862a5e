"""Overlapping windows over documents that are longer than a model can read."""

from typing import NamedTuple

import numpy as np

from bert_keras.checks import check_int
from bert_keras.preprocessing.ragged import Ragged, positions_of


class Windows(NamedTuple):
    """Where each window lies, one entry per window, ordered by document and start.

    Fields:
        documents: int64 `(num_windows,)`, the index of the document.
        starts: int64 `(num_windows,)`, the window's first token within its document.
        lengths: int64 `(num_windows,)`.
    """

    documents: np.ndarray
    starts: np.ndarray
    lengths: np.ndarray


def cut_windows(lengths, window_length, stride):
    """Cuts documents into overlapping windows, one every `stride` tokens.

    A document of `n > w` tokens gives `ceil((n - w) / stride) + 1` windows of `w` tokens, the last
    one of what remains, as in Google's run_squad.py; a document that fits gives one window, also
    if it is empty. Hugging Face calls the overlap, `w - stride`, the stride.

    Args:
        lengths: int `(num_documents,)`, tokens of each document.
        window_length: int or int `(num_documents,)`, tokens of a window: what is left of the
            maximum length after the special tokens and the document's prefix, such as a question.
        stride: int, the distance between the beginnings of two windows; above the window's length
            it counts as that, so that no token is skipped.

    Returns:
        `Windows`.

    Raises:
        ValueError: a window or the stride is shorter than 1.

    Example:

    >>> windows = cut_windows([10, 3], window_length=6, stride=3)
    >>> windows.documents.tolist(), windows.starts.tolist(), windows.lengths.tolist()
    ([0, 0, 0, 1], [0, 3, 6, 0], [6, 6, 4, 3])
    """
    lengths = np.asarray(lengths, dtype=np.int64)
    window_length = np.broadcast_to(np.asarray(window_length, dtype=np.int64), lengths.shape)
    check_int("stride", stride)
    if np.any(window_length < 1):
        document = int(np.argmin(window_length))
        raise ValueError(
            "A window must have room for a token. Received: window_length="
            f"{window_length[document]} for document {document}. Shorten its prefix."
        )
    step = np.minimum(stride, window_length)
    counts = 1 + -(-np.maximum(lengths - window_length, 0) // step)
    documents, position = positions_of(counts)
    starts = position * step[documents]
    return Windows(
        documents, starts, np.minimum(window_length[documents], lengths[documents] - starts)
    )


def take_windows(rows, windows):
    """Returns the windows as rows of tokens, without copying them.

    Args:
        rows: `Ragged` with one row per document: ids, word ids, labels.
        windows: `Windows`.

    Returns:
        A `Ragged` with one row per window.
    """
    starts = rows.starts[windows.documents] + windows.starts
    return Ragged(rows.values, starts, windows.lengths)


def max_context(windows):
    """Tells for each token of each window whether it has the most context there.

    A token lies in several windows; it counts in the one where the smaller of its left and right
    contexts is largest, plus a hundredth of the window's length, the first of equals: Google's
    `_check_is_max_context`. So each token of a document counts exactly once.

    Args:
        windows: `Windows`.

    Returns:
        A `Ragged` of bool with one row per window.
    """
    # The token has as many to its left as its position within the window says.
    window, left = positions_of(windows.lengths)
    length = windows.lengths[window]
    score = np.minimum(left, length - 1 - left) + 0.01 * length
    position = windows.starts[window] + left
    document = windows.documents[window]
    order = np.lexsort((window, -score, position, document))
    is_first = np.ones(len(order), dtype=bool)
    is_first[1:] = (np.diff(position[order]) != 0) | (np.diff(document[order]) != 0)
    is_best = np.zeros(len(order), dtype=bool)
    is_best[order[is_first]] = True
    return Ragged.from_flat(is_best, windows.lengths)


def document_positions(windows, first_columns, length):
    """Returns for each column of packed windows the token of the document that stands there.

    Args:
        windows: `Windows`.
        first_columns: int or int `(num_windows,)`, the column of the window's first token: 1 after
            `[CLS]`, the prefix's length + 2 after `[CLS] prefix [SEP]`.
        length: int, the packed length.

    Returns:
        int64 `(num_windows, length)`: the token's index in its document; -1 for special tokens,
        prefix and padding.
    """
    columns = np.arange(length) - np.reshape(np.asarray(first_columns, dtype=np.int64), (-1, 1))
    inside = (columns >= 0) & (columns < windows.lengths[:, None])
    return np.where(inside, windows.starts[:, None] + columns, -1)
