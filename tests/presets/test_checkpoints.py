import json
import os
import pathlib
import shutil
import warnings

import keras
import numpy as np
import pytest
import safetensors.numpy
from hub_server import HubServer
from safetensors.numpy import load_file, save_file
from tiny import VOCABULARY, tiny_backbone, tiny_classifier, tiny_preprocessor

import bert_keras
from bert_keras.engine import atomic_files as files
from bert_keras.presets import safetensors_io
from bert_keras.presets.families import bert_record as bert
from bert_keras.presets.formats.huggingface import _KINDS
from bert_keras.presets.name_map import expand, transformed

TEXTS = ["a b c", "d e", "h a g g", "", "b" * 30]


def predictions(classifier):
    return classifier.predict(TEXTS, verbose=0)


@pytest.fixture
def transformers_folder(tmp_path):
    """A fine-tuned BertForSequenceClassification, saved by transformers."""
    return save_with_transformers(tmp_path / "theirs")


def save_with_transformers(folder, labels=("bad", "fine", "good"), **options):
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)
    config = transformers.BertConfig(
        **{
            "vocab_size": len(VOCABULARY),
            "hidden_size": 16,
            "num_hidden_layers": 2,
            "num_attention_heads": 2,
            "intermediate_size": 24,
            "max_position_embeddings": 16,
            "initializer_range": 0.3,
            "id2label": dict(enumerate(labels)),
            "label2id": {name: i for i, name in enumerate(labels)},
            **options,
        }
    )
    model = transformers.BertForSequenceClassification(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    model.save_pretrained(folder)
    bert_keras.WordPieceTokenizer(VOCABULARY).save(folder)
    return folder


def transformers_logits(folder):
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    model = transformers.AutoModelForSequenceClassification.from_pretrained(folder).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    batch = tokenizer(TEXTS, padding=True, truncation=True, max_length=16, return_tensors="pt")
    with torch.no_grad():
        return model(**batch).logits.numpy()


def rewrite(folder, change):
    """Replaces the tensors of a checkpoint by `change(tensors)`."""
    tensors = load_file(folder / "model.safetensors")
    save_file(change(tensors), folder / "model.safetensors")


def test_a_fine_tuned_checkpoint_arrives_with_its_head_and_labels(transformers_folder):
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        classifier = bert_keras.TextClassifier.from_preset(transformers_folder)
    assert classifier.label_names == ("bad", "fine", "good")
    np.testing.assert_allclose(
        predictions(classifier), transformers_logits(transformers_folder), atol=1e-5
    )


def test_an_export_is_what_transformers_loads(tmp_path):
    classifier = tiny_classifier(num_classes=3, label_names=["x", "y", "z"])
    for variable in classifier.weights:
        variable.assign(np.random.default_rng(1).normal(0, 0.3, variable.shape))
    classifier.export_to_huggingface(tmp_path)
    np.testing.assert_allclose(transformers_logits(tmp_path), predictions(classifier), atol=1e-5)
    config = json.loads((tmp_path / "config.json").read_text())
    assert config["id2label"] == {"0": "x", "1": "y", "2": "z"}
    again = bert_keras.TextClassifier.from_preset(tmp_path)
    assert again.label_names == ("x", "y", "z")
    np.testing.assert_array_equal(predictions(again), predictions(classifier))


def test_a_checkpoint_without_prefix_gives_the_same(transformers_folder):
    expected = predictions(bert_keras.TextClassifier.from_preset(transformers_folder))
    rewrite(transformers_folder, lambda t: {k.removeprefix("bert."): v for k, v in t.items()})
    actual = predictions(bert_keras.TextClassifier.from_preset(transformers_folder))
    np.testing.assert_array_equal(actual, expected)


def test_gamma_and_beta_are_the_norms_old_names(transformers_folder):
    expected = predictions(bert_keras.TextClassifier.from_preset(transformers_folder))
    old = {"LayerNorm.weight": "LayerNorm.gamma", "LayerNorm.bias": "LayerNorm.beta"}

    def rename(tensors):
        renamed = {}
        for name, value in tensors.items():
            for new, older in old.items():
                name = name.replace(new, older)
            renamed[name] = value
        return renamed

    rewrite(transformers_folder, rename)
    actual = predictions(bert_keras.TextClassifier.from_preset(transformers_folder))
    np.testing.assert_array_equal(actual, expected)


def test_a_missing_pooler_is_named_in_a_warning(transformers_folder):
    rewrite(transformers_folder, lambda t: {k: v for k, v in t.items() if "pooler" not in k})
    with pytest.warns(UserWarning, match="pooler/dense/kernel, pooler/dense/bias"):
        bert_keras.BertBackbone.from_preset(transformers_folder)


def test_a_missing_head_is_named_in_a_warning(transformers_folder):
    rewrite(transformers_folder, lambda t: {k: v for k, v in t.items() if "classifier" not in k})
    with pytest.warns(UserWarning, match="head/dense/kernel, head/dense/bias"):
        classifier = bert_keras.TextClassifier.from_preset(transformers_folder)
    assert classifier.num_classes == 2


def test_another_number_of_classes_brings_a_new_head_and_says_so(transformers_folder):
    with pytest.warns(UserWarning, match="num_classes"):
        classifier = bert_keras.TextClassifier.from_preset(transformers_folder, num_classes=5)
    assert classifier.label_names is None
    assert predictions(classifier).shape == (len(TEXTS), 5)


def test_a_regression_checkpoint_is_known_by_its_single_label(tmp_path):
    folder = save_with_transformers(tmp_path / "score", labels=("LABEL_0",))
    classifier = bert_keras.TextClassifier.from_preset(folder)
    assert (classifier.problem_type, classifier.num_classes) == ("regression", 1)
    np.testing.assert_allclose(predictions(classifier), transformers_logits(folder), atol=1e-5)


def test_a_name_that_does_not_fit_is_an_error_with_both_lists(transformers_folder):
    name = "bert.encoder.layer.1.output.dense.weight"
    rewrite(
        transformers_folder,
        lambda t: {("surprise" if k == name else k): v for k, v in t.items()},
    )
    with pytest.raises(ValueError, match="surprise") as error:
        bert_keras.BertBackbone.from_preset(transformers_folder)
    assert "encoder/layer_1/feed_forward/output/kernel" in str(error.value)


def test_a_shape_that_does_not_fit_is_an_error_that_names_it(transformers_folder):
    config = json.loads((transformers_folder / "config.json").read_text())
    config["intermediate_size"] = 40
    (transformers_folder / "config.json").write_text(json.dumps(config))
    with pytest.raises(ValueError, match=r"feed_forward/intermediate/kernel \(16, 40\)"):
        bert_keras.BertBackbone.from_preset(transformers_folder)


@pytest.mark.parametrize("keep", [4, 1000, 0.5, 0.99])
def test_a_truncated_checkpoint_is_an_error(transformers_folder, keep):
    path = transformers_folder / "model.safetensors"
    data = path.read_bytes()
    path.write_bytes(data[: int(keep if keep > 1 else keep * len(data))])
    with pytest.raises(ValueError, match=r"model\.safetensors"):
        bert_keras.BertBackbone.from_preset(transformers_folder)


@pytest.mark.parametrize("text", ["{", "[1]", "", '{"model_type": "gpt2"}', '{"hidden_size": 4}'])
def test_a_damaged_or_foreign_config_is_an_error(transformers_folder, text):
    (transformers_folder / "config.json").write_text(text)
    with pytest.raises(ValueError, match=r"config\.json"):
        bert_keras.BertBackbone.from_preset(transformers_folder)


def test_a_pickle_is_refused_with_the_way_out(transformers_folder):
    os.rename(transformers_folder / "model.safetensors", transformers_folder / "pytorch_model.bin")
    with pytest.raises(ValueError, match=r"safe_serialization|safetensors"):
        bert_keras.BertBackbone.from_preset(transformers_folder)


def test_a_folder_without_weights_says_so(transformers_folder):
    os.remove(transformers_folder / "model.safetensors")
    with pytest.raises((ValueError, FileNotFoundError), match="safetensors"):
        bert_keras.BertBackbone.from_preset(transformers_folder)


def test_a_preset_that_does_not_exist_is_an_error():
    with pytest.raises((ValueError, FileNotFoundError), match="minilm_l6_en_uncased"):
        bert_keras.TextClassifier.from_preset("minilm_l6_en_uncasd")


def test_an_argument_that_nobody_knows_is_an_error(transformers_folder):
    with pytest.raises(TypeError, match="num_labels"):
        bert_keras.TextClassifier.from_preset(transformers_folder, num_labels=3)


def test_arguments_reach_the_constructor_that_knows_them(transformers_folder):
    with pytest.warns(UserWarning, match="pooling"):
        classifier = bert_keras.TextClassifier.from_preset(
            transformers_folder,
            dropout=0.0,
            backbone={"attention_dropout": 0.3},
            max_length=8,
            pooling="mean",
        )
    assert (classifier.dropout, classifier.backbone.dropout) == (0.0, 0.1)
    assert classifier.backbone.attention_dropout == 0.3
    assert classifier.preprocessor.max_length == 8
    assert classifier.pooling == "mean"
    bare = bert_keras.TextClassifier.from_preset(transformers_folder, preprocessor=None)
    assert bare.preprocessor is None


def test_an_own_preset_gives_the_same_numbers(tmp_path):
    classifier = tiny_classifier(label_names=["no", "yes"], pooling="mean")
    classifier.save_to_preset(tmp_path)
    names = {path.name for path in tmp_path.iterdir()}
    assert {"config.json", "model.safetensors", "task.json", "tokenizer.json"} <= names
    assert not [name for name in names if name.endswith(".h5")]
    assert not [name for name in names if "partial" in name]
    again = bert_keras.TextClassifier.from_preset(tmp_path)
    assert again.get_config() | {"name": ""} == classifier.get_config() | {"name": ""}
    np.testing.assert_array_equal(predictions(again), predictions(classifier))
    backbone = bert_keras.BertBackbone.from_preset(tmp_path)
    inputs = classifier.preprocessor(TEXTS)
    np.testing.assert_array_equal(
        backbone.predict(inputs, verbose=0)["pooled_output"],
        classifier.backbone.predict(inputs, verbose=0)["pooled_output"],
    )


def test_an_own_preset_cut_short_is_an_error(tmp_path):
    tiny_classifier().save_to_preset(tmp_path)
    path = tmp_path / "model.safetensors"
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    with pytest.raises(ValueError, match=r"model\.safetensors"):
        bert_keras.TextClassifier.from_preset(tmp_path)


def test_a_config_that_names_another_class_is_refused(tmp_path):
    tiny_classifier().save_to_preset(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    for name, message in [
        ("bert_keras>WordPieceTokenizer", "not a Backbone"),
        ("bert_keras>Nothing", "not registered"),
    ]:
        (tmp_path / "config.json").write_text(json.dumps({**config, "registered_name": name}))
        with pytest.raises(ValueError, match=message):
            bert_keras.TextClassifier.from_preset(tmp_path)


def test_a_classifier_comes_from_the_hub_and_then_from_its_cache(
    transformers_folder, tmp_path, monkeypatch
):
    expected = predictions(bert_keras.TextClassifier.from_preset(transformers_folder))
    with HubServer({"someone/classifier": transformers_folder}) as hub:
        hub.use(monkeypatch, tmp_path / "cache")
        first = bert_keras.TextClassifier.from_preset("hf://someone/classifier")
        np.testing.assert_array_equal(predictions(first), expected)
        with pytest.raises((ValueError, FileNotFoundError), match="nobody/nothing"):
            bert_keras.TextClassifier.from_preset("hf://nobody/nothing")
        hub.stop()
        second = bert_keras.TextClassifier.from_preset("hf://someone/classifier")
        np.testing.assert_array_equal(predictions(second), expected)


def test_every_transform_is_its_own_inverse_and_no_name_appears_twice():
    names = expand(bert.ROWS, _KINDS, i=3)
    theirs = [name for name, _ in names.values()]
    assert len(set(theirs)) == len(theirs)
    array = np.arange(6).reshape(2, 3)
    for rows in _KINDS.values():
        for _, _, transform in rows:
            twice = transformed(transformed(array, transform), transform)
            np.testing.assert_array_equal(twice, array)


def test_the_map_covers_every_weight_of_the_backbone():
    from bert_keras.presets.assign import relative_path

    backbone = tiny_classifier(tiny_backbone(num_layers=2)).backbone
    assert {relative_path(v) for v in backbone.weights} == set(expand(bert.ROWS, _KINDS, i=2))


def minilm():
    from bert_keras.presets.resolve import resolve

    try:
        return resolve("minilm_l6_en_uncased")
    except FileNotFoundError:
        return None


@pytest.mark.skipif(minilm() is None, reason="the extra `demo` is not installed")
def test_the_real_checkpoint_equals_transformers():
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    folder = str(minilm())
    sentences = ["A man is eating food.", "多语言 café naïve", "", "word " * 300]
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    batch = tokenizer(sentences, padding=True, truncation=True, max_length=512, return_tensors="pt")
    reference = transformers.AutoModel.from_pretrained(folder).eval()
    with torch.no_grad():
        expected = reference(**batch)
    classifier = bert_keras.TextClassifier.from_preset("minilm_l6_en_uncased")
    inputs = classifier.preprocessor(sentences)
    np.testing.assert_array_equal(inputs["token_ids"], batch["input_ids"].numpy())
    actual = classifier.backbone.predict(inputs, verbose=0)
    mask = inputs["padding_mask"].astype(bool)
    difference = np.abs(actual["sequence_output"] - expected.last_hidden_state.numpy())[mask].max()
    pooled = np.abs(actual["pooled_output"] - expected.pooler_output.numpy()).max()
    print(f"{keras.backend.backend()}: {difference:.1e} in tokens, {pooled:.1e} pooled")
    assert max(difference, pooled) < 1e-5


def test_saving_over_a_preset_never_leaves_half_a_file(tmp_path, monkeypatch):
    tiny_classifier().save_to_preset(tmp_path)
    before = {p.name: p.read_bytes() for p in tmp_path.iterdir()}

    def fail(*args, **kwargs):
        pathlib.Path(args[1]).write_bytes(b"half a fi")
        raise OSError("No space left on device")

    monkeypatch.setattr(safetensors.numpy, "save_file", fail)
    with pytest.raises(OSError, match="No space"):
        tiny_classifier().save_to_preset(tmp_path)
    assert {p.name: p.read_bytes() for p in tmp_path.iterdir()} == before
    shutil.rmtree(tmp_path)


def test_a_pooling_without_counterpart_is_not_exported(tmp_path):
    with pytest.raises(ValueError, match="pooling='mean'"):
        tiny_classifier(pooling="mean").export_to_huggingface(tmp_path)
    assert not list(tmp_path.iterdir())


def test_an_own_preset_without_head_says_that_the_head_is_random(tmp_path):
    classifier = tiny_classifier()
    classifier.backbone.save_to_preset(tmp_path)
    classifier.preprocessor.tokenizer.save(tmp_path)
    with pytest.warns(UserWarning, match="head/dense/kernel"):
        bert_keras.TextClassifier.from_preset(tmp_path)


def test_saving_a_backbone_over_a_task_removes_the_old_head(tmp_path):
    tiny_classifier(frozen="backbone").save_to_preset(tmp_path)
    tiny_classifier().backbone.save_to_preset(tmp_path)
    assert not (tmp_path / "task.json").exists()
    assert bert_keras.BertBackbone.from_preset(tmp_path).trainable


def test_a_subclass_keeps_its_head_in_its_preset(tmp_path):
    @keras.saving.register_keras_serializable(package="mine")
    class MyClassifier(bert_keras.TextClassifier):
        pass

    classifier = tiny_classifier()
    mine = MyClassifier(classifier.backbone, preprocessor=classifier.preprocessor)
    mine.save_to_preset(tmp_path)
    again = MyClassifier.from_preset(tmp_path)
    np.testing.assert_array_equal(predictions(again), predictions(mine))


@pytest.mark.parametrize(
    ("name", "text"), [("config.json", '{"registered_name": "x"}'), ("task.json", "[]")]
)
def test_a_damaged_own_preset_says_which_file(tmp_path, name, text):
    tiny_classifier().save_to_preset(tmp_path)
    (tmp_path / name).write_text(text)
    with pytest.raises(ValueError, match=name):
        bert_keras.TextClassifier.from_preset(tmp_path)


def test_an_own_preset_with_more_weights_than_its_config_asks_for_is_an_error(tmp_path):
    tiny_classifier(tiny_backbone(num_layers=2)).save_to_preset(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    config["config"]["num_layers"] = 1
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(ValueError, match=r"without a weight \(16\): encoder/layer_1/"):
        bert_keras.TextClassifier.from_preset(tmp_path)


@pytest.mark.parametrize(
    "function",
    [
        (safetensors.numpy, "save_file"),
        (bert_keras.WordPieceTokenizer, "save"),
        (files, "write_text"),
        (os, "replace"),
    ],
    ids=lambda function: function[1],
)
def test_a_save_that_fails_at_any_step_leaves_the_old_preset(tmp_path, monkeypatch, function):
    old = tiny_classifier(label_names=["no", "yes"])
    old.save_to_preset(tmp_path)
    before = {p.name: p.read_bytes() for p in tmp_path.iterdir()}
    original = getattr(*function)
    new = tiny_classifier(num_classes=3)
    for successes in range(100):
        calls = 0

        def fail(*args, successes=successes, **kwargs):
            nonlocal calls
            calls += 1
            if calls == successes + 1:
                raise OSError("No space left on device")
            return original(*args, **kwargs)

        with monkeypatch.context() as patch:
            patch.setattr(*function, fail)
            try:
                new.save_to_preset(tmp_path)
                break
            except OSError:
                assert {p.name: p.read_bytes() for p in tmp_path.iterdir()} == before
    assert successes >= 1
    assert bert_keras.TextClassifier.from_preset(tmp_path).num_classes == 3


def test_a_config_that_json_cannot_hold_leaves_the_old_preset(tmp_path):
    old = tiny_classifier()
    old.save_to_preset(tmp_path)
    new = tiny_classifier()
    new.dropout = object()
    with pytest.raises(TypeError, match="JSON"):
        new.save_to_preset(tmp_path)
    again = bert_keras.TextClassifier.from_preset(tmp_path)
    np.testing.assert_array_equal(predictions(again), predictions(old))


def test_a_task_without_preprocessor_leaves_no_older_tokenizer(tmp_path):
    tiny_classifier().save_to_preset(tmp_path)
    tiny_classifier(preprocessor=None).save_to_preset(tmp_path)
    names = {"README.md", "config.json", "model.safetensors", "task.json"}
    assert {path.name for path in tmp_path.iterdir()} == names


@pytest.mark.parametrize("task", [bert_keras.TextClassifier, bert_keras.MultipleChoice])
def test_a_head_of_another_pooling_is_not_taken(tmp_path, task):
    saved = task(tiny_backbone(), preprocessor=tiny_preprocessor(), pooling="mean")
    saved.save_to_preset(tmp_path / "ours")
    task(saved.backbone, preprocessor=saved.preprocessor).export_to_huggingface(tmp_path / "theirs")
    for name, pooling in [("ours", "cls"), ("theirs", "mean")]:
        with pytest.warns(UserWarning, match="pooling"):
            task.from_preset(tmp_path / name, pooling=pooling)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        task.from_preset(tmp_path / "ours", pooling="mean")
        task.from_preset(tmp_path / "theirs", pooling="pooler")


def test_label_names_in_another_order_than_the_head_s_are_refused(tmp_path):
    classifier = tiny_classifier(num_classes=3, label_names=["x", "y", "z"])
    classifier.save_to_preset(tmp_path / "ours")
    classifier.export_to_huggingface(tmp_path / "theirs")
    for name in ("ours", "theirs"):
        with pytest.raises(ValueError, match="order"):
            bert_keras.TextClassifier.from_preset(tmp_path / name, label_names=["y", "x", "z"])
        # Other words for the same classes are welcome.
        renamed = bert_keras.TextClassifier.from_preset(
            tmp_path / name, label_names=["a", "b", "z"]
        )
        assert renamed.label_names == ("a", "b", "z")


@pytest.mark.parametrize(("dtype", "tolerance"), [("float16", 1e-3), ("bfloat16", 1e-2)])
def test_a_checkpoint_of_half_the_size_gives_nearly_the_same(tmp_path, dtype, tolerance):
    transformers = pytest.importorskip("transformers")
    classifier = tiny_classifier()
    classifier.export_to_huggingface(tmp_path / "whole")
    classifier.export_to_huggingface(tmp_path / "half", dtype=dtype)
    sizes = [(tmp_path / name / "model.safetensors").stat().st_size for name in ("half", "whole")]
    assert sizes[0] < 0.6 * sizes[1]
    loaded = bert_keras.TextClassifier.from_preset(tmp_path / "half")
    assert loaded.compute_dtype == "float32"
    for ours, theirs in zip(classifier.get_weights(), loaded.get_weights(), strict=True):
        np.testing.assert_allclose(theirs, ours, rtol=tolerance, atol=1e-6)
    model = transformers.AutoModelForSequenceClassification.from_pretrained(tmp_path / "half")
    assert str(model.dtype) == f"torch.{dtype}"


def test_a_checkpoint_s_dtype_must_hold_the_weights(tmp_path):
    classifier = tiny_classifier()
    classifier.head.dense.kernel.assign(1e5 * np.ones_like(classifier.head.dense.get_weights()[0]))
    with pytest.raises(ValueError, match="float16 must hold every weight"):
        classifier.export_to_huggingface(tmp_path / "half", dtype="float16")
    assert not (tmp_path / "half").exists()
    with pytest.raises(ValueError, match="`dtype` must be"):
        classifier.export_to_huggingface(tmp_path / "half", dtype="int8")


def change_config(folder, **changes):
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, **changes}))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"is_decoder": "no"}, "causal"),
        ({"add_cross_attention": True}, "add_cross_attention"),
        ({"hidden_act": ["gelu"]}, "hidden_act"),
        ({"layer_norm_eps": "1e-12"}, "layer_norm_epsilon"),
        ({"layer_norm_eps": -1.0}, "layer_norm_epsilon"),
        ({"initializer_range": None}, "initializer_range"),
        ({"id2label": {"a": "A", "b": "B"}}, "id2label"),
        ({"id2label": ["A", "B"]}, "id2label"),
    ],
)
def test_a_checkpoint_that_cannot_be_is_an_error(tmp_path, changes, message):
    tiny_classifier().export_to_huggingface(tmp_path)
    change_config(tmp_path, **changes)
    with pytest.raises(ValueError, match=message):
        bert_keras.TextClassifier.from_preset(tmp_path)


