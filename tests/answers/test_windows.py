import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bert_keras.answers.windows import cut_windows, document_positions, max_context
from bert_keras.preprocessing import Ragged, pack
from bert_keras.tokenizers import Layout

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
def test_windows_are_those_of_google_s_loop(lengths, window_length, stride):
    cut = cut_windows(lengths, window_length, stride)
    expected = [
        (document, *span)
        for document, length in enumerate(lengths)
        for span in cut_step_by_step(length, window_length, stride)
    ]
    assert list(zip(*(field.tolist() for field in cut), strict=True)) == expected


@given(documents, st.integers(1, 9), st.integers(1, 12))
def test_each_token_counts_in_the_window_google_s_rule_says(lengths, window_length, stride):
    cut = cut_windows(lengths, window_length, stride)
    best = Ragged.from_flat(max_context(cut), cut.lengths)
    for document, length in enumerate(lengths):
        spans = cut_step_by_step(length, window_length, stride)
        rows = np.flatnonzero(cut.documents == document)
        for index, (row, (start, taken)) in enumerate(zip(rows, spans, strict=True)):
            expected = [has_max_context(spans, index, start + left) for left in range(taken)]
            assert best[row].tolist() == expected
    assert best.values.sum() == sum(lengths)


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
    assert taken.values is rows.values


def test_columns_of_packed_windows_know_their_tokens():
    questions = Ragged.from_rows([[50, 51], [60]])
    contexts = Ragged.from_rows([list(range(10, 17)), [20, 21]])
    max_length = 10
    cut = cut_windows(contexts.lengths, max_length - 3 - questions.lengths, stride=3)
    inputs = pack(
        questions.take(cut.documents),
        contexts.windows(cut),
        layout=Layout((2,), (3,), (3,), 1),
        pad_id=0,
        max_length=max_length,
        truncation="only_second",
    )
    first_columns = questions.lengths[cut.documents] + 2
    positions = document_positions(cut, first_columns, max_length)
    for row, columns in enumerate(positions):
        found = inputs["token_ids"][row, columns >= 0]
        assert found.tolist() == contexts[cut.documents[row]][columns[columns >= 0]].tolist()
        assert (columns >= 0).sum() == cut.lengths[row]


def test_windows_without_room_are_refused():
    with pytest.raises(ValueError, match=r"stride.*0"):
        cut_windows([5], window_length=3, stride=0)
    with pytest.raises(ValueError, match="window_length=-1 for document 1"):
        cut_windows([5, 5], window_length=[3, -1], stride=2)
