"""Overlapping windows over documents that are longer than a model can read."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..checks import check_int, raise_at_first


class Windows(NamedTuple):
    """Where each window lies, one entry per window, ordered by document and start.

    Attributes:
        documents: int64 `(num_windows,)`, the index of the document.
        starts: int64 `(num_windows,)`, the window's first token within its document.
        lengths: int64 `(num_windows,)`.
    """

    documents: NDArray[np.int64]
    starts: NDArray[np.int64]
    lengths: NDArray[np.int64]


def positions_of(lengths: ArrayLike) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Returns, for each value of rows with these lengths, its row and its position in the row."""
    row = np.repeat(np.arange(len(lengths)), lengths)
    return row, np.arange(len(row)) - np.repeat(np.cumsum(lengths) - lengths, lengths)


def cut_windows(lengths: ArrayLike, window_length: ArrayLike, stride: int) -> Windows:
    """Cuts documents into overlapping windows, one every `stride` tokens.

    A document of `n > w` tokens gives `ceil((n - w) / stride) + 1` windows. All have `w` tokens,
    except the last, which has the rest, as in Google's run_squad.py. A document that fits, even an
    empty one, gives a single window. What Hugging Face calls the stride is the overlap,
    `w - stride`.

    Args:
        lengths: int `(num_documents,)`, tokens of each document.
        window_length: int or int `(num_documents,)`, tokens of a window: the maximum length minus
            the special tokens and the document's prefix, such as a question.
        stride: int, the distance between the starts of two windows; a stride above the window's
            length counts as that length, so that no token is skipped.

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
    rule = "The window of a document must have room for a token"
    raise_at_first(window_length < 1, window_length, rule, "Shorten its prefix.")
    step = np.minimum(stride, window_length)
    counts = 1 + -(-np.maximum(lengths - window_length, 0) // step)
    documents, position = positions_of(counts)
    starts = position * step[documents]
    return Windows(
        documents, starts, np.minimum(window_length[documents], lengths[documents] - starts)
    )


def document_windows(
    lengths: ArrayLike,
    window_length: int,
    stride: int,
    num_windows: int,
    truncation: str = "longest_first",
) -> Windows:
    """Cuts documents into windows and keeps at most `num_windows` of each.

    A document that fits is a single window. In a longer one, windows begin every `stride` tokens,
    and all are full: the last one ends with the document, and may overlap more with the previous
    one. (In the paper the last one holds the rest, which may be a single token that counts fully in
    the mean.)

    If a document has more windows, `truncation` keeps

    - `"head"`, `"longest_first"`, `"only_first"`: the first ones;
    - `"tail"`: the last ones;
    - `"head_tail"`: half from the beginning and half from the end; one more from the beginning if
      the number is odd.

    Args:
        lengths: int `(num_documents,)`, tokens of each document.
        window_length: int, tokens of a window, without special tokens.
        stride: int, the distance between the starts of two windows.
        num_windows: int, the most windows of a document.
        truncation: a strategy for single texts, see `bert_keras.preprocessing.collate`.

    Returns:
        `Windows`, at least one for each document.

    Raises:
        ValueError: a window or the stride is shorter than 1.

    Example:

    >>> windows = document_windows([10, 3], window_length=4, stride=4, num_windows=2)
    >>> windows.documents.tolist(), windows.starts.tolist(), windows.lengths.tolist()
    ([0, 0, 1], [0, 4, 0], [4, 4, 3])
    >>> document_windows([10], 4, 4, num_windows=2, truncation="tail").starts.tolist()
    [4, 6]

    Reference: Sun et al. 2019, https://arxiv.org/abs/1905.05583, section 5.3.1.
    """
    lengths = np.asarray(lengths, dtype=np.int64)
    cut = cut_windows(lengths, window_length, stride)
    counts = np.bincount(cut.documents, minlength=len(lengths))
    _, place = positions_of(counts)
    num_first = {"tail": 0, "head_tail": (num_windows + 1) // 2}.get(truncation, num_windows)
    from_the_end = np.repeat(counts, counts) - 1 - place
    is_kept = (place < num_first) | (from_the_end < num_windows - num_first)
    documents = cut.documents[is_kept]
    latest_start = np.maximum(lengths[documents] - window_length, 0)
    return Windows(
        documents,
        np.minimum(cut.starts[is_kept], latest_start),
        np.minimum(lengths[documents], window_length),
    )


def max_context(windows: Windows) -> NDArray[np.bool_]:
    """Returns, for each token of each window, whether it has the most context there.

    A token may be in several windows. It counts in the window in which the smaller of its left and
    right contexts, plus a hundredth of the window's length, is largest; in the first of equals. So
    each token of a document counts exactly once. This is Google's `_check_is_max_context`.

    Args:
        windows: `Windows`.

    Returns:
        bool `(total,)`, for the tokens of all windows, concatenated.
    """
    # The position within the window is the number of tokens to the left.
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
    return is_best


def document_positions(
    windows: Windows, first_columns: ArrayLike, length: int
) -> NDArray[np.int64]:
    """Returns, for each column of packed windows, the document's token in that column.

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
