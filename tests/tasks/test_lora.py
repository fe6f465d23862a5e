"""LoRA: what trains, runs that go on from a file, files of adapters, merging, and its errors."""

import keras
import numpy as np
import pytest
from tiny import VOCABULARY, tiny_backbone, tiny_classifier

import bert_keras
from bert_keras.models.adapters import LORA_TARGETS
from bert_keras.presets.assign import relative_path
from bert_keras.presets.safetensors_io import read_safetensors, write_safetensors
from bert_keras.training.optimizer import layer_wise_decay

TEXTS = ["a b c", "d e", "h a g", "b c", "a", "c d e", "e f g", "f g"]
LABELS = [0, 1, 1, 0, 1, 0, 0, 1]
# 4 texts of one length: each backend compiles one shape.
READY = {"token_ids": np.arange(5, 21).reshape(4, 4) % len(VOCABULARY)}
READY_LABELS = [0, 1, 1, 0]


def array(variable):
    return keras.ops.convert_to_numpy(variable).copy()


def by_path(variables):
    return {relative_path(variable): array(variable) for variable in variables}


def assert_equal(actual, expected, atol=0.0):
    assert actual.keys() == expected.keys()
    for path, value in expected.items():
        np.testing.assert_allclose(actual[path], value, rtol=0, atol=atol, err_msg=path)


def adapted_task(seed=0, num_layers=2, dropout=0.0, **options):
    """A task whose adapters are not at 0, so that what they do can be seen."""
    keras.utils.set_random_seed(seed)
    backbone = tiny_backbone(num_layers=num_layers, dropout=dropout)
    task = tiny_classifier(backbone, **{"lora_rank": 2, "lora_alpha": 8, **options})
    noise = np.random.default_rng(seed)
    for weight in task.backbone.adapter_weights:
        weight.assign(noise.normal(size=weight.shape) * 0.3)
    return task


def outputs(task, **options):
    return array(task(READY, **options))


def fit(task, learning_rate=1e-2, **options):
    # TensorFlow would compile each tiny model by XLA, which takes longer than to train it.
    jit_compile = keras.backend.backend() == "jax"
    task.compile(learning_rate=learning_rate, weight_decay=0.1, jit_compile=jit_compile)
    task.fit(READY, READY_LABELS, batch_size=4, verbose=0, **options)


# What trains


def test_before_training_the_outputs_are_those_of_the_plain_task():
    task = tiny_classifier(tiny_backbone(num_layers=2))
    plain = task.predict(READY, verbose=0)
    task.backbone.add_adapters(2, targets=LORA_TARGETS)
    task.predict_function = None
    np.testing.assert_array_equal(task.predict(READY, verbose=0), plain)


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
    assert len(task.optimizer.variables) == len(slots) + 3  # iterations, updates, gates


def test_dropout_of_the_backbone_is_active_in_training():
    task = adapted_task(num_layers=1, dropout=0.5)
    first, second = (outputs(task, training=True) for _ in range(2))
    assert np.abs(first - second).max() > 1e-3
    np.testing.assert_array_equal(outputs(task), outputs(task))


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


def test_every_target_takes_part_in_the_output():
    task = adapted_task(num_layers=1, lora_targets=LORA_TARGETS)
    expected = outputs(task)
    for weight in task.backbone.adapter_weights[1::2]:
        kept = array(weight)
        weight.assign(np.zeros_like(kept))
        assert np.abs(outputs(task) - expected).max() > 1e-4, weight.path
        weight.assign(kept)


@pytest.mark.parametrize(
    "make",
    [
        lambda backbone: bert_keras.TokenClassifier(backbone, num_classes=3, lora_rank=1),
        lambda backbone: bert_keras.QuestionAnswering(backbone, lora_rank=1),
        lambda backbone: bert_keras.MultipleChoice(backbone, lora_rank=1),
        lambda backbone: bert_keras.LongTextClassifier(backbone, lora_rank=1),
        lambda backbone: bert_keras.MaskedLM(backbone, lora_rank=1),
        lambda backbone: bert_keras.NextSentencePrediction(backbone, lora_rank=1),
        lambda backbone: bert_keras.Pretraining(backbone, lora_rank=1),
        lambda backbone: bert_keras.TextEmbedder(backbone, lora_rank=1),
    ],
)
def test_every_task_takes_adapters_and_keeps_them_in_its_config(make):
    task = make(tiny_backbone())
    own = {id(weight) for weight in task.backbone.weights}
    trained = {relative_path(v) for v in task.trainable_variables if id(v) in own}
    assert trained == {
        f"encoder/layer_0/attention/{target}/lora_{matrix}"
        for target in ("query", "value")
        for matrix in "ab"
    }
    again = type(task).from_config(task.get_config())
    assert again.get_config() == task.get_config()
    assert [v.path for v in again.trainable_variables] == [v.path for v in task.trainable_variables]


