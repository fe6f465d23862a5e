"""Adapters in the format of Hugging Face's peft, against transformers with merged kernels."""

import numpy as np
import pytest
import safetensors.numpy
import torch
from checks import to_numpy
from files import read_json, write_json
from foreign import bert_of_transformers, inputs, outputs_of, write_hugging_face

import bert_keras
from bert_keras.presets.assign import by_path, head_weights

RANK, ALPHA, NUM_CLASSES = 4, 6, 4
LAYER = "base_model.model.bert.encoder.layer"
TARGETS = {
    "query": "attention.self.query",
    "value": "attention.self.value",
    "feed_forward_output": "output.dense",
}
OPTIONS = {
    "num_classes": NUM_CLASSES,
    "lora_rank": RANK,
    "lora_alpha": ALPHA,
    "lora_targets": list(TARGETS),
}


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    folder = tmp_path_factory.mktemp("base")
    write_hugging_face(folder, bert_of_transformers().bert)
    return folder


def adapted():
    """Returns a model with merged adapters and a new head, and the tensors that peft saves of it.

    The names are those of peft 0.21.
    """
    model = bert_of_transformers("SequenceClassification", num_labels=NUM_CLASSES)
    model.bert.load_state_dict(bert_of_transformers().bert.state_dict())
    rng, tensors = np.random.default_rng(0), {}
    state = model.state_dict()
    for layer in range(2):
        for part in TARGETS.values():
            module = f"bert.encoder.layer.{layer}.{part}"
            kernel = state[f"{module}.weight"]
            a = rng.normal(size=(RANK, kernel.shape[1])).astype("float32")
            b = rng.normal(size=(kernel.shape[0], RANK)).astype("float32")
            kernel += torch.tensor(ALPHA / RANK * b @ a)
            tensors[f"base_model.model.{module}.lora_A.weight"] = a
            tensors[f"base_model.model.{module}.lora_B.weight"] = b
    for name in ("classifier.weight", "classifier.bias"):
        tensors[f"base_model.model.{name}"] = state[name].numpy()
    return model, tensors


def write_peft(folder, tensors, **changes):
    folder.mkdir(exist_ok=True)
    safetensors.numpy.save_file(tensors, folder / "adapter_model.safetensors", {"format": "pt"})
    config = {"peft_type": "LORA", "task_type": "SEQ_CLS", "base_model_name_or_path": "base"}
    config |= {"r": RANK, "lora_alpha": ALPHA, "target_modules": list(TARGETS), "bias": "none"}
    config |= {"modules_to_save": ["classifier"], "rank_pattern": {}, "use_dora": False}
    write_json(folder / "adapter_config.json", {**config, **changes})


@pytest.fixture
def task(base):
    return bert_keras.TextClassifier.from_preset(base, **OPTIONS)


@pytest.fixture(scope="module")
def unchanged(base):
    """A task that tests only read."""
    return bert_keras.TextClassifier.from_preset(base, **OPTIONS)


def weights_of(task):
    return {path: to_numpy(weight) for path, weight in by_path(task.weights).items()}