def test_labels_of_a_checkpoint_that_are_no_names_become_numbers(tmp_path):
    tiny_classifier().export_to_huggingface(tmp_path)
    change_config(tmp_path, id2label={"0": "A", "1": "A"})
    with pytest.warns(UserWarning, match="not different names") as noted:
        assert bert_keras.TextClassifier.from_preset(tmp_path).label_names is None
    assert len(noted) == 1 and noted[0].filename == __file__


def test_an_export_says_which_token_is_padding(tmp_path):
    # The ids of [PAD] and [MASK] changed places.
    vocabulary = [*VOCABULARY[4:0:-1], VOCABULARY[0], *VOCABULARY[5:]]
    tokenizer = bert_keras.WordPieceTokenizer(vocabulary)
    preprocessor = bert_keras.TextPreprocessor(tokenizer, max_length=16)
    backbone = tiny_backbone()
    for name, model, expected in [
        ("task", tiny_classifier(backbone, preprocessor=preprocessor), 4),
        ("embedder", bert_keras.TextEmbedder(backbone, preprocessor), 4),
        ("bare", backbone, 0),
    ]:
        model.export_to_huggingface(tmp_path / name)
        config = json.loads((tmp_path / name / "config.json").read_text())
        assert config["pad_token_id"] == expected


