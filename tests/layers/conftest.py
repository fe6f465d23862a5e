"""Compares functions that keep little for their gradients with plain formulas."""

import numpy as np
import pytest
from checks import assert_close, compute, gradients, to_numpy


@pytest.fixture(scope="session")
def assert_like():
    """Returns a function that asserts equal values and gradients of two functions.

    Gradients are equal up to `atol` times their largest element, 70 roundings of float32.
    """

    def compare(ours, plain, *inputs, atol=8e-6, value_atol=2e-6):
        values = [to_numpy(compute(f, *inputs)) for f in (ours, plain)]
        assert_close(*values, value_atol)
        pairs = zip(gradients(ours, *inputs), gradients(plain, *inputs), strict=True)
        for found, expected in pairs:
            np.testing.assert_allclose(found, expected, rtol=0, atol=atol * np.abs(expected).max())

    return compare
