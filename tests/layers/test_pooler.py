"""The mean of a text's vectors."""

import numpy as np
import pytest
from checks import assert_close, to_numpy
from keras import ops

from bert_keras.layers.pooler import pool


@pytest.mark.parametrize("has_mask", [True, False])
def test_a_mean_in_half_precision_is_rounded_once(has_mask):
    # Above 256, bfloat16 has no odd numbers: a sum of ones would stop there.
    states = np.random.default_rng(0).uniform(1, 2, (2, 400, 3)).astype("float32")
    states = ops.cast(states, "bfloat16")
    mask = np.ones((2, 400), "int32") if has_mask else None
    pooled = pool({"sequence_output": states}, mask, "mean")
    expected = to_numpy(ops.cast(states, "float32")).mean(axis=1)
    assert pooled.dtype == states.dtype
    rounded = ops.cast(ops.cast(expected, "bfloat16"), "float32")
    assert_close(ops.cast(pooled, "float32"), rounded, 0)