def test_layer_wise_decay_finds_the_adapters_and_weight_decay_acts_on_them():
    task = adapted_task()
    optimizer = bert_keras.AdamW(
        1e-3, weight_decay=0.1, learning_rate_multipliers=layer_wise_decay(2, 0.5)[1:]
    )
    task.compile(optimizer)
    optimizer.build(task.trainable_variables)
    np.testing.assert_allclose(optimizer._factors, [0.25] * 4 + [0.5] * 4 + [1.0] * 2)
    np.testing.assert_allclose(optimizer._decays, [0.1] * 9 + [0.0])


@pytest.mark.parametrize("policy", ["mixed_bfloat16", "mixed_float16"])
def test_mixed_precision_trains_float32_adapters(policy):
    task = tiny_classifier(tiny_backbone(dtype=policy), lora_rank=2)
    before = by_path(task.backbone.adapter_weights)
    fit(task, epochs=3)
    after = by_path(task.backbone.adapter_weights)
    for path, value in after.items():
        assert value.dtype == "float32"
        assert np.isfinite(value).all()
        assert not np.array_equal(value, before[path])


# A run that goes on


@pytest.mark.filterwarnings("error:Skipping variable loading")
def test_a_run_goes_on_from_a_file_bit_for_bit(tmp_path):
    task = adapted_task()
    optimizer = bert_keras.AdamW(bert_keras.WarmupDecay(1e-2, total_steps=8))
    task.compile(optimizer, jit_compile=keras.backend.backend() == "jax")
    task.fit(TEXTS, LABELS, batch_size=4, epochs=2, verbose=0)
    task.save(tmp_path / "task.keras")
    again = keras.models.load_model(tmp_path / "task.keras")
    again.jit_compile = task.jit_compile  # A file leaves that to the backend.
    assert again.get_config() == task.get_config()
    assert_equal(by_path(again.weights), by_path(task.weights))
    for new, old in zip(again.optimizer.variables, task.optimizer.variables, strict=True):
        np.testing.assert_array_equal(array(new), array(old))
    before = by_path(task.trainable_variables)
    for either in (task, again):
        either.fit(TEXTS, LABELS, batch_size=4, epochs=4, initial_epoch=2, verbose=0)
    assert_equal(by_path(again.weights), by_path(task.weights))
    after = by_path(task.trainable_variables)
    assert all(np.abs(after[path] - value).max() > 1e-4 for path, value in before.items())


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


def test_merging_keeps_the_settings_of_the_optimizer_and_loading_finds_a_plain_task(tmp_path):
    task = adapted_task()
    task.compile(bert_keras.AdamW(3e-4, beta_1=0.7))
    before = outputs(task)
    task.merge_lora()
    assert task.optimizer.get_config()["beta_1"] == 0.7
    task.save(tmp_path / "task.keras")
    again = keras.models.load_model(tmp_path / "task.keras")
    assert again.backbone.lora is None
    np.testing.assert_allclose(outputs(again), before, atol=1e-5)


def test_what_another_task_compiled_does_not_count_merged_adapters_twice():
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
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    task = adapted_task()
    task.export_to_huggingface(tmp_path)
    theirs = transformers.AutoModelForSequenceClassification.from_pretrained(tmp_path).eval()
    with torch.no_grad():
        expected = theirs(torch.tensor(READY["token_ids"])).logits.numpy()
    np.testing.assert_allclose(outputs(task), expected, atol=1e-5)


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