def test_a_large_own_preset_is_written_in_shards(tmp_path, monkeypatch):
    classifier = tiny_classifier()
    classifier.save_to_preset(tmp_path)
    monkeypatch.setattr(safetensors_io, "LARGEST_FILE", 4000)
    for _ in range(2):
        classifier.save_to_preset(tmp_path)
        names = {path.name for path in tmp_path.glob("model*")}
        assert len(names) > 3 and "model.safetensors" not in names
        again = bert_keras.TextClassifier.from_preset(tmp_path)
        np.testing.assert_array_equal(predictions(again), predictions(classifier))
    monkeypatch.undo()
    classifier.save_to_preset(tmp_path)
    assert [path.name for path in tmp_path.glob("model*")] == ["model.safetensors"]


@keras.saving.register_keras_serializable(package="mine")
class Shouting(bert_keras.TextPreprocessor):
    """A preprocessor of a user's, with an argument of its own."""

    def __init__(self, tokenizer, marks=1, **kwargs):
        super().__init__(tokenizer, **kwargs)
        self.marks = marks

    def get_config(self):
        return {**super().get_config(), "marks": self.marks}


def test_a_preprocessor_of_a_user_s_comes_back_as_it_was(tmp_path):
    tokenizer = bert_keras.WordPieceTokenizer(VOCABULARY)
    preprocessor = Shouting(tokenizer, marks=3, max_length=12)
    tiny_classifier(preprocessor=preprocessor).save_to_preset(tmp_path)
    again = bert_keras.TextClassifier.from_preset(tmp_path, max_length=9).preprocessor
    assert (type(again), again.marks, again.max_length) == (Shouting, 3, 9)
    actual, expected = (each(TEXTS[:1])["token_ids"] for each in (again, preprocessor))
    np.testing.assert_array_equal(actual, expected)


