"""A shuffle computed place by place, without a permutation in memory."""

import numpy as np

# Four rounds already look random, except for halves of few bits.
ROUNDS = 8


def shuffled(places, count, seed):
    """Returns the number of the item, out of `count`, at each place of a shuffled order.

    A Feistel network permutes all numbers with an even number of bits: each round replaces the
    halves `(left, right)` by `(right, left ^ hash(right + key))`, which is reversible for any
    hash. A result that is not below `count` is permuted again until it is ("cycle walking"), so
    the numbers below `count` are permuted among themselves. There are at most four times as many
    numbers in all, so four turns suffice on average.

    Args:
        places: int `(n,)`, from 0 to `count - 1`.
        count: int.
        seed: int or list of int, not negative.

    Returns:
        int64 `(n,)`. All places together have each number below `count` once.

    Reference: Black and Rogaway 2002, Ciphers with Arbitrary Finite Domains.

    Example:

    >>> sorted(shuffled(range(5), 5, seed=1).tolist())
    [0, 1, 2, 3, 4]
    """
    half_bits = max(1, ((count - 1).bit_length() + 1) // 2)
    keys = np.random.default_rng(seed).integers(1 << 64, size=ROUNDS, dtype=np.uint64)
    values = np.array(places, np.uint64)
    outside = np.arange(len(values))
    while len(outside):
        values[outside] = _permuted(values[outside], np.uint64(half_bits), keys)
        outside = outside[values[outside] >= count]
    return values.astype(np.int64)


def _permuted(values, half_bits, keys):
    mask = (np.uint64(1) << half_bits) - np.uint64(1)
    left, right = values >> half_bits, values & mask
    for key in keys:
        left, right = right, left ^ (_hash(right + key) & mask)
    return (left << half_bits) | right


def _hash(values):
    """Returns 64 bits, each of which depends on all bits of a value, as SplitMix64 ends."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))
