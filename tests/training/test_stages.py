"""Parts of a backbone by depth, found by the paths of its own weights."""

import re

import keras
import pytest

from bert_keras.training.schedules import layer_wise_decay

pytestmark = pytest.mark.once


class Other(keras.layers.Layer):
    """A backbone with other names of layers, a shared block, and a norm at the top."""

    def __init__(self, name="another_one"):
        super().__init__(name=name)
        names = ("lookup", "group", "group_1")
        self.table, shared, last = (keras.layers.Dense(2, name=name) for name in names)
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


def test_a_backbone_may_have_other_parts_and_a_shared_block():
    backbone = Other()
    multipliers = layer_wise_decay(backbone, 0.5, head=3.0)
    expected = {"lookup": 0.125, "group": 0.25, "group_1": 0.5, "norm": 1.0}
    assert {weight.path.split("/")[0] for weight in backbone.weights} == {"another_one"}
    for weight in backbone.weights:
        assert factor(multipliers, weight.path) == expected[weight.path.split("/")[1]], weight.path
    # Layers with the same names in a head do not belong to the backbone.
    for path in ("my_task/head/norm/gamma", "my_task/head/lookup/kernel", "head/kernel"):
        assert factor(multipliers, path) == 3.0


@pytest.mark.parametrize(
    ("function", "options", "name"),
    [
        *((layer_wise_decay, {"rate": x}, "rate") for x in (0.0, 1.5, float("nan"), "0.9")),
        (layer_wise_decay, {"rate": 0.9, "head": -1.0}, "head"),
    ],
)
def test_settings_out_of_range_are_refused(function, options, name):
    with pytest.raises(ValueError, match=f"`{name}`"):
        function(Other(), **options)