@keras.saving.register_keras_serializable(package="tests")
class Lowering(bert_keras.TextPreprocessor):
    """Reads everything in lower case."""

    def tokenize(self, texts, pairs=None):
        return super().tokenize([text.lower() for text in texts], pairs)


@pytest.mark.once
def test_a_preset_keeps_its_way_with_text_and_its_problem_for_other_tasks_and_labels(tmp_path):
    tokenizer = bert_keras.WordPieceTokenizer(VOCABULARY, lowercase=False)
    backbone = bert_keras.BertBackbone(len(VOCABULARY), 1, 2, 8, 16, max_sequence_length=16)
    task = bert_keras.MaskedLM(backbone, preprocessor=Lowering(tokenizer, max_length=8))
    task.backbone.embeddings.trainable = False
    task.save_to_preset(tmp_path)
    classifier = bert_keras.TextClassifier.from_preset(
        tmp_path, problem_type="multi_label", label_names=["x", "y"]
    )
    assert isinstance(classifier.preprocessor, Lowering)
    assert classifier.preprocessor.max_length == 8
    assert all(weight.trainable for weight in classifier.backbone.embeddings.weights)
    classifier.save_to_preset(tmp_path / "labelled")
    with pytest.warns(UserWarning, match="starts at random"):
        again = bert_keras.TextClassifier.from_preset(
            tmp_path / "labelled", label_names=["p", "q", "r"]
        )
    assert (again.problem_type, again.num_classes) == ("multi_label", 3)


