"""Outputs of a backbone that every head can read."""

import numpy as np
import pytest


@pytest.fixture
def outputs():
    x = np.random.default_rng(0).normal(size=(2, 5, 4)).astype("float32")
    return {"sequence_output": x, "pooled_output": x[:, 1]}
