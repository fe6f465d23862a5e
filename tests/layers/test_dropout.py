"""Dropout with cheap random numbers: what it drops, what it keeps, and what repeats it."""

import keras
import numpy as np
import pytest
from checks import cases, made_again, to_numpy
from keras import ops

from bert_keras.layers.dropout import Dropout

pytestmark = pytest.mark.once

ONES = np.ones((64, 64), "float32")


def dropped(layer, inputs):
    return to_numpy(ops.cast(layer(inputs, training=True), "float32"))


@pytest.mark.bounded("PyTorch's rate is rounded to 16 bits; the scale changes by up to 8.5e-6.")
@pytest.mark.parametrize("rate", [pytest.param(0.1, marks=pytest.mark.each_backend), 0.5])
def test_it_drops_at_its_rate_and_scales_the_rest(rate):
    num = 400_003  # Not a multiple of four.
    x = np.linspace(1, 2, num, dtype="float32")
    y = dropped(Dropout(rate), x)
    kept = y != 0
    # Four standard deviations of the share of `num` Bernoulli draws.
    assert abs(kept.mean() - (1 - rate)) < 4 * np.sqrt(rate * (1 - rate) / num)
    np.testing.assert_allclose(y[kept], x[kept] / (1 - rate), rtol=2e-5)


@pytest.mark.each_backend
def test_draws_do_not_depend_on_each_other():
    layer = Dropout(0.3)
    kept = np.stack([dropped(layer, np.ones((256, 1024), "float32")) != 0 for _ in range(3)])
    centred = kept - kept.mean()
    flat = centred.reshape(3, -1)
    bound = 4 / np.sqrt(flat.shape[1])
    for distance in (1, 2, 3, 4, 8, 1024):
        pairs = (flat[:, distance:] * flat[:, :-distance]).mean(axis=1) / 0.21
        assert np.all(np.abs(pairs) < bound), distance
    for a, b in ((0, 1), (0, 2), (1, 2)):
        for shift in range(-2, 3):
            assert abs((np.roll(flat[a], shift) * flat[b]).mean() / 0.21) < bound
    counts = kept.sum(axis=(0, 1))  # Each column has 768 draws.
    assert 0.8 < counts.var() / (768 * 0.21) < 1.2


@pytest.mark.each_backend
def test_two_layers_draw_different_masks_and_a_seed_repeats_both():
    runs = []
    for seed in (0, 0, 1):
        keras.utils.set_random_seed(seed)
        layers = [Dropout(0.5), Dropout(0.5)]
        runs.append([dropped(layer, ONES) for layer in layers for _ in range(2)])
    first, again, other = runs
    np.testing.assert_array_equal(first, again)
    assert all(np.any(a != b) for i, a in enumerate(first) for b in first[:i])
    assert np.any(np.asarray(first) != np.asarray(other))


@pytest.mark.each_backend
def test_it_does_nothing_outside_of_training_or_at_a_rate_of_0():
    for arguments in ({}, {"training": False}):
        np.testing.assert_array_equal(to_numpy(Dropout(0.5)(ONES, **arguments)), ONES)
    np.testing.assert_array_equal(dropped(Dropout(0.0), ONES), ONES)


def test_extreme_rates_stay_finite():
    assert not dropped(Dropout(1.0), ONES).any()
    assert all(np.isfinite(dropped(Dropout(rate), ONES)).all() for rate in (1e-7, 1 - 1e-7))


@cases("float16", pytest.param("mixed_bfloat16", marks=pytest.mark.each_backend))
def test_it_keeps_the_dtype(dtype):
    y = Dropout(0.5, dtype=dtype)(ONES, training=True)
    assert keras.backend.standardize_dtype(y.dtype) == keras.DTypePolicy(dtype).compute_dtype
    assert set(np.unique(to_numpy(ops.cast(y, "float32")))) == {0.0, 2.0}


def test_keras_s_options_still_work():
    rows = dropped(Dropout(0.5, noise_shape=(64, 1), seed=3), ONES)
    assert np.all(rows == rows[:, :1])
    layer = Dropout(0.5, seed=3)
    np.testing.assert_array_equal(dropped(layer, ONES), dropped(made_again(layer), ONES))


class PerElement(keras.layers.Layer):
    """A weight for each element, then dropout: its gradient shows the mask of the backward pass."""

    def __init__(self, dropout, adds_residual):
        super().__init__()
        self.dropout, self.adds_residual = dropout, adds_residual

    def build(self, input_shape):
        self.weight = self.add_weight(shape=input_shape[1:], initializer="ones", name="weight")
        self.seen = self.add_weight(shape=input_shape[1:], trainable=False, name="seen")

    def call(self, x, training=False):
        residual = 2.0 * x if self.adds_residual else None
        y = self.dropout(x * self.weight, training=training, residual=residual)
        self.seen.assign(ops.stop_gradient(y[0]))
        return y


@pytest.mark.each_backend
@pytest.mark.parametrize("adds_residual", [False, True])
def test_the_gradient_has_the_mask_of_the_forward_pass(adds_residual):
    layer = PerElement(Dropout(0.3), adds_residual)
    model = keras.Sequential([keras.Input((1000,)), layer])
    model.compile(keras.optimizers.SGD(1.0), loss=lambda _, y: ops.sum(y, axis=-1))
    ones = np.ones((1, 1000), "float32")
    model.fit(ones, ones, verbose=0)
    gradient = 1 - to_numpy(layer.weight)
    output = to_numpy(layer.seen) - 2.0 * adds_residual
    assert 0.6 < (output != 0).mean() < 0.8
    np.testing.assert_allclose(gradient, output, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_precision_keeps_the_mean(dtype):
    x = np.linspace(1, 2, 100_000, dtype="float32")
    x = to_numpy(ops.cast(ops.cast(x, dtype), "float32"))
    y = dropped(Dropout(0.1, dtype=dtype), x)
    kept = y != 0
    assert abs(y[kept].mean() / (x[kept].mean() / 0.9) - 1) < 5e-4


@pytest.mark.once
def test_float64_keeps_its_digits():
    x = np.full((1000,), 1 / 3)
    y = keras.ops.convert_to_numpy(Dropout(0.5, dtype="float64")(x, training=True))
    assert {*y.tolist()} == {0.0, 2 / 3}


@pytest.mark.each_backend
def test_cheaper_functions_are_used_where_there_are_some(monkeypatch):
    def refuse(*arguments, **options):
        raise AssertionError("Keras's own dropout was called")

    monkeypatch.setattr(keras.layers.Dropout, "call", refuse)
    dropped(Dropout(0.5), ONES)