@pytest.mark.once
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"architectures": [1]}, "architectures"),
        ({"architectures": 5}, "architectures"),
        ({"problem_type": ["a"]}, "problem_type"),
        ({"problem_type": "foo"}, "problem_type"),
        ({"classifier_dropout": "x"}, "classifier_dropout"),
        ({"quantization_config": {"bits": 4}}, "quantization_config"),
    ],
    ids=str,
)
def test_a_value_of_a_checkpoint_s_config_that_cannot_be_is_named(tmp_path, changes, message):
    tiny_classifier().export_to_huggingface(tmp_path)
    change_config(tmp_path, **changes)
    with pytest.raises(ValueError, match=rf"`{message}` in `.*config\.json` must be.*Received"):
        bert_keras.TextClassifier.from_preset(tmp_path)


@pytest.mark.once
def test_weights_of_integers_are_refused(tmp_path):
    tiny_classifier().export_to_huggingface(tmp_path / "theirs")
    tiny_classifier().save_to_preset(tmp_path / "ours")
    for name in ("theirs", "ours"):
        rewrite(tmp_path / name, lambda t: {k: v.astype("int8") for k, v in t.items()})
        with pytest.raises(ValueError, match=r"must be floats\..*dtype int8"):
            bert_keras.TextClassifier.from_preset(tmp_path / name)


