"""What goes to KerasHub computes the same there, and comes back the same."""

import keras
import numpy as np
import pytest
from checks import TINY

import bert_keras
from bert_keras.models.backbone import Backbone
from bert_keras.presets.families import records

keras_hub = pytest.importorskip("keras_hub", reason="the extra `nlp` is not installed")

# What a family has there, where it is not its constructor's default.
OPTIONS = {
    "Bert": {"activation": "gelu_tanh"},
    "Electra": {"activation": "gelu_tanh", "embedding_dim": 6},
    "Albert": {"embedding_dim": 6, "num_layers": 8, "num_groups": 2, "num_inner_layers": 2},
}
CASES = [(record, task) for record in records("KERAS_HUB") for task in ("Backbone", *record.heads)]
TEXTS = ["a b c d", "h a g g", "b" * 9, "c [MASK] A"]


def shaken(model):
    """Gives every weight another value, so that none is 0 or 1 by chance."""
    rng = np.random.default_rng(0)
    for variable in model.weights:
        value = keras.ops.convert_to_numpy(variable.value)
        variable.assign(value + rng.normal(0, 0.2, value.shape))
    return model


def made(record, task):
    """Returns a tiny model as a family has it there."""
    name, family = next(iter(record.names.items()))
    backbone = getattr(bert_keras, name)(**{**TINY, **OPTIONS.get(family, {})})
    if task == "Backbone":
        return shaken(backbone)
    head, options = record.heads[task], {}
    if "head_options" in head.says:
        options = {"head_options": dict(head.options)}
    return shaken(getattr(bert_keras, task)(backbone, **options))


def inputs_of(model):
    backbone = getattr(model, "backbone", model)
    rng = np.random.default_rng(0)
    mask = (np.arange(10) < np.array([[10], [4], [7]])).astype("int32")
    ids = np.where(mask, rng.integers(5, backbone.vocabulary_size, (3, 10)), 1).astype("int32")
    segments = np.sort(rng.integers(0, 2, (3, 10))).astype("int32")
    positions = np.array([[1, 2], [3, 1], [6, 2]], "int32")
    known = {"padding_mask": mask, "segment_ids": segments, "mask_positions": positions}
    return {name: known.get(name, ids) for name in model.input_names}


def assert_same(actual, expected, mask):
    if not isinstance(expected, dict):
        actual, expected = {"": actual}, {"": expected}
    for name, values in expected.items():
        # What stands at padding means nothing.
        where = mask if name == "sequence_output" else slice(None)
        np.testing.assert_allclose(actual[name][where], values[where], rtol=0, atol=1e-5)


@pytest.mark.filterwarnings("ignore:.*pooler/dense/kernel")
@pytest.mark.parametrize(
    ("record", "task"), CASES, ids=[f"{r.backbone.split('>')[1]}-{task}" for r, task in CASES]
)
def test_outputs_are_equal_there_and_after_the_way_back(record, task, tmp_path):
    model = made(record, task)
    inputs = inputs_of(model)
    mask, expected = inputs["padding_mask"].astype(bool), model.predict(inputs, verbose=0)
    theirs = model.to_keras_hub()
    names = record.heads[task].architecture if task != "Backbone" else ("Backbone",)
    assert type(theirs).__name__ == next(iter(record.names.values())) + names[0]
    there = theirs.predict(inputs, verbose=0)
    if task == "Backbone":
        there = there if isinstance(there, dict) else {"sequence_output": there}
        expected = {name: x for name, x in expected.items() if name in there}
    assert_same(there, expected, mask)
    theirs.save_to_preset(tmp_path / "theirs")
    model.export_to_keras_hub(tmp_path / "ours")
    options = {} if task == "Backbone" else {"preprocessor": None}
    cls = Backbone if task == "Backbone" else type(model)
    for folder in ("theirs", "ours"):
        again = cls.from_preset(tmp_path / folder, **options)
        assert_same(again.predict(inputs, verbose=0), expected, mask)
