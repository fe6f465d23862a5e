"""A weighted mean of all layers' states."""

import keras
import numpy as np
import pytest
from checks import assert_close

from bert_keras.layers.scalar_mix import LayerMix

pytestmark = pytest.mark.once

HIDDEN_STATES = np.random.default_rng(0).normal(size=(2, 5, 3, 4)).astype("float32")


def test_it_starts_as_the_mean_of_the_layers():
    assert_close(LayerMix()(HIDDEN_STATES), HIDDEN_STATES.mean(axis=2))


@pytest.mark.each_backend
def test_the_sum_is_weighted_by_a_softmax_and_scaled():
    mix = LayerMix()
    mix.build(HIDDEN_STATES.shape)
    mix.weights_of_states.assign(np.log([1.0, 2.0, 5.0]))
    mix.scale.assign(3.0)
    expected = 3 * np.einsum("bskd,k->bsd", HIDDEN_STATES, [1 / 8, 2 / 8, 5 / 8])
    assert_close(mix(HIDDEN_STATES), expected, 1e-5)


def test_a_model_with_it_survives_a_keras_file(reloaded):
    states = keras.Input((None, 3, 4))
    model = keras.Model(states, LayerMix()(states))
    model.layers[-1].weights_of_states.assign([0.1, -2.0, 1.0])
    again = reloaded(model)
    assert_close(again(HIDDEN_STATES), model(HIDDEN_STATES), 0)
