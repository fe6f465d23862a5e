import numpy as np
import pytest

from bert_keras.corpora.shuffling import shuffled


@pytest.mark.parametrize("count", [1, 2, 3, 5, 64, 65, 1000, 4097])
def test_a_shuffled_order_is_a_permutation(count):
    order = shuffled(range(count), count, [3, 0])
    assert sorted(order.tolist()) == list(range(count))
    # By any part of the places at a time.
    parts = [shuffled(range(start, min(start + 7, count)), count, [3, 0]) for start in (0, 7)]
    assert np.concatenate(parts).tolist() == order[:14].tolist()


def test_orders_of_seeds_are_as_even_as_random_ones():
    count, seeds = 6, 300
    table = np.zeros((count, count))
    pairs = np.zeros((count, count))
    for seed in range(seeds):
        order = shuffled(range(count), count, seed)
        table[np.arange(count), order] += 1
        pairs[order[:-1], order[1:]] += 1
    expected = seeds / count
    # 25 degrees of freedom: more than 60 comes once in ten thousand times.
    assert np.sum((table - expected) ** 2 / expected) < 60
    neighbours = pairs[~np.eye(count, dtype=bool)]
    expected = seeds * (count - 1) / len(neighbours)
    assert np.sum((neighbours - expected) ** 2 / expected) < 70


def test_a_large_order_has_no_trend():
    count = 1 << 20
    places = np.arange(0, count, 8)
    order = shuffled(places, count, 0)
    assert abs(np.corrcoef(places, order)[0, 1]) < 0.01
    assert abs(np.mean(np.diff(order) > 0) - 0.5) < 0.005
    assert abs(np.corrcoef(places, shuffled(places, count, 1))[0, 1]) < 0.01
    assert abs(np.corrcoef(order, shuffled(places, count, 1))[0, 1]) < 0.01
