"""Initial values: BERT's distribution, the same on every backend."""

import keras
import numpy as np
import pytest
from checks import made_again, to_numpy
from scipy import stats
from tiny import tiny_classifier

from bert_keras.layers.initializer import RandomNormal, TruncatedNormal

pytestmark = pytest.mark.once


def test_values_are_those_of_a_truncated_normal():
    values = to_numpy(TruncatedNormal(mean=1.0, stddev=0.5, seed=3)((300, 400)))
    assert values.dtype == "float32" and np.abs(values - 1).max() <= 1.0
    expected = stats.truncnorm(-2, 2, loc=1.0, scale=0.5)
    assert stats.kstest(values.ravel(), expected.cdf).pvalue > 0.01


@pytest.mark.each_backend
def test_numpy_draws_the_values_so_they_are_the_same_on_every_backend():
    drawn = np.random.default_rng(7).standard_normal((2, 3), dtype="float32")
    assert np.abs(drawn).max() <= 2  # No value is redrawn.
    values = to_numpy(TruncatedNormal(stddev=0.5, seed=7)((2, 3)))
    np.testing.assert_array_equal(values, drawn * np.float32(0.5))


def test_models_start_equal_after_the_same_seed_but_no_two_variables_do():
    def weights():
        keras.utils.set_random_seed(5)
        return [to_numpy(weight) for weight in tiny_classifier(num_classes=2).weights]

    first, second = weights(), weights()
    np.testing.assert_equal(first, second)
    kernels = [weight for weight in first if weight.ndim == 2 and weight.std() > 0]
    assert len({kernel.ravel()[0] for kernel in kernels}) == len(kernels) > 5


def test_heads_start_as_in_transformers_without_truncation():
    values = to_numpy(RandomNormal(stddev=0.5)((300, 400)))
    assert stats.kstest(values.ravel(), stats.norm(scale=0.5).cdf).pvalue > 0.01


@pytest.mark.parametrize("make", [TruncatedNormal, RandomNormal])
@pytest.mark.parametrize("dtype", [None, "float16", "bfloat16"])
def test_any_dtype_shape_and_the_config_are_kept(make, dtype):
    initializer = make(stddev=0.1)
    assert made_again(initializer).stddev == 0.1
    for shape in ((), (5,), (0, 3)):
        values = initializer(shape, dtype)
        assert tuple(values.shape) == shape
        assert keras.backend.standardize_dtype(values.dtype) == (dtype or "float32")