@pytest.mark.filterwarnings("ignore:.*start at random")
class TestPeft:
    @pytest.mark.parametrize(
        "which",
        ["folder", "file", "pickle", "names of older versions", "whole layer", "stabilized rank"],
    )
    def test_adapters_and_head_are_read(self, task, tmp_path, which):
        (model, tensors), changes = adapted(), {}
        if which == "names of older versions":
            tensors = {
                name.replace("lora_A.", "lora_A.default.").replace(
                    "classifier.", "classifier.modules_to_save.default."
                ): x
                for name, x in tensors.items()
            }
        if which == "whole layer":
            kernel = model.bert.pooler.dense.weight.data.mul_(0.5)
            tensors["base_model.model.bert.pooler.dense.weight"] = kernel.numpy()
        if which == "stabilized rank":
            changes = {"use_rslora": True, "lora_alpha": ALPHA / RANK**0.5}
        write_peft(tmp_path / "a", tensors, **changes)
        path = tmp_path / "a"
        if which == "file":
            path /= "adapter_model.safetensors"
        if which == "pickle":
            (path / "adapter_model.safetensors").unlink()
            as_tensors = {name: torch.tensor(x) for name, x in tensors.items()}
            torch.save(as_tensors, path / "adapter_model.bin")
        task.load_adapters(path)
        expected = outputs_of(model)["logits"]
        np.testing.assert_allclose(task.predict(inputs(), verbose=0), expected, atol=1e-5)

    def test_without_a_head_in_the_folder_the_task_s_own_remains(self, task, tmp_path):
        model, tensors = adapted()
        before = {path: to_numpy(x) for path, x in head_weights(task).items()}
        write_peft(
            tmp_path / "a",
            {
                name.replace("model.bert.", "model."): x
                for name, x in tensors.items()
                if "classifier" not in name
            },
        )
        task.load_adapters(tmp_path / "a")
        for path, weight in head_weights(task).items():
            np.testing.assert_array_equal(to_numpy(weight), before[path])
        found = to_numpy(task.backbone(inputs())["pooled_output"])
        expected = outputs_of(model.bert)["pooler_output"]
        np.testing.assert_allclose(found, expected, atol=1e-5)

    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"peft_type": "IA3"}, "peft_type"),
            ({"bias": "lora_only"}, "bias"),
            ({"use_dora": True}, "use_dora.*not supported"),
            ({"rank_pattern": {"query": 2}}, "rank_pattern.*not supported"),
            ({"init_lora_weights": "pissa"}, "init_lora_weights"),
            ({"r": 5}, "lora_rank=5"),
            ({"lora_alpha": 7}, "lora_alpha=7"),
            ({"r": None}, "cannot be read|lora_rank=None"),
        ],
    )
    def test_other_settings_are_refused(self, unchanged, tmp_path, changes, message):
        write_peft(tmp_path / "a", adapted()[1], **changes)
        before = weights_of(unchanged)
        with pytest.raises(ValueError, match=message):
            unchanged.load_adapters(tmp_path / "a")
        np.testing.assert_equal(weights_of(unchanged), before)

    @pytest.mark.parametrize(
        ("added", "removed", "message"),
        [
            ([f"{LAYER}.0.attention.self.key.lora_A.weight"], [], "self.key.lora_A"),
            ([], ["base_model.model.classifier.bias"], "head/dense/bias"),
            ([], [f"{LAYER}.1.output.dense.lora_B.weight"], "lora_b"),
            (["base_model.model.score.weight"], [], "score.weight"),
            (
                ["base_model.model.bert.pooler.dense.lora_A.weight"],
                [],
                r"adapters of \['pooler.dense'\].*merge_and_unload",
            ),
        ],
        ids=["another layer", "half a head", "half an adapter", "another head", "a pooler"],
    )
    def test_tensors_that_do_not_fit_are_refused(
        self, unchanged, tmp_path, added, removed, message
    ):
        tensors = {**adapted()[1], **dict.fromkeys(added, np.ones((3, 16), "float32"))}
        write_peft(tmp_path / "a", {k: x for k, x in tensors.items() if k not in removed})
        with pytest.raises(ValueError, match=message):
            unchanged.load_adapters(tmp_path / "a")

    def test_a_folder_of_adapters_is_no_preset(self, tmp_path):
        write_peft(tmp_path / "a", adapted()[1])
        with pytest.raises(ValueError, match=r"holds adapters\. .*load_adapters"):
            bert_keras.TextClassifier.from_preset(tmp_path / "a")

    def test_a_folder_is_written_as_peft_writes_it(self, task, tmp_path):
        _, tensors = adapted()
        write_peft(tmp_path / "theirs", tensors)
        task.load_adapters(tmp_path / "theirs")
        task.save_adapters(tmp_path / "ours", base="owner/base")
        found = safetensors.numpy.load_file(tmp_path / "ours" / "adapter_model.safetensors")
        np.testing.assert_equal(found, tensors)
        config = read_json(tmp_path / "ours" / "adapter_config.json")
        theirs = read_json(tmp_path / "theirs" / "adapter_config.json")
        for key in ("peft_type", "task_type", "r", "lora_alpha", "bias", "modules_to_save"):
            assert config[key] == theirs[key]
        assert config["base_model_name_or_path"] == "owner/base"
        # Whole names, since peft's "output.dense" is in "attention.output.dense" too.
        modules = {name[17:].partition(".lora_")[0] for name in tensors if ".lora_" in name}
        assert set(config["target_modules"]) == modules

    def test_a_task_without_a_counterpart_is_not_written(self, base, tmp_path):
        task = bert_keras.TextEmbedder.from_preset(
            base, pooling="mean", normalize=True, lora_rank=2
        )
        with pytest.raises(ValueError, match="TextEmbedder has no counterpart in peft"):
            task.save_adapters(tmp_path / "ours", base="owner/base")
        assert not (tmp_path / "ours").exists()

    def test_deberta_s_adapters_have_the_names_of_their_kernels(self, tmp_path):
        sizes = {"vocabulary_size": 30, "num_layers": 1, "num_heads": 2, "hidden_dim": 8}
        backbone = bert_keras.DebertaV2Backbone(**sizes, intermediate_dim=12)
        task = bert_keras.TextClassifier(backbone, num_classes=3, lora_rank=2)
        task.export_to_huggingface(tmp_path / "base")
        for weight in backbone.adapter_weights:
            weight.assign(np.random.default_rng(0).normal(size=weight.shape))
        task.export_to_huggingface(tmp_path / "merged")
        task.save_adapters(tmp_path / "ours", base="base")
        base, merged = (
            safetensors.numpy.load_file(tmp_path / x / "model.safetensors")
            for x in ("base", "merged")
        )
        tensors = safetensors.numpy.load_file(tmp_path / "ours/adapter_model.safetensors")
        scale = backbone.lora["lora_alpha"] / 2
        modules = [name[17:-14] for name in tensors if name.endswith("lora_A.weight")]
        assert "deberta.encoder.layer.0.attention.self.query_proj" in modules
        for module in modules:
            a, b = (tensors[f"base_model.model.{module}.lora_{x}.weight"] for x in "AB")
            change = merged[f"{module}.weight"] - base[f"{module}.weight"]
            np.testing.assert_allclose(change, scale * b @ a, atol=1e-6)
        again = bert_keras.TextClassifier.from_preset(
            tmp_path / "base", preprocessor=None, lora_rank=2
        )
        again.load_adapters(tmp_path / "ours")
        np.testing.assert_equal(weights_of(again), weights_of(task))

    def test_families_whose_layers_are_joined_are_refused(self, tmp_path):
        sizes = {"vocabulary_size": 30, "num_layers": 1, "num_heads": 2, "hidden_dim": 8}
        backbone = bert_keras.NomicBertBackbone(**sizes, intermediate_dim=12)
        task = bert_keras.TextClassifier(backbone, num_classes=3, lora_rank=2)
        with pytest.raises(ValueError, match="NomicBertBackbone has no counterpart in peft"):
            task.save_adapters(tmp_path / "ours", base="base")
