"""Blocks that are alike become one function of JAX's graph, without a change of any number."""

import functools

import keras
import numpy as np
import pytest
from checks import assert_close
from tiny import tiny_backbone, tiny_classifier

pytestmark = pytest.mark.once

IDS = {"token_ids": np.arange(5, 17).reshape(2, 6) % 9, "padding_mask": np.ones((2, 6), bool)}


def graph_of(backbone):
    """Returns JAX's graph of a forward pass as text, and its output."""
    import jax

    def forward(values, inputs):
        with keras.StatelessScope(zip(backbone.variables, values, strict=True)):
            return backbone(inputs, training=False)["sequence_output"]

    values = [variable.value for variable in backbone.variables]
    compiled = jax.jit(forward)
    return compiled.lower(values, IDS).as_text(), compiled(values, IDS)


def activations(*functions):
    def change(blocks):
        for block, function in zip(blocks, functions, strict=True):
            block.feed_forward.activation = function

    return change


def adapters(*scales):
    def add(blocks):
        for block, scale in zip(blocks, scales, strict=True):
            if scale is not None:
                block.attention.query.add_adapter(2, scale)

    return add


@pytest.mark.each_backend
@pytest.mark.parametrize(
    ("change", "num_kinds"),
    [
        (lambda blocks: None, 1),
        (lambda blocks: setattr(blocks[1].dropout, "rate", 0.5), 2),
        (activations(keras.ops.tanh, keras.ops.relu, keras.ops.relu), 2),
        (activations(*map(functools.partial, [keras.ops.tanh, keras.ops.relu, keras.ops.sin])), 3),
        (adapters(None, 4.0, 2.0), 3),
    ],
    ids=["equal", "rate", "functions", "partial functions", "adapters"],
)
def test_blocks_of_one_computation_are_one_function(change, num_kinds):
    if keras.backend.backend() != "jax":
        return
    backbone = tiny_backbone(num_layers=3)
    change(backbone.encoder.blocks)
    graph, output = graph_of(backbone)
    assert graph.count("func.func private @function") == num_kinds
    assert_close(output, backbone(IDS)["sequence_output"], 1e-6)


@pytest.mark.each_backend
def test_losses_of_activities_are_kept():
    losses = []
    for run_eagerly in (True, False):
        keras.utils.set_random_seed(1)
        model = tiny_classifier(tiny_backbone(num_layers=2, dropout=0.0))
        for block in model.backbone.encoder.blocks:
            block.feed_forward.activity_regularizer = keras.regularizers.L2(100.0)
        model.compile(run_eagerly=run_eagerly)
        losses.append(float(model.test_on_batch(IDS, np.array([0, 1]), return_dict=True)["loss"]))
    assert losses[0] > 0.75 and losses[1] == pytest.approx(losses[0], abs=1e-6)
