"""What every model must pass, whatever its family or task."""

import warnings

import keras
import numpy as np
import scipy.special


def to_numpy(tensor):
    return keras.ops.convert_to_numpy(tensor)


def assert_close(actual, expected, atol=1e-6):
    np.testing.assert_allclose(to_numpy(actual), to_numpy(expected), rtol=0, atol=atol)


def assert_same_structure_close(actual, expected, atol=1e-6):
    keras.tree.assert_same_structure(actual, expected)
    for a, b in zip(keras.tree.flatten(actual), keras.tree.flatten(expected), strict=True):
        assert_close(a, b, atol)


def perplexity(labels, logits, weights):
    """Exp of the mean negative log-probability of the labels, positions of weight 0 left out."""
    is_masked = np.asarray(weights) > 0
    labels, logits, weights = (np.asarray(x)[is_masked] for x in (labels, logits, weights))
    chosen = np.take_along_axis(scipy.special.log_softmax(logits, -1), labels[..., None], -1)
    return np.exp(np.average(-chosen[..., 0], weights=weights))


def check_everything_is_built(model):
    """All variables exist before the first call: calling makes no more."""
    assert all(layer.built for layer in model._flatten_layers())


def check_config_round_trip(model):
    """`from_config(get_config())` gives the same config, and survives JSON."""
    config = model.get_config()
    again = type(model).from_config(config)
    assert again.get_config() == config
    keras.saving.deserialize_keras_object(keras.saving.serialize_keras_object(model))
    assert len(again.weights) == len(model.weights)


def check_saved_and_reloaded(model, inputs, path):
    """A `.keras` file gives the same numbers back, without any warning."""
    expected = model.predict(inputs, verbose=0)
    model.save(path)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        reloaded = keras.models.load_model(path)
    actual = reloaded.predict(inputs, verbose=0)
    for a, b in zip(keras.tree.flatten(actual), keras.tree.flatten(expected), strict=True):
        np.testing.assert_array_equal(a, b)
    return reloaded
