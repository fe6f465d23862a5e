"""LoRA: what trains, runs that go on from a file, and merging."""

import numpy as np
import pytest
from adapted import adapted_task, array, by_path, fit, outputs
from tiny import tiny_backbone, tiny_classifier

import bert_keras
from bert_keras.presets.assign import relative_path
from bert_keras.presets.safetensors_io import read_safetensors
from bert_keras.training.schedules import layer_wise_decay

pytestmark = pytest.mark.once

LORA_TARGETS = list(tiny_backbone().adaptable)

# What trains


@pytest.mark.each_backend
@pytest.mark.eager
def test_only_adapters_and_head_train_and_the_optimizer_holds_state_for_them_alone():
    task = adapted_task(dropout=0.1)
    names = [relative_path(variable) for variable in task.trainable_variables]
    adapters = [
        f"encoder/layer_{i}/attention/{target}/lora_{matrix}"
        for i in range(2)
        for target in ("query", "value")
        for matrix in "ab"
    ]
    assert names == [*adapters, "head/dense/kernel", "head/dense/bias"]
    before = by_path(task.weights)
    fit(task, epochs=2)
    after = by_path(task.weights)
    for path, value in before.items():
        assert np.array_equal(after[path], value) == (path not in names), path
    slots = [v for v in task.optimizer.variables if "momentum" in v.path or "velocity" in v.path]
    assert len(slots) == 2 * len(names)
    assert len(task.optimizer.variables) == len(slots) + 1  # And the iterations.


def test_targets_and_layers_choose_the_kernels():
    task = adapted_task(
        num_layers=3, lora_targets=("feed_forward_output", "key"), lora_layers=range(1, 3)
    )
    paths = [relative_path(v).rpartition("/")[0] for v in task.backbone.adapter_weights[::2]]
    assert paths == [
        "encoder/layer_1/attention/key",
        "encoder/layer_1/feed_forward/output",
        "encoder/layer_2/attention/key",
        "encoder/layer_2/feed_forward/output",
    ]
    assert task.get_config()["lora_layers"] == [1, 2]


def test_layer_wise_decay_finds_the_adapters_and_weight_decay_acts_on_them():
    task = adapted_task()
    optimizer = bert_keras.AdamW(
        1e-3, weight_decay=0.1, learning_rate_multipliers=layer_wise_decay(task.backbone, 0.5)[1:]
    )
    task.compile(optimizer)
    optimizer.build(task.trainable_variables)
    factors, decays = zip(*optimizer._groups, strict=True)
    np.testing.assert_allclose(factors, [0.25] * 4 + [0.5] * 4 + [1.0] * 2)
    assert decays == (*[0.1] * 9, None)


# A run that goes on


def test_a_weight_frozen_by_hand_beside_adapters_is_frozen_after_loading():
    task = adapted_task()
    for weight in task.backbone.adapter_weights[::2]:
        weight.trainable = False
    again = type(task).from_config({**task.get_config(), "preprocessor": task.preprocessor})
    assert not any(v.path.endswith("lora_a") for v in again.trainable_variables)
    assert len(again.trainable_variables) == 4 + 2


# Merging


def test_a_merged_task_is_a_plain_one_with_the_same_outputs():
    task = adapted_task(lora_targets=LORA_TARGETS)
    plain = tiny_classifier(tiny_backbone(num_layers=2, dropout=0.0))
    before = outputs(task)
    task.merge_lora()
    np.testing.assert_allclose(outputs(task), before, atol=1e-5)
    assert task.get_config().keys() == plain.get_config().keys()
    assert [relative_path(v) for v in task.weights] == [relative_path(v) for v in plain.weights]
    assert len(task.trainable_variables) == len(plain.trainable_variables)
    kernels = by_path(task.trainable_variables)
    fit(task)
    after = by_path(task.trainable_variables)
    assert not any(np.array_equal(after[path], kernels[path]) for path in after if "kernel" in path)
    with pytest.raises(ValueError, match="no adapters"):
        task.merge_lora()


# Files of adapters


def test_a_file_of_adapters_brings_adapters_and_head_to_another_task(tmp_path):
    task, other = adapted_task(), adapted_task(seed=1)
    for target, source in zip(other.backbone.weights, task.backbone.weights, strict=True):
        if "lora" not in source.path:
            target.assign(array(source))
    assert np.abs(outputs(other) - outputs(task)).max() > 1e-3
    task.save_adapters(tmp_path / "adapters.safetensors")
    other.load_adapters(tmp_path / "adapters.safetensors")
    np.testing.assert_array_equal(outputs(other), outputs(task))
    held = read_safetensors(tmp_path / "adapters.safetensors")
    assert set(held) == {relative_path(v) for v in task.trainable_variables}
    assert [path.name for path in tmp_path.iterdir()] == ["adapters.safetensors"]
