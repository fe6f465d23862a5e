"""A pytest plugin that finds tests which pass by luck: `make test-margins`, see CONTRIBUTING.md.

- `SHIFT_SEEDS=7` adds 7 to each seed of NumPy, `random`, PyTorch and Keras. Lists of
  seeds, which the package makes of these, stay: its other processes make them too.
- `DIVIDE_TOLERANCES=4` divides the tolerances of `assert_allclose` and `approx`. A test marked
  `bounded(reason)` keeps its tolerances: they follow from the rounding of a format or the size of a
  sample.
"""

import functools
import numbers
import os
import random

import keras
import numpy as np
import pytest
import torch

SHIFT = int(os.environ.get("SHIFT_SEEDS", "0"))
DIVISOR = float(os.environ.get("DIVIDE_TOLERANCES", "1"))
assert_allclose, approx = np.testing.assert_allclose, pytest.approx
divisor = 1.0


def shifted(seed):
    return int(seed) + SHIFT if isinstance(seed, numbers.Integral) else seed


class RandomState(np.random.RandomState):
    def __init__(self, seed=None):
        super().__init__(shifted(seed))


class Random(random.Random):
    def seed(self, a=None, version=2):
        super().seed(shifted(a), version)


def shift_seeds_of(module, name):
    function = getattr(module, name)

    @functools.wraps(function)
    def with_shifted_seed(seed=None, *arguments, **options):
        return function(shifted(seed), *arguments, **options)

    setattr(module, name, with_shifted_seed)


def shift_seed_generators(initialize=keras.random.SeedGenerator.__init__):
    def __init__(self, seed=None, *arguments, **options):
        initialize(self, shifted(seed), *arguments, **options)
        self._initial_seed = seed  # What a config tells.

    keras.random.SeedGenerator.__init__ = __init__


def assert_closer(actual, desired, rtol=1e-7, atol=0, *arguments, **options):
    __tracebackhide__ = True
    assert_allclose(actual, desired, rtol / divisor, atol / divisor, *arguments, **options)


def closer(expected, rel=None, abs=None, nan_ok=False):
    if rel is None and abs is None:  # pytest's defaults.
        rel, abs = 1e-6, 1e-12
    rel, abs = (None if value is None else value / divisor for value in (rel, abs))
    return approx(expected, rel, abs, nan_ok)


def pytest_configure():
    if SHIFT:
        random.Random, np.random.RandomState = Random, RandomState
        shift_seeds_of(random, "seed")
        shift_seeds_of(np.random, "default_rng")
        shift_seeds_of(np.random, "seed")
        shift_seeds_of(torch, "manual_seed")
        shift_seeds_of(keras.utils, "set_random_seed")
        shift_seed_generators()
    if DIVISOR != 1:
        np.testing.assert_allclose, pytest.approx = assert_closer, closer


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    global divisor
    mark = item.get_closest_marker("bounded")
    if mark and not (mark.args and isinstance(mark.args[0], str)):
        pytest.fail("Give the reason: `bounded(reason)`.")
    divisor = 1.0 if mark else DIVISOR
