"""Long documents to the windows that a model reads of them, at most so many each."""

import numpy as np

from bert_keras.preprocessing.ragged import positions_of
from bert_keras.preprocessing.windows import Windows, cut_windows


def document_windows(lengths, window_length, stride, num_windows, truncation="longest_first"):
    """Cuts documents into windows and keeps at most `num_windows` of each.

    A document that fits is one window. In a longer one, windows begin every `stride` tokens and are
    all full: the last one ends with the document and overlaps the one before as far as it must. (In
    the paper it holds what remains, which may be a single token with a full say in the mean.)

    Of a document with more windows `truncation` keeps

    - `"head"`, `"longest_first"`, `"only_first"`: the first ones;
    - `"tail"`: the last ones;
    - `"head_tail"`: as many of the first as of the last, of an odd number one more of the first.

    Args:
        lengths: int `(num_documents,)`, tokens of each document.
        window_length: int, tokens of a window, special tokens not counted.
        stride: int, the distance between the beginnings of two windows.
        num_windows: int, the most windows of a document.
        truncation: a strategy for single texts, see `bert_keras.preprocessing.packing`.

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
