"""Quantized models: files bring them back as they were, other formats refuse them."""

import keras
import numpy as np
import pytest
from tiny import tiny_backbone, tiny_classifier

TEXTS = ["a b c", "d e f g", "h"]


def quantized_layers(model):
    return {
        layer.path: layer.quantization_mode
        for layer in model._flatten_layers()
        if getattr(layer, "quantization_mode", None)
    }


@pytest.mark.filterwarnings("ignore:Layer .* does not have a `quantize`")
@pytest.mark.parametrize("mode", ["int8", "int4"])
@pytest.mark.parametrize("filters", [None, "query"])
def test_a_file_holds_the_quantized_layers_and_no_others(tmp_path, mode, filters):
    task = tiny_classifier(tiny_backbone(initializer_range=0.2), num_classes=3)
    plain = task.predict(TEXTS, verbose=0)
    task.quantize(mode, filters=filters)
    layers = quantized_layers(task)
    # 3 tables, 6 kernels in the encoder layer, the pooler's and the head's.
    assert len(layers) == (11 if filters is None else 1) and set(layers.values()) == {mode}
    expected = task.predict(TEXTS, verbose=0)
    assert 0 < np.abs(expected - plain).max() < (0.3 if mode == "int4" else 0.05)
    task.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    assert quantized_layers(loaded) == layers
    np.testing.assert_array_equal(loaded.predict(TEXTS, verbose=0), expected)
    # And once more: what is loaded is saved in full.
    loaded.save(tmp_path / "again.keras")
    again = keras.models.load_model(tmp_path / "again.keras")
    np.testing.assert_array_equal(again.predict(TEXTS, verbose=0), expected)


@pytest.mark.filterwarnings("ignore:Layer .* does not have a `quantize`")
def test_quantizers_of_ones_own_are_kept(tmp_path):
    def quantizer(axis):
        return keras.quantizers.AbsMaxQuantizer(axis=axis, value_range=(-7, 7))

    config = keras.quantizers.Int8QuantizationConfig(
        weight_quantizer=quantizer(0), activation_quantizer=quantizer(-1)
    )
    task = tiny_classifier(tiny_backbone(initializer_range=0.2), num_classes=3)
    task.quantize(config=config, filters="query")
    task.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(loaded.predict(TEXTS, verbose=0), task.predict(TEXTS, verbose=0))


@pytest.mark.filterwarnings("ignore:Layer .* does not have a `quantize`")
def test_presets_and_hugging_faces_folders_refuse_a_quantized_model(tmp_path):
    task = tiny_classifier(num_classes=2)
    task.backbone.quantize("int8")
    folder = tmp_path / "preset"
    for write in (
        task.save_to_preset,
        task.backbone.save_to_preset,
        task.export_to_huggingface,
        task.backbone.export_to_huggingface,
    ):
        with pytest.raises(ValueError, match=r"quantized to int8\. Save it as a \.keras file"):
            write(folder)
    assert not folder.exists()
