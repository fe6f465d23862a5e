"""Quantized models: files bring them back as they were, other formats refuse them."""

import gc
import os

import keras
import numpy as np
import pytest
from tiny import tiny_backbone, tiny_classifier, tiny_preprocessor

import bert_keras
from bert_keras.engine.quantized import check_can_quantize

TEXTS = ["a b c", "d e f g", "h"]
pytestmark = pytest.mark.filterwarnings("ignore:Layer .* does not have a `quantize`")


def wide(**options):
    return tiny_backbone(initializer_range=0.2, **options)


def quantized_layers(model):
    return [
        (layer.name, layer.quantization_mode)
        for layer in model._flatten_layers()
        if getattr(layer, "quantization_mode", None)
    ]


def saved_and_loaded(model, folder, name="model.keras"):
    model.save(folder / name)
    loaded = keras.models.load_model(folder / name)
    assert quantized_layers(loaded) == quantized_layers(model)
    return loaded


@pytest.mark.once
@pytest.mark.parametrize(
    ("mode", "filters"),
    [
        ("int8", None),
        ("int8", "query"),
        pytest.param("int4", None, marks=pytest.mark.once),
        pytest.param("int4", "query", marks=pytest.mark.once),
    ],
)
def test_a_file_holds_the_quantized_layers_and_no_others(tmp_path, mode, filters):
    task = tiny_classifier(wide(), num_classes=3)
    plain = task.predict(TEXTS, verbose=0)
    task.quantize(mode, filters=filters)
    # 3 tables, 6 kernels in the encoder layer, the pooler's and the head's.
    assert len(quantized_layers(task)) == (11 if filters is None else 1)
    expected = task.predict(TEXTS, verbose=0)
    assert 0 < np.abs(expected - plain).max() < (0.3 if mode == "int4" else 0.05)
    # Twice: what was loaded is saved in full.
    again = saved_and_loaded(saved_and_loaded(task, tmp_path), tmp_path, "again.keras")
    np.testing.assert_array_equal(again.predict(TEXTS, verbose=0), expected)


def full_collections(function):
    """Returns for each full collection of garbage whether older objects were left out of it."""
    left_out = []

    def note(phase, info):
        if phase == "start" and info["generation"] == 2:
            left_out.append(gc.get_freeze_count() > 0)

    gc.callbacks.append(note)
    try:
        function()
    finally:
        gc.callbacks.remove(note)
    return left_out


@pytest.mark.once
def test_older_objects_are_looked_at_once_and_not_for_every_weight(tmp_path):
    gc.unfreeze()
    task = tiny_classifier(wide(), num_classes=3)
    with pytest.raises(ValueError, match="`filters`"):
        task.quantize("int8", filters=1)
    assert gc.get_freeze_count() == 0
    task.save(tmp_path / "plain.keras")
    collections = full_collections(lambda: task.quantize("int8"))
    assert len(collections) > 5
    assert collections.count(False) == 1
    task.save(tmp_path / "model.keras")
    plain, quantized = (
        full_collections(lambda name=name: keras.models.load_model(tmp_path / name)).count(False)
        for name in ("plain.keras", "model.keras")
    )
    assert quantized <= plain + 2
    assert gc.get_freeze_count() == 0
    # What somebody froze stays so, as conftest.py has it for the tests that follow.
    gc.freeze()
    with pytest.raises(ValueError, match="`filters`"):
        tiny_classifier(wide(), num_classes=3).quantize("int8", filters=1)
    tiny_classifier(wide(), num_classes=3).quantize("int8", filters="query")
    assert gc.get_freeze_count() > 0


@pytest.mark.once
def test_quantizers_of_ones_own_are_kept(tmp_path):
    def quantizer(axis):
        return keras.quantizers.AbsMaxQuantizer(axis=axis, value_range=(-7, 7))

    config = keras.quantizers.Int8QuantizationConfig(
        weight_quantizer=quantizer(0), activation_quantizer=quantizer(-1)
    )
    task = tiny_classifier(wide(), num_classes=3)
    task.quantize(config=config, filters="query")
    loaded = saved_and_loaded(task, tmp_path)
    np.testing.assert_array_equal(loaded.predict(TEXTS, verbose=0), task.predict(TEXTS, verbose=0))


@pytest.mark.once
def test_a_backbone_and_tied_embeddings_come_back_too(tmp_path):
    backbone = wide()
    backbone.quantize("int8")
    inputs = tiny_preprocessor()(TEXTS)
    np.testing.assert_array_equal(
        *(
            model.predict(inputs, verbose=0)["sequence_output"]
            for model in (backbone, saved_and_loaded(backbone, tmp_path))
        )
    )
    task = bert_keras.MaskedLM(wide(), tiny_preprocessor())
    task.quantize("int8")
    np.testing.assert_array_equal(
        task.score(TEXTS), saved_and_loaded(task, tmp_path, "lm.keras").score(TEXTS)
    )


@pytest.mark.once
@pytest.mark.filterwarnings("error:Skipping variable loading")
def test_a_trained_model_leaves_its_optimizer_behind(tmp_path):
    task = tiny_classifier(wide(), num_classes=3)
    task.fit(TEXTS, [0, 1, 2], verbose=0)
    task.save(tmp_path / "trained.keras")
    task.quantize("int8")
    assert not task.optimizer.built
    loaded = saved_and_loaded(task, tmp_path)
    np.testing.assert_array_equal(loaded.predict(TEXTS, verbose=0), task.predict(TEXTS, verbose=0))
    sizes = [os.path.getsize(tmp_path / name) for name in ("model.keras", "trained.keras")]
    assert sizes[0] < sizes[1]


@pytest.mark.once  # PyTorch keeps references to weights.
def test_a_loaded_model_holds_no_weights_of_before(tmp_path):
    task = tiny_classifier(wide(), num_classes=3)
    task.quantize("int8")
    loaded = saved_and_loaded(task, tmp_path)
    for model in (task, loaded):
        held = {id(parameter) for parameter in model.parameters()}
        assert held == {id(variable.value) for variable in model.variables} & held
        assert len(held) <= len(model.variables)


@pytest.mark.once
def test_adapters_and_modes_that_need_data_are_refused_before_anything_changes():
    task = tiny_classifier(wide(), num_classes=3, lora_rank=2)
    expected = task.predict(TEXTS, verbose=0)
    for model in (task, task.backbone):
        with pytest.raises(ValueError, match=r"Merge them first, by `merge_lora\(\)`"):
            model.quantize("int8")
    np.testing.assert_array_equal(task.predict(TEXTS, verbose=0), expected)
    task.merge_lora()
    for mode in ("gptq", None):
        with pytest.raises(ValueError, match="`mode` must be one of"):
            check_can_quantize(task, mode, None)
    with pytest.raises(ValueError, match="float4"):
        task.quantize("float4")
    assert not quantized_layers(task)
    task.quantize("int8")
    assert quantized_layers(task)


@pytest.mark.once
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
