"""LoRA: presets, exports, files of adapters, and what is refused. No backend differs here."""

import numpy as np
import pytest
from adapted import READY, adapted_task, array, assert_equal, by_path, outputs
from checks import cases
from theirs import exported_model, outputs_of
from tiny import tiny_backbone, tiny_classifier

import bert_keras
from bert_keras.presets.safetensors_io import read_metadata, read_safetensors, write_safetensors


def test_merging_keeps_the_settings_of_the_optimizer_and_loading_finds_a_plain_task(reloaded):
    task = adapted_task()
    task.compile(bert_keras.AdamW(3e-4, beta_1=0.7))
    before = outputs(task)
    task.merge_lora()
    assert task.optimizer.get_config()["beta_1"] == 0.7
    again = reloaded(task)
    assert again.backbone.lora is None
    np.testing.assert_allclose(outputs(again), before, atol=1e-5)


def test_functions_that_another_task_compiled_do_not_count_merged_adapters_twice():
    task = adapted_task()
    other = bert_keras.TokenClassifier(task.backbone, num_classes=3)
    before = other.predict(READY, verbose=0)
    task.merge_lora()
    np.testing.assert_allclose(other.predict(READY, verbose=0), before, atol=1e-5)


def test_presets_hold_merged_weights_and_the_task_stays_as_it_was(tmp_path):
    task = adapted_task()
    before, weights = outputs(task), by_path(task.weights)
    task.save_to_preset(tmp_path / "task")
    task.backbone.save_to_preset(tmp_path / "backbone")
    again = bert_keras.TextClassifier.from_preset(tmp_path / "task")
    assert again.backbone.lora is None
    np.testing.assert_allclose(outputs(again), before, atol=1e-5)
    ids = {"token_ids": READY["token_ids"]}
    backbone = bert_keras.BertBackbone.from_preset(tmp_path / "backbone")
    expected = array(task.backbone(ids)["pooled_output"])
    np.testing.assert_allclose(array(backbone(ids)["pooled_output"]), expected, atol=1e-5)
    assert_equal(by_path(task.weights), weights)
    assert task.backbone.lora["lora_rank"] == 2
    np.testing.assert_array_equal(outputs(task), before)
    adapted = bert_keras.TextClassifier.from_preset(tmp_path / "task", lora_rank=3)
    np.testing.assert_allclose(outputs(adapted), before, atol=1e-5)
    assert len(adapted.trainable_variables) == 10


def test_transformers_computes_the_same_from_an_exported_adapted_task(tmp_path):
    task = adapted_task()
    theirs = exported_model(task, "AutoModelForSequenceClassification", tmp_path)
    np.testing.assert_allclose(outputs(task), outputs_of(theirs, READY)["logits"], atol=1e-5)


@pytest.fixture(scope="module")
def file_of_adapters(tmp_path_factory):
    path = tmp_path_factory.mktemp("adapters") / "adapters"
    adapted_task().save_adapters(path)
    return path


def test_adapters_for_other_base_weights_cause_a_warning(file_of_adapters):
    with pytest.warns(UserWarning, match="other weights"):
        adapted_task(seed=1).load_adapters(file_of_adapters)


@cases(
    ({"lora_rank": 3}, "lora_rank=2, here 3"),
    ({"lora_alpha": 2}, "lora_alpha=8.0, here 2.0"),
    ({"lora_targets": ("key",)}, "lora_targets=.*here .'key'"),
    ({"lora_layers": (0,)}, r"lora_layers=None, here \[0\]"),
    ({"num_classes": 3}, "num_classes=2, here 3"),
    ({"label_names": ["x", "y"]}, "label_names=None, here .'x'"),
    ({"num_layers": 3}, r"without a tensor \(4\)"),
)
def test_adapters_of_other_settings_are_refused_before_any_weight_changes(
    file_of_adapters, options, message
):
    task = adapted_task(**options)
    before = by_path(task.weights)
    with pytest.raises(ValueError, match=message):
        task.load_adapters(file_of_adapters)
    assert_equal(by_path(task.weights), before)


def test_damaged_and_foreign_files_are_refused(tmp_path):
    task, path = adapted_task(), tmp_path / "adapters"
    task.save_adapters(path)
    tensors, metadata = dict(read_safetensors(path)), read_metadata(path)
    last = next(name for name in tensors if name.endswith("lora_b"))
    before = by_path(task.weights)
    for contents, message in (
        ((tensors,), "save_adapters"),
        (({**tensors, "surplus": np.zeros(2)}, metadata), "surplus"),
        (({**tensors, last: tensors[last].T}, metadata), r"Shapes that differ \(1\)"),
    ):
        write_safetensors(path, *contents)
        with pytest.raises(ValueError, match=message):
            task.load_adapters(path)
    path.write_bytes(path.read_bytes()[:-8])
    with pytest.raises(ValueError, match="cannot be read"):
        task.load_adapters(path)
    assert_equal(by_path(task.weights), before)
    with pytest.raises(ValueError, match="no adapters"):
        tiny_classifier().save_adapters(path)


@cases(
    ("lora_rank", (0, 17, True), "from 1 to 16"),
    ("lora_rank", (None,), "options of `lora_rank`"),
    ("lora_alpha", (0, float("nan")), "above 0"),
    ("lora_targets", ("query", (), ("query", "query"), ("dense",)), "list of different names"),
    ("lora_layers", ((2,), (-1,), (), 1, (0.5,)), "from 0 to 1"),
    ("frozen", ("backbone", 1), "must be None"),
)
def test_arguments_out_of_range_are_refused(argument, values, message):
    backbone = tiny_backbone(num_layers=2)
    for value in values:
        with pytest.raises(ValueError, match=message):
            tiny_classifier(backbone, **{"lora_rank": 2, "lora_alpha": 8, argument: value})


def test_tasks_on_one_backbone_share_its_adapters(reloaded):
    task = adapted_task()
    other = bert_keras.TokenClassifier(task.backbone, num_classes=3)
    assert other.get_config()["lora_rank"] == 2
    ids = {"token_ids": READY["token_ids"]}
    expected = other.predict(ids, verbose=0)
    again = reloaded(other)
    np.testing.assert_array_equal(again.predict(ids, verbose=0), expected)
    bert_keras.TokenClassifier(task.backbone, num_classes=3, lora_rank=2, lora_alpha=8)
    with pytest.raises(ValueError, match="one set of adapters"):
        bert_keras.TokenClassifier(task.backbone, num_classes=3, lora_rank=4)
    with pytest.raises(ValueError, match="must be None"):
        bert_keras.TokenClassifier(task.backbone, num_classes=3, frozen="backbone")
