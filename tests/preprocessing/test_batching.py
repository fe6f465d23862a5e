"""Batches of rows of similar length."""

import functools
import itertools

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bert_keras.preprocessing import BucketedBatches, Ragged, length_buckets, sorted_batches
from bert_keras.preprocessing.batching import (
    batches_in_order,
    bucket_lengths,
    choose_bucket_lengths,
)
from bert_keras.preprocessing.collate import Rows

pytestmark = pytest.mark.once

lengths_lists = st.lists(st.integers(1, 200), min_size=1, max_size=80)


def make_inputs(rows, length):
    return {"token_ids": np.repeat(rows[:, None], length, axis=1).astype(np.int32)}


class Numbered(Rows):
    """Rows whose tokens all are the row's number."""

    inputs = staticmethod(make_inputs)


def batches_of(lengths, labels=None, sample_weight=None, buckets=None, **options):
    rows = Numbered(lengths).labelled(labels, sample_weight)
    rows.buckets = buckets or length_buckets(max(lengths))
    return BucketedBatches(rows, **options)


# Buckets that no batch needs to grow to.
fixed = functools.partial(batches_of, shuffle=False, buckets=(4,))


def rows_of(batches):
    return [batches[index][0]["token_ids"][:, 0].tolist() for index in range(len(batches))]


def test_buckets_are_narrow_for_short_texts_and_the_smallest_is_chosen():
    expected = (16, 32, 48, 64, 96, 128, 192, 256, 320, 384, 448, 512)
    assert length_buckets(512, step=16) == expected
    found = length_buckets(200)
    assert found == (*range(16, 64, 8), 64, 80, 96, 112, 128, 160, 192, 200)
    assert (length_buckets(16), length_buckets(7)) == ((16,), (7,))
    assert length_buckets(100) == (16, 24, 32, 40, 48, 56, 64, 80, 96, 100)
    assert length_buckets(18, step=4, first=4) == (4, 8, 12, 16, 18)
    assert bucket_lengths([1, 16, 17, 64], (16, 32, 64)).tolist() == [16, 16, 32, 64]


@given(lengths_lists, st.integers(1, 9), st.booleans(), st.integers(1, 4))
def test_the_order_does_not_depend_on_the_buckets(lengths, batch_size, shuffle, window):
    options = {"batch_size": batch_size, "shuffle": shuffle, "window": window}
    buckets = [length_buckets(max(lengths), step) for step in (8, 4)]
    coarse, fine = (batches_of(lengths, buckets=x, **options) for x in buckets)
    assert rows_of(coarse) == rows_of(fine)
    assert all(a[1] >= b[1] for a, b in zip(coarse.batches, fine.batches, strict=True))


@given(lengths_lists, st.integers(1, 9), st.integers(1, 900) | st.none())
def test_sorted_batches_hold_each_row_once_within_the_budget(lengths, batch_size, token_budget):
    batches = sorted_batches(lengths, batch_size, token_budget)
    rows = np.concatenate([rows for rows, _ in batches])
    assert sorted(rows) == list(range(len(lengths)))
    in_order = batches_in_order(batches_of(lengths).rows, batch_size).batches
    assert np.concatenate([rows for rows, _ in in_order]).tolist() == list(range(len(lengths)))
    assert all(len(rows) == batch_size for rows, _ in in_order[:-1])
    padded = [length for _, length in batches]
    assert padded == sorted(padded, reverse=True)
    for rows, length in batches:
        assert np.asarray(lengths)[rows].max() <= length
        if token_budget is None:
            assert len(rows) <= batch_size
        else:
            assert len(rows) == 1 or len(rows) * length <= token_budget
            assert len(rows) <= 4 or len(rows) % 4 == 0 or rows is batches[-1][0]
    # One shape per bucket, and that of the last batch.
    assert len({(len(rows), length) for rows, length in batches[:-1]}) == len(set(padded[:-1]))


@given(
    st.dictionaries(st.sampled_from((4, 8, 12, 16, 24)), st.integers(1, 9), min_size=1),
    st.integers(1, 3),
    st.integers(0, 200),
)
def test_the_chosen_lengths_minimize_padding_and_compilation(rows, num_epochs, price):
    def cost(chosen):
        padded = sum(n * min(c for c in chosen if c >= length) for length, n in rows.items())
        return len(chosen) * price + padded * num_epochs

    batches = [(range(n), length) for length, n in rows.items()]
    found = choose_bucket_lengths(batches, (4, 8, 12, 16, 24, 32), num_epochs, price)
    shorter = sorted(rows)[:-1]
    subsets = (c for size in range(len(rows)) for c in itertools.combinations(shorter, size))
    assert cost(found) == min(cost((*subset, max(rows))) for subset in subsets)
    assert found[-1] == max(rows)
    assert list(found) == sorted(set(found))