def test_adapters_for_other_base_weights_are_told(tmp_path):
    adapted_task().save_adapters(tmp_path / "adapters")
    with pytest.warns(UserWarning, match="other weights"):
        adapted_task(seed=1).load_adapters(tmp_path / "adapters")


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"lora_rank": 3}, "lora_rank=2, here 3"),
        ({"lora_alpha": 2}, "lora_alpha=8.0, here 2.0"),
        ({"lora_targets": ("key",)}, "lora_targets=.*here .'key'"),
        ({"lora_layers": (0,)}, r"lora_layers=None, here \[0\]"),
        ({"num_classes": 3}, "num_classes=2, here 3"),
        ({"label_names": ["x", "y"]}, "label_names=None, here .'x'"),
        ({"num_layers": 3}, r"without a tensor \(4\)"),
    ],
)
def test_adapters_of_other_settings_are_refused_before_any_weight_changes(tmp_path, options, told):
    adapted_task().save_adapters(tmp_path / "adapters")
    task = adapted_task(**options)
    before = by_path(task.weights)
    with pytest.raises(ValueError, match=told):
        task.load_adapters(tmp_path / "adapters")
    assert_equal(by_path(task.weights), before)


def test_damaged_and_foreign_files_are_refused(tmp_path):
    task = adapted_task()
    path = tmp_path / "adapters"
    task.save_adapters(path)
    tensors, metadata = dict(read_safetensors(path)), read_safetensors(path).metadata
    before = by_path(task.weights)
    write_safetensors(path, tensors)
    with pytest.raises(ValueError, match="save_adapters"):
        task.load_adapters(path)
    write_safetensors(path, {**tensors, "surplus": np.zeros(2)}, metadata)
    with pytest.raises(ValueError, match="surplus"):
        task.load_adapters(path)
    last = next(name for name in tensors if name.endswith("lora_b"))
    write_safetensors(path, {**tensors, last: tensors[last].T}, metadata)
    with pytest.raises(ValueError, match=r"Shapes that differ \(1\)"):
        task.load_adapters(path)
    path.write_bytes(path.read_bytes()[:-8])
    with pytest.raises(ValueError, match="whole"):
        task.load_adapters(path)
    assert_equal(by_path(task.weights), before)
    with pytest.raises(ValueError, match="no adapters"):
        tiny_classifier().save_adapters(path)


# Arguments


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"lora_rank": 0}, "from 1 to 16"),
        ({"lora_rank": 17}, "from 1 to 16"),
        ({"lora_rank": True}, "from 1 to 16"),
        ({"lora_alpha": 0}, "above 0"),
        ({"lora_alpha": float("nan")}, "above 0"),
        ({"lora_targets": "query"}, "list of different names"),
        ({"lora_targets": ()}, "list of different names"),
        ({"lora_targets": ("query", "query")}, "list of different names"),
        ({"lora_targets": ("dense",)}, "list of different names"),
        ({"lora_layers": (2,)}, "from 0 to 1"),
        ({"lora_layers": (-1,)}, "from 0 to 1"),
        ({"lora_layers": ()}, "from 0 to 1"),
        ({"lora_layers": 1}, "from 0 to 1"),
        ({"lora_layers": (0.5,)}, "from 0 to 1"),
        ({"frozen": "backbone"}, "must be None"),
        ({"frozen": 1}, "must be None"),
        ({"lora_rank": None}, "options of `lora_rank`"),
    ],
)
def test_arguments_out_of_range_are_told(options, told):
    with pytest.raises(ValueError, match=told):
        adapted_task(**options)


def test_tasks_on_one_backbone_share_its_adapters(tmp_path):
    task = adapted_task()
    other = bert_keras.TokenClassifier(task.backbone, num_classes=3)
    assert other.get_config()["lora_rank"] == 2
    ids = {"token_ids": READY["token_ids"]}
    expected = other.predict(ids, verbose=0)
    other.save(tmp_path / "other.keras")
    again = keras.models.load_model(tmp_path / "other.keras")
    np.testing.assert_array_equal(again.predict(ids, verbose=0), expected)
    bert_keras.TokenClassifier(task.backbone, num_classes=3, lora_rank=2, lora_alpha=8)
    with pytest.raises(ValueError, match="one set of adapters"):
        bert_keras.TokenClassifier(task.backbone, num_classes=3, lora_rank=4)
    with pytest.raises(ValueError, match="must be None"):
        bert_keras.TokenClassifier(task.backbone, num_classes=3, frozen="backbone")
