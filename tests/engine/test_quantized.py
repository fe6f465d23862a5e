"""Quantized models: files bring them back as they were, other formats refuse them."""

import gc
import os

import keras
import numpy as np
import pytest
from checks import cases
from tiny import tiny_backbone, tiny_classifier, tiny_preprocessor

import bert_keras
from bert_keras.engine.quantized import check_can_quantize
from bert_keras.models import model as model_module

TEXTS = ["a b c", "d e f g", "h"]
pytestmark = pytest.mark.once


@pytest.fixture(autouse=True)
def without_collections(monkeypatch):
    """Keras collects garbage for each weight that it replaces, which takes most of the time."""
    monkeypatch.setattr(gc, "collect", lambda: 0)


def wide(**options):
    return tiny_backbone(initializer_range=0.2, **options)


@pytest.fixture
def task():
    return tiny_classifier(wide(), num_classes=3)


def answers(model):
    return model.predict(TEXTS, verbose=0)


def quantized_layers(model):
    modes = [(x.name, getattr(x, "quantization_mode", None)) for x in model._flatten_layers()]
    return [(name, mode) for name, mode in modes if mode]


@pytest.fixture
def saved_and_loaded(reloaded):
    """Returns a function that saves a model and loads it with the same quantized layers."""

    def save_and_load(model):
        loaded = reloaded(model)
        assert quantized_layers(loaded) == quantized_layers(model)
        return loaded

    return save_and_load


@cases(("int8", None, 11), ("int4", None, 11), ("int8", "query", 1))
def test_a_model_and_its_file_hold_the_quantized_layers_and_no_others(
    task, saved_and_loaded, mode, filters, count
):
    plain = answers(task)
    task.quantize(mode, filters=filters)
    # 3 tables, 6 kernels in the encoder layer, the pooler's and the head's.
    assert len(quantized_layers(task)) == count
    expected = answers(task)
    assert 0 < np.abs(expected - plain).max() < (0.3 if mode == "int4" else 0.05)
    again = saved_and_loaded(task)
    np.testing.assert_array_equal(answers(again), expected)
    for model in (task, again):  # PyTorch refers to no weights from before.
        held = {id(parameter) for parameter in model.parameters()}
        assert held <= {id(variable.value) for variable in model.variables}
    if mode == "int4":  # What was loaded is saved in full.
        np.testing.assert_array_equal(answers(saved_and_loaded(again)), expected)


def test_garbage_collection_visits_older_objects_once_and_not_for_every_weight(task, monkeypatch):
    frozen, left_out = [], []  # Freezing for real would count millions of objects each time.
    monkeypatch.setattr(gc, "freeze", lambda: frozen.append(True))
    monkeypatch.setattr(gc, "unfreeze", frozen.clear)
    monkeypatch.setattr(gc, "get_freeze_count", lambda: len(frozen))
    monkeypatch.setattr(gc, "collect", lambda: left_out.append(bool(frozen)))
    for is_frozen_by_user in (False, True):
        frozen[:] = [True] * is_frozen_by_user
        with pytest.raises(ValueError, match="`filters`"):
            task.quantize("int8", filters=1)
        assert bool(frozen) == is_frozen_by_user  # What somebody froze stays so.
    frozen.clear()
    left_out.clear()
    task.quantize("int8")
    assert len(left_out) > 5 and left_out.count(False) == 1 and not frozen


def test_custom_quantizers_are_kept(task, saved_and_loaded):
    make = keras.quantizers.AbsMaxQuantizer
    quantizers = [make(axis=axis, value_range=(-7, 7)) for axis in (0, -1)]
    config = keras.quantizers.Int8QuantizationConfig(*quantizers)
    task.quantize(config=config, filters="query")
    np.testing.assert_array_equal(answers(saved_and_loaded(task)), answers(task))


def test_a_backbone_and_tied_embeddings_come_back_too(saved_and_loaded):
    backbone, task = wide(), bert_keras.MaskedLM(wide(), tiny_preprocessor())
    for model in (backbone, task):
        model.quantize("int8")
    inputs = tiny_preprocessor()(TEXTS)
    both = (model.predict(inputs, verbose=0) for model in (backbone, saved_and_loaded(backbone)))
    np.testing.assert_equal(*both)
    np.testing.assert_array_equal(saved_and_loaded(task).score(TEXTS), task.score(TEXTS))


@pytest.mark.filterwarnings("error:Skipping variable loading")
def test_a_trained_model_leaves_its_optimizer_behind(task, saved_and_loaded, tmp_path):
    task.fit(TEXTS, [0, 1, 2], epochs=1, verbose=0)
    task.save(tmp_path / "trained.keras")
    task.quantize("int8")
    assert not task.optimizer.built
    np.testing.assert_array_equal(answers(saved_and_loaded(task)), answers(task))
    sizes = [os.path.getsize(tmp_path / name) for name in ("model.keras", "trained.keras")]
    assert sizes[0] < sizes[1]


def test_adapters_and_modes_that_need_data_are_refused_before_anything_changes():
    task = tiny_classifier(wide(), num_classes=3, lora_rank=2)
    expected = answers(task)
    for model in (task, task.backbone):
        with pytest.raises(ValueError, match=r"Merge them first, by `merge_lora\(\)`"):
            model.quantize("int8")
    np.testing.assert_array_equal(answers(task), expected)
    task.merge_lora()
    for mode in ("gptq", None):
        with pytest.raises(ValueError, match="`mode` must be one of"):
            check_can_quantize(task, mode, None)
    with pytest.raises(ValueError, match="float4"):
        task.quantize("float4")
    assert not quantized_layers(task)
    task.quantize("int8")
    assert quantized_layers(task)


@pytest.mark.each_backend
@pytest.mark.filterwarnings("always")
def test_int8_warns_that_it_is_slow_on_a_cpu_without_jax(task, recwarn, monkeypatch):
    task.quantize("int8", filters="query")
    places = [x.filename for x in recwarn if "saves memory, not time" in str(x.message)]
    assert places == ([] if keras.backend.backend() == "jax" else [__file__])
    recwarn.clear()
    monkeypatch.setattr(model_module, "has_accelerator", lambda: True)
    task.quantize("int8", filters="key")
    task.backbone.quantize("int4", filters="value")
    assert not [x for x in recwarn if "saves memory" in str(x.message)]


def test_presets_and_hugging_faces_folders_refuse_a_quantized_model(task, tmp_path):
    task.backbone.quantize("int8")
    for model in (task, task.backbone):
        for write in (model.save_to_preset, model.export_to_huggingface):
            with pytest.raises(ValueError, match=r"quantized to int8\. Save it as a \.keras file"):
                write(tmp_path / "preset")
    assert not os.listdir(tmp_path)