@example([20, 20, 1], 1, False, 1)  # The shortest batch is the second.
@given(lengths_lists, st.integers(1, 9), st.booleans(), st.integers(1, 4))
def test_an_epoch_holds_each_row_once(lengths, batch_size, shuffle, window):
    options = {"batch_size": batch_size, "shuffle": shuffle, "window": window}
    batches = batches_of(lengths, **options)
    assert len(batches) == -(-len(lengths) // batch_size)
    seen = rows_of(batches)
    assert sorted(row for rows in seen for row in rows) == list(range(len(lengths)))
    assert all(len(rows) <= batch_size for rows in seen)
    padded = [batches[index][0]["token_ids"].shape[1] for index in range(len(batches))]
    assert set(padded) <= set(batches.buckets)
    # On TensorFlow Keras learns from the first two batches which axes vary.
    assert len(set(padded)) == 1 or padded[0] != padded[1]


def test_the_order_depends_only_on_seed_and_epoch():
    lengths = np.random.default_rng(0).integers(1, 120, 100)

    def order(**options):
        return rows_of(batches_of(lengths, batch_size=8, **options))

    batches = batches_of(lengths, batch_size=8, seed=3)
    epochs = []
    for batches.epoch in (2, 1, 0):
        epochs.append(rows_of(batches))
    assert epochs[0] != epochs[1] != epochs[2]
    assert order(seed=3) == epochs[2] != order(seed=4)


def test_little_is_wasted_on_padding():
    lengths = np.random.default_rng(0).geometric(1 / 25, 10_000).clip(3, 200)
    batches = batches_of(lengths, batch_size=32, window=100)
    padded = sum(len(rows) * length for rows, length in batches.batches)
    assert padded < 1.05 * bucket_lengths(lengths, batches.buckets).sum()
    unsorted = batches_of(lengths, batch_size=32, window=1)
    assert padded < 0.5 * sum(len(rows) * length for rows, length in unsorted.batches)
    assert len({length for _, length in batches.batches}) <= len(batches.buckets)


@pytest.mark.parametrize(("num_rows", "window"), [(1, 4), (3668, 28), (5749, 44), (67349, 100)])
def test_small_sets_sort_fewer_batches_together(num_rows, window):
    assert batches_of([5] * num_rows, batch_size=32).window == window


def test_the_epoch_advances_only_after_all_its_batches_were_read():
    batches = batches_of([5] * 10, batch_size=4)
    first = rows_of(batches)
    batches.on_epoch_end()
    assert batches.epoch == 0, "Keras calls on_epoch_end before the first epoch"
    batches.on_epoch_begin()
    batches[0]
    batches.on_epoch_end()
    assert batches.epoch == 0, "Keras reads a batch to build the model"
    batches.on_epoch_begin()
    assert rows_of(batches) == first
    batches.on_epoch_end()
    assert batches.epoch == 1 and rows_of(batches) != first


def test_unshuffled_batches_keep_their_order():
    assert sorted_batches([]) == []
    batches = batches_of([5, 50, 20, 7], batch_size=2, shuffle=False)
    first = rows_of(batches)
    assert first == [[1, 2], [3, 0]]
    batches.on_epoch_begin()
    rows_of(batches)
    batches.on_epoch_end()
    assert (rows_of(batches), batches.epoch) == (first, 0)


def test_labels_per_token_are_padded_and_padding_has_no_weight():
    labels = Ragged.from_rows([[1, 2, 3], [4]])
    by_token = Ragged.from_rows([[0, 1.5, 0], [1]])
    for given_weights, expected in [
        (None, [[1, 1, 1, 0], [1, 0, 0, 0]]),
        ([0.5, 2.0], [[0.5, 0.5, 0.5, 0], [2, 0, 0, 0]]),
        (by_token, [[0, 1.5, 0, 0], [1, 0, 0, 0]]),
    ]:
        _, y, weights = fixed([3, 1], labels, given_weights)[0]
        assert y.tolist() == [[1, 2, 3, 0], [4, 0, 0, 0]]
        assert weights.tolist() == expected
    _, y, weights = fixed([3, 1], {"tags": labels, "kind": [7, 8]})[0]
    assert y["kind"].tolist() == [7, 8]
    assert weights["kind"].tolist() == [1, 1]
    assert weights["tags"].tolist() == [[1, 1, 1, 0], [1, 0, 0, 0]]


@pytest.mark.parametrize(("sample_weight", "each"), [(None, 1.0), (np.full(10, 0.5), 0.5)])
def test_rows_that_fill_up_the_last_batch_have_no_weight(sample_weight, each):
    options = {"batch_size": 4, "pad_last_batch": True}
    batches = batches_of([5] * 10, np.arange(10), sample_weight, **options)
    kept = []
    for index in range(len(batches)):
        inputs, labels, weights = batches[index]
        assert inputs["token_ids"].shape[0] == len(labels) == 4
        assert set(weights) <= {0, each}
        kept += labels[weights > 0].tolist()
    assert sorted(kept) == list(range(10))
    assert sample_weight is None or (sample_weight == 0.5).all()
    ragged = Ragged.from_rows([[1, 1]] * 3)
    batches = batches_of([2] * 3, ragged, batch_size=2, pad_last_batch=True)
    assert sum(batches[index][2].sum() for index in range(2)) == 6
