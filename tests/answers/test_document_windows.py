import numpy as np
import pytest
from checks import cases

from bert_keras.preprocessing.windows import document_windows


def starts_of(length, num_windows, truncation="longest_first", stride=4):
    return document_windows([length], 4, stride, num_windows, truncation).starts.tolist()


@pytest.mark.parametrize("truncation", ["longest_first", "tail", "head_tail"])
@pytest.mark.parametrize("stride", [1, 2, 4, 9])
def test_enough_windows_cover_every_token_and_all_are_full(truncation, stride):
    lengths = np.arange(30)
    windows = document_windows(lengths, 4, stride, 30, truncation)
    for document, length in enumerate(lengths):
        own = windows.documents == document
        starts, sizes = windows.starts[own], windows.lengths[own]
        covered = {token for s, n in zip(starts, sizes, strict=True) for token in range(s, s + n)}
        assert covered == set(range(length))
        assert (sizes == min(length, 4)).all()
        assert (np.diff(starts) > 0).all()
        assert len(starts) == 1 + max(0, -(-(length - 4) // min(stride, 4)))


@cases(
    # The last window ends with the document.
    ((9, 5), [0, 4, 5]),
    ((8, 5), [0, 4]),
    ((9, 9, "head", 3), [0, 3, 5]),
    # All windows of a document of 21 tokens begin at 0, 4, 8, 12, 16 and 17.
    *(((21, 3, x), [0, 4, 8]) for x in ("longest_first", "head", "only_first")),
    ((21, 3, "tail"), [12, 16, 17]),
    ((21, 3, "head_tail"), [0, 4, 17]),
    ((21, 4, "head_tail"), [0, 4, 16, 17]),
    ((21, 1, "tail"), [17]),
    ((21, 1, "head_tail"), [0]),
)
def test_the_truncation_says_which_windows_stay(arguments, starts):
    assert starts_of(*arguments) == starts


def test_documents_do_not_affect_one_another():
    lengths = [21, 3, 0, 9]
    together = document_windows(lengths, 4, 4, 3, "head_tail")
    assert together.documents.tolist() == [0, 0, 0, 1, 2, 3, 3, 3]
    for document, length in enumerate(lengths):
        own = together.documents == document
        assert together.starts[own].tolist() == starts_of(length, 3, "head_tail")
