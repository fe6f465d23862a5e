"""Rematerialization changes what is kept for the backward pass, but no numbers."""

import keras
import numpy as np
import pytest
from checks import (
    assert_close,
    assert_same_structure_close,
    cases,
    check_config_round_trip,
    to_numpy,
)
from tiny import LETTERS, ready_inputs, tiny_backbone, tiny_classifier

import bert_keras
from bert_keras.engine.remat import rematerialized
from bert_keras.models.bert import bert_block

pytestmark = pytest.mark.once

TEXTS = [" ".join(LETTERS[i : i + 3]) for i in range(5)] * 2
LABELS = [0, 1, 0, 1, 1] * 2


def classifier(remat, frozen=None, **options):
    keras.utils.set_random_seed(1)
    backbone = tiny_backbone(**{"num_layers": 2, "dropout": 0.3, "remat": remat, **options})
    model = tiny_classifier(backbone, frozen=frozen)
    # Initial weights of 0.02 are too small for their gradients to matter.
    for weight in model.weights:
        if "float" in weight.dtype:
            weight.assign_add(0.1 * np.cos(np.arange(np.prod(weight.shape))).reshape(weight.shape))
    return model


BATCH = ready_inputs(4, 7), np.array([0, 1, 1, 0])


def assert_same_steps(atol=1e-6, compile_options=None, **options):
    """Asserts that with and without `remat` a step of gradient descent does the same.

    Returns:
        What the step at the rate 1 subtracts from each weight, and the model with `remat`.
    """
    steps = []
    for remat in (False, True):
        model = classifier(remat, **options)
        before = [to_numpy(v).copy() for v in model.trainable_variables]
        model.compile(keras.optimizers.SGD(1.0), **(compile_options or {}))
        keras.utils.set_random_seed(2)  # PyTorch draws its masks from this generator.
        loss = model.train_on_batch(*BATCH, return_dict=True)["loss"]
        after = map(to_numpy, model.trainable_variables)
        steps.append([float(loss), *(a - b for a, b in zip(before, after, strict=True))])
    assert_same_structure_close(*steps, atol)
    return steps[0][1:], model


@pytest.mark.xla
@pytest.mark.parametrize(
    "compile_options",
    [pytest.param({}, marks=pytest.mark.each_backend), {"run_eagerly": True}],
    ids=["compiled", "eager"],
)
def test_loss_and_gradients_are_the_same_with_active_dropout(compile_options):
    gradients, model = assert_same_steps(compile_options=compile_options, num_layers=1)
    assert max(np.abs(gradient).max() for gradient in gradients) > 0.01
    # Masks are drawn anew for every step.
    model.optimizer.learning_rate = 0.0
    losses = [float(model.train_on_batch(*BATCH)[0]) for _ in range(3)]
    assert len({round(loss, 6) for loss in losses}) == 3


@cases(({"frozen": 1}, 1e-6), ({"dtype": "mixed_bfloat16"}, 0.05))  # Bfloat16's own rounding.
def test_frozen_blocks_and_mixed_precision_have_the_same_gradients(options, atol):
    assert_same_steps(atol, **options)


@pytest.mark.also_on("tensorflow")
def test_a_single_layer_has_the_same_output_and_advances_its_generators_equally():
    block = bert_block(tiny_backbone(dropout=0.3), "block")
    block.build()
    x = keras.random.normal((2, 5, 16), seed=0)
    starts = [to_numpy(v).copy() for v in block.variables]
    outputs, ends = [], []
    for call in (
        lambda: block(x, training=True)[0],
        lambda: rematerialized(block, x, training=True),
    ):
        for variable, start in zip(block.variables, starts, strict=True):
            variable.assign(start)
        keras.utils.set_random_seed(3)
        outputs.append([to_numpy(call()), to_numpy(call())])
        ends.append([to_numpy(v).copy() for v in block.variables])
    assert_same_structure_close(*outputs)
    assert np.abs(outputs[0][0] - outputs[0][1]).max() > 0.005
    assert_same_structure_close(*ends, 0)


def test_each_block_is_computed_twice_in_training_only_and_returns_attentions(noted):
    calls = noted(keras, "remat")
    inputs, labels = BATCH
    model = classifier(remat=True)
    model.predict(inputs, verbose=0)
    model.evaluate(inputs, labels, verbose=0)
    assert not calls
    model.backbone(inputs, training=True)
    assert len(calls) == 2
    outputs = model.backbone(inputs, return_attentions=True, training=True)
    assert [tuple(a.shape) for a in outputs["attentions"]] == [(4, 2, 7, 7)] * 2


def test_a_keras_file_keeps_remat_and_a_preset_does_not(tmp_path, reloaded):
    model = classifier(remat=True)
    check_config_round_trip(model.backbone)
    loaded = reloaded(model)
    assert loaded.backbone.remat and loaded.backbone.encoder.remat
    model.save_to_preset(tmp_path / "preset")
    assert "remat" not in (tmp_path / "preset" / "config.json").read_text()
    for remat in (False, True):
        options = {"backbone": {"remat": remat}}
        again = bert_keras.TextClassifier.from_preset(tmp_path / "preset", **options)
        assert again.backbone.encoder.remat is remat
        assert_close(again.predict(TEXTS, verbose=0), model.predict(TEXTS, verbose=0))
