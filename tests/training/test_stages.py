"""Parts of a backbone by depth, found by the paths of its own weights."""

import re

import keras
import pytest

import bert_keras
from bert_keras.training.stages import layer_wise_decay, stages_from_the_top

pytestmark = pytest.mark.once


class Block(keras.layers.Layer):
    """A layer with two layers of its own."""

    def __init__(self, name):
        super().__init__(name=name)
        self.parts = [keras.layers.Dense(2, name=part) for part in ("attention", "output")]

    def build(self, input_shape=None):
        for part in self.parts:
            part.build((None, 2))


class Other(keras.layers.Layer):
    """A backbone with other names of layers, a shared block, and a norm at the top."""

    def __init__(self, name="another_one"):
        super().__init__(name=name)
        shared, last = Block("group"), Block("group_1")
        self.table = keras.layers.Dense(2, name="lookup")
        self.norm = keras.layers.LayerNormalization(name="norm")
        self.num_blocks = 2
        self.stages = [self.table, shared, shared, last]
        self.build()

    def build(self, input_shape=None):
        for layer in (*self.stages, self.norm):
            if not layer.built:
                layer.build((None, 2))


def factor(multipliers, path):
    return next((value for pattern, value in multipliers if re.search(pattern, path)), 1.0)


@pytest.mark.parametrize("name", [None, "encoder_of_mine"])
def test_stages_go_from_the_last_block_down_to_the_embeddings(name):
    backbone = bert_keras.BertBackbone(10, 3, 2, 8, 16, name=name)
    stages = stages_from_the_top(backbone, layers_per_stage=2)
    assert [len(stage) for stage in stages] == [2, 1, 1]
    parts = ["encoder/layer_2/", "encoder/layer_1/", "encoder/layer_0/", "embeddings/"]
    for pattern, part in zip([p for stage in stages for p in stage], parts, strict=True):
        for weight in backbone.weights:
            is_there = weight.path.startswith(f"{backbone.name}/{part}")
            assert bool(re.search(pattern, weight.path)) == is_there, (pattern, weight.path)


def test_a_backbone_may_have_other_parts_and_a_shared_block():
    backbone = Other()
    multipliers = layer_wise_decay(backbone, 0.5, head=3.0)
    expected = {"lookup": 0.125, "group": 0.25, "group_1": 0.5, "norm": 1.0}
    assert {weight.path.split("/")[0] for weight in backbone.weights} == {"another_one"}
    for weight in backbone.weights:
        assert factor(multipliers, weight.path) == expected[weight.path.split("/")[1]], weight.path
    assert len(stages_from_the_top(backbone)) == 3
    # Layers with the same names in a head do not belong to the backbone.
    for path in ("my_task/head/norm/gamma", "my_task/head/lookup/kernel", "head/kernel"):
        assert factor(multipliers, path) == 3.0


@pytest.mark.parametrize(
    ("function", "options", "name"),
    [
        *((layer_wise_decay, {"rate": x}, "rate") for x in (0.0, 1.5, float("nan"), "0.9")),
        (layer_wise_decay, {"rate": 0.9, "head": -1.0}, "head"),
        (stages_from_the_top, {"layers_per_stage": 0}, "layers_per_stage"),
    ],
)
def test_settings_out_of_range_are_refused(function, options, name):
    with pytest.raises(ValueError, match=f"`{name}`"):
        function(Other(), **options)
