"""Layers skip Keras's `__call__` only where it would change nothing."""

import keras
import numpy as np
import pytest
from checks import cases
from tiny import tiny_classifier

from bert_keras import TextClassifier
from bert_keras.engine.fast_layer_call import DirectCall

pytestmark = pytest.mark.once

BACKEND = keras.backend.backend()
INPUTS = {"token_ids": np.arange(12).reshape(2, 6) % 9, "padding_mask": np.tri(2, 6, 3, "int32")}


class Counted(DirectCall, keras.layers.Layer):
    """Notes how Keras's own call saw it: nothing where the call was direct."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.built, self.seen = True, []

    def call(self, x, training=None):
        self.seen.append(training)
        return x * 2


@pytest.fixture
def asked(noted):
    """The layers that `Layer.__call__` is called with, a list that grows."""
    return noted(keras.layers.Layer, "__call__")


def inside(layer, x, dtype=None, **kwargs):
    """Calls a layer within the call of another."""

    class Outer(keras.layers.Layer):
        def call(self, x, training=None):
            return layer(x, **kwargs)

    outer = Outer(dtype=dtype)
    outer._convert_input_args = False  # It passes `x` on as it is.
    return outer(x, training=True)


@pytest.mark.each_backend
@cases(
    ({}, "float32", {}, True),
    ({}, "int32", {}, True),
    ({}, "float32", {"training": True}, True),
    ({}, "float32", {"training": False}, False),
    ({}, "float16", {}, False),
    ({"built": False}, "float32", {}, False),
    ({"_dtype_policy": keras.dtype_policies.DTypePolicyMap()}, "float32", {}, False),
    ({"activity_regularizer": keras.regularizers.L2(1.0)}, "float32", {}, False),
)
def test_a_call_is_direct_where_keras_would_add_nothing(
    asked, attributes, dtype, kwargs, is_direct
):
    layer = Counted()
    for name, value in attributes.items():
        setattr(layer, name, value)
    outputs = inside(layer, keras.ops.ones((2, 3), dtype), **kwargs)
    assert (layer not in asked) == (is_direct and BACKEND == "torch")
    assert layer.seen[-1] is kwargs.get("training", True)
    np.testing.assert_array_equal(keras.ops.convert_to_numpy(outputs), 2 * np.ones((2, 3)))


@pytest.mark.parametrize("autocast", [True, False])
def test_a_layer_without_autocast_in_one_of_mixed_precision_is_called_by_keras(asked, autocast):
    layer = Counted(dtype="mixed_bfloat16", autocast=autocast)
    inside(layer, keras.ops.ones((2, 3), "bfloat16"), dtype="mixed_bfloat16")
    assert (layer not in asked) == autocast


def test_a_layer_of_a_remat_scope_is_called_by_keras(asked):
    with keras.RematScope("full"):
        layer = Counted()
    inside(layer, keras.ops.ones((2, 3)))
    assert layer in asked


@pytest.mark.parametrize("adds_losses", [False, True])
def test_predict_is_called_by_keras_where_layers_add_losses(asked, adds_losses):
    classifier = tiny_classifier()
    if adds_losses:
        classifier.head.activity_regularizer = keras.regularizers.L2(1.0)
    first = classifier.predict(INPUTS, verbose=0)
    asked.clear()
    np.testing.assert_array_equal(classifier.predict(INPUTS, verbose=0), first)
    assert asked == ([classifier, classifier.head] if adds_losses else [])
    assert len(classifier.losses) == adds_losses  # Of the last call alone.
    classifier(INPUTS)  # After `predict`, a call of the user's own is an outermost one again.
    assert asked[-1 - adds_losses] is classifier


def test_layers_do_not_train_in_a_model_whose_call_takes_no_training():
    """As in Keras, and so on the other backends."""

    class Outer(TextClassifier):
        def call(self, inputs):
            counted(inputs["token_ids"])
            return super().call(inputs)

    counted = Counted()
    outer = Outer(tiny_classifier().backbone, num_classes=2)
    outer.train_on_batch(INPUTS, np.array([0, 1]))
    assert counted.seen[-1] is None


def test_a_step_has_the_losses_of_its_own_call():
    """A step is called by Keras, which clears earlier losses, only where a layer has some."""
    classifier = tiny_classifier()
    labels = np.array([0, 1])
    for rate in (0.0, 1.0, 1.0, 0.0):  # The regularizer's, from one step to the next.
        penalty = keras.regularizers.L2(rate) if rate else None
        classifier.head.activity_regularizer = penalty
        logits = classifier(INPUTS)
        expected = classifier.compute_loss(y=labels, y_pred=logits)  # With the call's losses.
        classifier.head.activity_regularizer = keras.regularizers.L2(2.0)
        classifier(INPUTS)  # Between two steps, as in a callback.
        classifier.head.activity_regularizer = penalty
        loss, *_ = classifier.test_on_batch(INPUTS, labels)
        np.testing.assert_allclose(loss, keras.ops.convert_to_numpy(expected), rtol=1e-5)


def test_hooks_run():
    import torch
    from torch.nn.modules.module import register_module_forward_hook

    layer, calls = Counted(), []
    x = torch.ones((2, 3), requires_grad=True)
    handle = layer.register_full_backward_hook(lambda module, *_: calls.append(module))
    inside(layer, x).sum().backward()
    handle.remove()
    assert calls == [layer]
    calls.clear()
    for register in (layer.register_forward_hook, register_module_forward_hook):
        handle = register(lambda module, *_: calls.append(module))
        inside(layer, keras.ops.ones((2, 3)))
        handle.remove()
        assert calls.count(layer) == 1
        calls.clear()
    inside(layer, keras.ops.ones((2, 3)))
    assert not calls


@pytest.mark.parametrize("dtype", ["float32", "mixed_bfloat16", "bfloat16", "float64"])
def test_outputs_are_those_of_keras_s_way(dtype, monkeypatch):
    model = tiny_classifier(dtype=dtype).backbone
    direct = model(INPUTS, return_hidden_states=True)["hidden_states"]
    monkeypatch.setattr(DirectCall, "__call__", keras.layers.Layer.__call__)
    by_keras = model(INPUTS, return_hidden_states=True)["hidden_states"]
    for ours, theirs in zip(direct, by_keras, strict=True):
        assert ours.dtype == theirs.dtype and bool((ours == theirs).all())
