"""Compiled functions are discarded when layers get other variables, and only then."""

import keras
import pytest
from checks import TINY, random_inputs

import bert_keras
from bert_keras.engine import variable_paths


@pytest.mark.once
def test_each_change_of_a_layer_s_variables_counts(tmp_path):
    backbone = bert_keras.BertBackbone(**TINY)
    changes = [
        lambda: backbone.add_adapters(2),
        lambda: backbone.merge_adapters(),
        lambda: backbone.quantize("int8"),
    ]
    for change in changes:
        before = variable_paths.version
        change()
        assert variable_paths.version > before
    before = variable_paths.version
    backbone(random_inputs(), training=True)
    backbone.trainable = False
    backbone.set_weights(backbone.get_weights())
    backbone.save(tmp_path / "backbone.keras")
    assert variable_paths.version == before
    keras.models.load_model(tmp_path / "backbone.keras")
    assert variable_paths.version > before  # It was quantized again.
