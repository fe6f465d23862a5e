from checks import refusals
from hypothesis import given
from hypothesis import strategies as st

from bert_keras.preprocessing import Ragged
from bert_keras.preprocessing.windows import (
    cut_windows,
    document_windows,
    max_context,
)

documents = st.lists(st.integers(0, 30), min_size=1, max_size=5)


def cut_step_by_step(length, window_length, stride):
    """The loop of Google's run_squad.py; it gives no window for an empty document."""
    spans, start = [], 0
    while start < length:
        taken = min(length - start, window_length)
        spans.append((start, taken))
        if start + taken == length:
            break
        start += min(taken, stride)
    return spans or [(0, 0)]


def has_max_context(spans, index, position):
    """The rule of Google's `_check_is_max_context`."""
    scores = [
        min(position - start, start + length - 1 - position) + 0.01 * length
        if start <= position < start + length
        else -1
        for start, length in spans
    ]
    return scores.index(max(scores)) == index


@given(documents, st.integers(1, 9), st.integers(1, 12))
def test_windows_and_the_tokens_that_count_in_them_are_those_of_google_s_loop(
    lengths, window_length, stride
):
    cut = cut_windows(lengths, window_length, stride)
    counts = Ragged.from_flat(max_context(cut), cut.lengths).to_lists()
    expected = []
    for document, length in enumerate(lengths):
        spans = cut_step_by_step(length, window_length, stride)
        for index, (start, taken) in enumerate(spans):
            tokens = range(start, start + taken)
            has_most = [has_max_context(spans, index, token) for token in tokens]
            expected.append((document, start, taken, has_most))
    fields = (field.tolist() for field in cut)
    assert list(zip(*fields, counts, strict=True)) == expected


def test_windows_may_differ_by_document():
    cut = cut_windows([10, 10], window_length=[6, 4], stride=4)
    assert cut.documents.tolist() == [0, 0, 1, 1, 1]
    assert cut.starts.tolist() == [0, 4, 0, 4, 8]
    assert cut.lengths.tolist() == [6, 6, 4, 4, 2]


def test_windows_of_tokens_share_the_documents_tokens():
    rows = Ragged.from_rows([[1, 2, 3, 4, 5], [6]])
    cut = cut_windows(rows.lengths, window_length=3, stride=2)
    taken = rows.windows(cut)
    assert taken.to_lists() == [[1, 2, 3], [3, 4, 5], [6]]
    assert taken.values is rows.values is rows.take([1, 0]).values


test_windows_without_room_or_stride_are_refused = refusals(
    (lambda: cut_windows([5], window_length=3, stride=0), r"stride.*0"),
    (lambda: cut_windows([5, 5], [3, -1], stride=2), "token. Received -1 at the index 1"),
    (lambda: document_windows([3], 0, 1, 2), "room for a token"),
    (lambda: document_windows([3], 4, 0, 2), "stride"),
)
