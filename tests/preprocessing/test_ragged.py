"""Rows of different lengths in one array."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bert_keras.preprocessing import Ragged

pytestmark = pytest.mark.once

rows_of_ints = st.lists(st.lists(st.integers(0, 99), max_size=6), max_size=8)


@given(rows_of_ints)
def test_rows_are_restored(rows):
    made = Ragged.from_rows(rows)
    assert len(made) == len(rows)
    assert made.to_lists() == rows
    assert made.values.dtype == np.int32
    assert Ragged.from_rows(made) is made


@given(rows_of_ints, st.data())
def test_taking_rows_selects_them_without_copying_tokens(rows, data):
    made = Ragged.from_rows(rows)
    index = data.draw(st.lists(st.integers(0, len(rows) - 1), max_size=9) if rows else st.just([]))
    taken = made.take(np.array(index, dtype=np.int64))
    assert taken.to_lists() == [rows[row] for row in index]
    assert taken.values is made.values


@given(rows_of_ints, st.integers(0, 3))
def test_dense_rows_are_padded_on_the_right(rows, extra):
    longest = max(map(len, rows), default=0)
    dense = Ragged.from_rows(rows).to_dense(longest + extra, padding=-1)
    assert dense.shape == (len(rows), longest + extra)
    for row, expected in zip(dense.tolist(), rows, strict=True):
        assert row == expected + [-1] * (longest + extra - len(expected))


def test_scattered_rows_begin_at_their_columns():
    out = np.zeros((3, 5), dtype=np.int32)
    Ragged.from_rows([[1, 2], [], [3]]).scatter(out, np.array([3, 0, 1]))
    assert out.tolist() == [[0, 0, 0, 1, 2], [0, 0, 0, 0, 0], [0, 3, 0, 0, 0]]


def test_floats_stay_floats():
    rows = [[0.25, 0.5], [1.5]]
    assert Ragged.from_rows(rows).to_lists() == rows
    assert Ragged.from_rows([[1, 2], []]).values.dtype == np.int32
    assert Ragged.from_rows([]).values.dtype == np.int32