@pytest.mark.once
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"registered_name": 5}, r"task\.json must say by 'registered_name'"),
        ({"config": [1]}, r"task\.json must say by 'registered_name'"),
        ({"preprocessor": "x"}, r"task\.json must say by 'registered_name'"),
        ({"preprocessor": {"registered_name": "x"}}, r"task\.json must say by 'registered_name'"),
        ({"preprocessor": {"registered_name": "x", "config": {}}}, "'x', which is not registered"),
        ({"config": {"head_options": {"colour": "red"}}}, "`head_options` must be one of"),
    ],
    ids=str,
)
def test_a_task_json_that_cannot_be_is_named(tmp_path, changes, message):
    tiny_classifier().save_to_preset(tmp_path)
    saved = json.loads((tmp_path / "task.json").read_text())
    (tmp_path / "task.json").write_text(json.dumps({**saved, **changes}))
    with pytest.raises(ValueError, match=message):
        bert_keras.TextClassifier.from_preset(tmp_path)


class Unknown(bert_keras.TextPreprocessor):
    """A preprocessor that nobody has registered."""


@pytest.mark.once
def test_a_preprocessor_that_is_not_registered_is_not_saved(tmp_path):
    preprocessor = Unknown(bert_keras.WordPieceTokenizer(VOCABULARY), max_length=12)
    with pytest.raises(ValueError, match=r"must be registered\. Received: .*Unknown"):
        tiny_classifier(preprocessor=preprocessor).save_to_preset(tmp_path / "preset")
    assert not (tmp_path / "preset").exists()


@pytest.mark.once
def test_arguments_that_only_a_head_could_tell_are_named(tmp_path):
    tiny_backbone().save_to_preset(tmp_path)
    with pytest.raises(TypeError, match=r"no head for a TokenClassifier.*\['num_classes'\]"):
        bert_keras.TokenClassifier.from_preset(tmp_path, preprocessor=None)


@pytest.mark.once
def test_an_export_leaves_nothing_of_an_older_preset(tmp_path):
    tiny_classifier().save_to_preset(tmp_path)
    (tmp_path / "merges.txt").write_text("of another tokenizer")
    bare = tiny_classifier(preprocessor=None)
    bare.export_to_huggingface(tmp_path)
    names = {"README.md", "config.json", "model.safetensors"}
    assert {path.name for path in tmp_path.iterdir()} == names
    tiny_preprocessor().tokenizer.save(tmp_path)
    bare.backbone.export_to_huggingface(tmp_path)
    assert (tmp_path / "tokenizer.json").exists()
