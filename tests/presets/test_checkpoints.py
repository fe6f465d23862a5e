"""Presets of ours and Hugging Face's: in, out, and what is refused."""

import os
import pathlib
import shutil

import keras
import numpy as np
import pytest
import safetensors.numpy
import torch
import transformers
from files import change_json, contents, read_json
from foreign import bert_of_transformers, replaced, rewrite_hugging_face, write_hugging_face
from hub_server import HubServer
from tiny import VOCABULARY, tiny_backbone, tiny_classifier, tiny_preprocessor

import bert_keras
from bert_keras.engine import atomic_files
from bert_keras.presets import safetensors_io
from bert_keras.presets.assign import relative_path
from bert_keras.presets.families import bert_record as bert
from bert_keras.presets.formats.huggingface import _KINDS
from bert_keras.presets.name_map import expand, transformed
from bert_keras.presets.resolve import resolve

TEXTS = ["a b c", "d e", "h a g g", "", "b" * 30]


def predictions(source, **options):
    """Returns the logits for `TEXTS` of a classifier, or of one loaded from a preset."""
    if not isinstance(source, keras.Model):
        source = bert_keras.TextClassifier.from_preset(source, **options)
    return source.predict(TEXTS, verbose=0)


def save_with_transformers(folder, labels=("bad", "fine", "good")):
    ids = {name: i for i, name in enumerate(labels)}
    options = {"id2label": dict(enumerate(labels)), "label2id": ids, "initializer_range": 0.3}
    model = bert_of_transformers("SequenceClassification", hidden_act="gelu", **options)
    write_hugging_face(folder, model)
    return folder


@pytest.fixture
def theirs(tmp_path):
    """A fine-tuned BertForSequenceClassification, saved by transformers."""
    return save_with_transformers(tmp_path / "theirs")


@pytest.fixture
def ours(tmp_path):
    """A preset of a classifier with random weights."""
    tiny_classifier(label_names=["no", "yes"]).save_to_preset(tmp_path / "ours")
    return tmp_path / "ours"


def transformers_logits(folder):
    model = transformers.AutoModelForSequenceClassification.from_pretrained(folder).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    batch = tokenizer(TEXTS, padding=True, truncation=True, max_length=16, return_tensors="pt")
    with torch.no_grad():
        return model(**batch).logits.numpy()


@pytest.mark.filterwarnings("error::UserWarning")
def test_a_fine_tuned_checkpoint_comes_with_its_head_and_labels(theirs):
    classifier = bert_keras.TextClassifier.from_preset(theirs)
    assert classifier.label_names == ("bad", "fine", "good")
    np.testing.assert_allclose(predictions(classifier), transformers_logits(theirs), atol=1e-5)


def test_transformers_loads_an_export(tmp_path):
    classifier = tiny_classifier(num_classes=3, label_names=["x", "y", "z"])
    for variable in classifier.weights:
        variable.assign(np.random.default_rng(1).normal(0, 0.3, variable.shape))
    classifier.export_to_huggingface(tmp_path)
    np.testing.assert_allclose(transformers_logits(tmp_path), predictions(classifier), atol=1e-5)
    labels = {"0": "x", "1": "y", "2": "z"}
    assert read_json(tmp_path / "config.json")["id2label"] == labels
    again = bert_keras.TextClassifier.from_preset(tmp_path)
    assert again.label_names == ("x", "y", "z")
    np.testing.assert_array_equal(predictions(again), predictions(classifier))


@pytest.mark.parametrize(
    "names",
    [{"bert.": ""}, {"LayerNorm.weight": "LayerNorm.gamma", "LayerNorm.bias": "LayerNorm.beta"}],
    ids=["no prefix", "old names of the norms"],
)
def test_other_names_of_the_same_tensors_give_the_same(theirs, names):
    expected = predictions(theirs)
    rewrite_hugging_face(theirs, lambda t: {replaced(k, names): v for k, v in t.items()})
    np.testing.assert_array_equal(predictions(theirs), expected)


def test_a_missing_head_is_named_in_a_warning(theirs):
    rewrite_hugging_face(theirs, lambda t: {k: v for k, v in t.items() if "classifier" not in k})
    with pytest.warns(UserWarning, match="head/dense/kernel, head/dense/bias"):
        classifier = bert_keras.TextClassifier.from_preset(theirs)
    assert classifier.num_classes == 2


def test_another_number_of_classes_gets_a_new_head_and_a_warning(theirs):
    with pytest.warns(UserWarning, match="num_classes"):
        classifier = bert_keras.TextClassifier.from_preset(theirs, num_classes=5)
    assert classifier.label_names is None
    assert predictions(classifier).shape == (len(TEXTS), 5)


def test_a_checkpoint_with_a_single_label_is_a_regression(tmp_path):
    folder = save_with_transformers(tmp_path / "score", labels=("LABEL_0",))
    classifier = bert_keras.TextClassifier.from_preset(folder)
    assert (classifier.problem_type, classifier.num_classes) == ("regression", 1)
    np.testing.assert_allclose(predictions(classifier), transformers_logits(folder), atol=1e-5)


def test_a_pickle_of_another_name_is_refused_with_a_remedy(theirs):
    os.rename(theirs / "model.safetensors", theirs / "model.pt")
    with pytest.raises(ValueError, match=r"safe_serialization|safetensors"):
        bert_keras.BertBackbone.from_preset(theirs)


def test_an_unknown_preset_is_an_error():
    with pytest.raises((ValueError, FileNotFoundError), match="minilm_l6_en_uncased"):
        bert_keras.TextClassifier.from_preset("minilm_l6_en_uncasd")


def test_an_unknown_argument_is_an_error(theirs):
    with pytest.raises(TypeError, match="num_labels"):
        bert_keras.TextClassifier.from_preset(theirs, num_labels=3)


def test_arguments_reach_the_constructor_that_takes_them(theirs):
    options = {"dropout": 0.0, "backbone": {"attention_dropout": 0.3}, "max_length": 8}
    with pytest.warns(UserWarning, match="pooling"):
        classifier = bert_keras.TextClassifier.from_preset(theirs, pooling="mean", **options)
    assert (classifier.dropout, classifier.backbone.dropout) == (0.0, 0.2)
    assert classifier.backbone.attention_dropout == 0.3
    assert classifier.preprocessor.max_length == 8
    assert classifier.pooling == "mean"
    bare = bert_keras.TextClassifier.from_preset(theirs, preprocessor=None)
    assert bare.preprocessor is None


def test_a_preset_of_ours_gives_the_same_numbers(tmp_path):
    classifier = tiny_classifier(label_names=["no", "yes"], pooling="mean")
    classifier.save_to_preset(tmp_path)
    names = {path.name for path in tmp_path.iterdir()}
    assert {"config.json", "model.safetensors", "task.json", "tokenizer.json"} <= names
    assert not [name for name in names if name.endswith(".h5") or "partial" in name]
    again = bert_keras.TextClassifier.from_preset(tmp_path)
    assert again.get_config() | {"name": ""} == classifier.get_config() | {"name": ""}
    np.testing.assert_array_equal(predictions(again), predictions(classifier))
    inputs = classifier.preprocessor(TEXTS)
    pooled = [
        backbone.predict(inputs, verbose=0)["pooled_output"]
        for backbone in (bert_keras.BertBackbone.from_preset(tmp_path), classifier.backbone)
    ]
    np.testing.assert_array_equal(*pooled)


def test_a_truncated_preset_of_ours_is_an_error(ours):
    os.truncate(ours / "model.safetensors", (ours / "model.safetensors").stat().st_size // 2)
    with pytest.raises(ValueError, match=r"model\.safetensors"):
        bert_keras.TextClassifier.from_preset(ours)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("bert_keras>WordPieceTokenizer", "not a Backbone"),
        ("bert_keras>Nothing", "not registered"),
    ],
)
def test_a_config_of_another_class_is_refused(ours, name, message):
    change_json(ours / "config.json", registered_name=name)
    with pytest.raises(ValueError, match=message):
        bert_keras.TextClassifier.from_preset(ours)


def test_a_classifier_comes_from_the_hub_and_then_from_its_cache(theirs, tmp_path, monkeypatch):
    expected = predictions(theirs)
    with HubServer({"someone/classifier": theirs}) as hub:
        hub.use(monkeypatch, tmp_path / "cache")
        np.testing.assert_array_equal(predictions("hf://someone/classifier"), expected)
        with pytest.raises((ValueError, FileNotFoundError), match="nobody/nothing"):
            bert_keras.TextClassifier.from_preset("hf://nobody/nothing")
        hub.stop()
        np.testing.assert_array_equal(predictions("hf://someone/classifier"), expected)


def test_each_transform_is_its_own_inverse_and_no_name_appears_twice():
    names = expand(bert.ROWS, _KINDS, i=3)
    theirs = [name for name, _ in names.values()]
    assert len(set(theirs)) == len(theirs)
    array = np.arange(6).reshape(2, 3)
    for rows in _KINDS.values():
        for _, _, transform in rows:
            twice = transformed(transformed(array, transform), transform)
            np.testing.assert_array_equal(twice, array)


def test_the_map_covers_every_weight_of_the_backbone():
    backbone = tiny_backbone(num_layers=2)
    assert {relative_path(v) for v in backbone.weights} == set(expand(bert.ROWS, _KINDS, i=2))


def minilm():
    try:
        return resolve("minilm_l6_en_uncased")
    except FileNotFoundError:
        return None


@pytest.mark.skipif(minilm() is None, reason="the extra `demo` is not installed")
def test_a_real_checkpoint_equals_transformers():
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


def test_saving_over_a_preset_never_leaves_half_a_file(ours, monkeypatch):
    before = contents(ours)

    def fail(*args, **kwargs):
        pathlib.Path(args[1]).write_bytes(b"half a fi")
        raise OSError("No space left on device")

    monkeypatch.setattr(safetensors.numpy, "save_file", fail)
    with pytest.raises(OSError, match="No space"):
        tiny_classifier().save_to_preset(ours)
    assert contents(ours) == before
    shutil.rmtree(ours)


def test_a_pooling_that_transformers_lacks_is_not_exported(tmp_path):
    with pytest.raises(ValueError, match="pooling='mean'"):
        tiny_classifier(pooling="mean").export_to_huggingface(tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_preset_of_a_backbone_alone_gives_a_random_head_and_a_warning(tmp_path):
    classifier = tiny_classifier()
    classifier.backbone.save_to_preset(tmp_path)
    classifier.preprocessor.tokenizer.save(tmp_path)
    with pytest.warns(UserWarning, match="head/dense/kernel"):
        bert_keras.TextClassifier.from_preset(tmp_path)


def test_saving_a_backbone_over_a_task_removes_the_old_head(tmp_path):
    tiny_classifier(frozen="backbone").save_to_preset(tmp_path)
    tiny_backbone().save_to_preset(tmp_path)
    assert not (tmp_path / "task.json").exists()
    assert bert_keras.BertBackbone.from_preset(tmp_path).trainable


def test_a_subclass_keeps_its_head_in_its_preset(tmp_path):
    @keras.saving.register_keras_serializable(package="mine")
    class MyClassifier(bert_keras.TextClassifier):
        pass

    mine = MyClassifier(tiny_backbone(), preprocessor=tiny_preprocessor())
    mine.save_to_preset(tmp_path)
    again = MyClassifier.from_preset(tmp_path)
    np.testing.assert_array_equal(predictions(again), predictions(mine))


def test_more_weights_than_the_config_asks_for_are_an_error(tmp_path):
    tiny_classifier(tiny_backbone(num_layers=2)).save_to_preset(tmp_path)
    config = read_json(tmp_path / "config.json")["config"]
    change_json(tmp_path / "config.json", config={**config, "num_layers": 1})
    with pytest.raises(ValueError, match=r"without a weight \(16\): encoder/layer_1/"):
        bert_keras.TextClassifier.from_preset(tmp_path)


@pytest.mark.parametrize(
    "function",
    [
        (safetensors.numpy, "save_file"),
        (bert_keras.WordPieceTokenizer, "save"),
        (atomic_files, "write_text"),
        (os, "replace"),
    ],
    ids=lambda function: function[1],
)
def test_a_save_that_fails_at_any_step_leaves_the_old_preset(ours, monkeypatch, function):
    before = contents(ours)
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
                new.save_to_preset(ours)
                break
            except OSError:
                assert contents(ours) == before
    assert successes >= 1
    assert bert_keras.TextClassifier.from_preset(ours).num_classes == 3


def test_a_config_that_json_cannot_hold_leaves_the_old_preset(ours):
    expected = predictions(ours)
    new = tiny_classifier()
    new.dropout = object()
    with pytest.raises(TypeError, match="JSON"):
        new.save_to_preset(ours)
    np.testing.assert_array_equal(predictions(ours), expected)


def test_saving_a_task_without_preprocessor_removes_the_old_tokenizer(ours):
    tiny_classifier(preprocessor=None).save_to_preset(ours)
    assert set(contents(ours)) == {"README.md", "config.json", "model.safetensors", "task.json"}


@pytest.mark.parametrize("task", [bert_keras.TextClassifier, bert_keras.MultipleChoice])
@pytest.mark.filterwarnings("error::UserWarning")
def test_a_head_is_kept_only_with_its_own_pooling(tmp_path, task):
    saved = task(tiny_backbone(), preprocessor=tiny_preprocessor(), pooling="mean")
    saved.save_to_preset(tmp_path / "ours")
    task(saved.backbone, preprocessor=saved.preprocessor).export_to_huggingface(tmp_path / "theirs")
    for name, pooling in [("ours", "cls"), ("theirs", "mean")]:
        with pytest.warns(UserWarning, match="pooling"):
            task.from_preset(tmp_path / name, pooling=pooling)
    task.from_preset(tmp_path / "ours", pooling="mean")
    task.from_preset(tmp_path / "theirs", pooling="pooler")


def test_label_names_may_be_renamed_but_not_reordered(tmp_path):
    classifier = tiny_classifier(num_classes=3, label_names=["x", "y", "z"])
    classifier.save_to_preset(tmp_path / "ours")
    classifier.export_to_huggingface(tmp_path / "theirs")
    for folder in tmp_path.iterdir():
        with pytest.raises(ValueError, match="order"):
            bert_keras.TextClassifier.from_preset(folder, label_names=["y", "x", "z"])
        renamed = bert_keras.TextClassifier.from_preset(folder, label_names=["a", "b", "z"])
        assert renamed.label_names == ("a", "b", "z")


@pytest.mark.parametrize(("dtype", "tolerance"), [("float16", 1e-3), ("bfloat16", 1e-2)])
def test_a_checkpoint_of_half_the_size_gives_nearly_the_same(tmp_path, dtype, tolerance):
    classifier = tiny_classifier()
    classifier.export_to_huggingface(tmp_path / "whole")
    classifier.export_to_huggingface(tmp_path / "half", dtype=dtype)
    sizes = [(tmp_path / name / "model.safetensors").stat().st_size for name in ("half", "whole")]
    assert sizes[0] < 0.6 * sizes[1]
    loaded = bert_keras.TextClassifier.from_preset(tmp_path / "half")
    assert loaded.compute_dtype == "float32"
    for before, after in zip(classifier.get_weights(), loaded.get_weights(), strict=True):
        np.testing.assert_allclose(after, before, rtol=tolerance, atol=1e-6)
    model = transformers.AutoModelForSequenceClassification.from_pretrained(tmp_path / "half")
    assert str(model.dtype) == f"torch.{dtype}"


def test_the_dtype_of_an_export_must_hold_the_weights(tmp_path):
    classifier = tiny_classifier()
    kernel = classifier.head.dense.kernel
    kernel.assign(np.full(kernel.shape, 1e5))
    with pytest.raises(ValueError, match="float16 must hold every weight"):
        classifier.export_to_huggingface(tmp_path / "half", dtype="float16")
    assert not (tmp_path / "half").exists()
    with pytest.raises(ValueError, match="`dtype` must be"):
        classifier.export_to_huggingface(tmp_path / "half", dtype="int8")


RULE = r"`{}` in `.*config\.json` must be.*Received"


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
        ({"architectures": [1]}, RULE.format("architectures")),
        ({"architectures": 5}, RULE.format("architectures")),
        ({"problem_type": ["a"]}, RULE.format("problem_type")),
        ({"problem_type": "foo"}, RULE.format("problem_type")),
        ({"classifier_dropout": "x"}, RULE.format("classifier_dropout")),
        ({"quantization_config": {"bits": 4}}, RULE.format("quantization_config")),
    ],
    ids=str,
)
def test_an_impossible_value_in_a_config_is_named(tmp_path, changes, message):
    tiny_classifier().export_to_huggingface(tmp_path)
    change_json(tmp_path / "config.json", **changes)
    with pytest.raises(ValueError, match=message):
        bert_keras.TextClassifier.from_preset(tmp_path)


def test_labels_of_a_checkpoint_that_are_not_distinct_names_become_numbers(tmp_path):
    tiny_classifier().export_to_huggingface(tmp_path)
    change_json(tmp_path / "config.json", id2label={"0": "A", "1": "A"})
    with pytest.warns(UserWarning, match="not different names") as caught:
        assert bert_keras.TextClassifier.from_preset(tmp_path).label_names is None
    assert len(caught) == 1 and caught[0].filename == __file__


def test_an_export_states_the_padding_id(tmp_path):
    # The ids of [PAD] and [MASK] changed places.
    vocabulary = [*VOCABULARY[4:0:-1], VOCABULARY[0], *VOCABULARY[5:]]
    tokenizer = bert_keras.WordPieceTokenizer(vocabulary)
    preprocessor = bert_keras.TextPreprocessor(tokenizer, max_length=16)
    backbone = tiny_backbone()
    for model, expected in [
        (tiny_classifier(backbone, preprocessor=preprocessor), 4),
        (bert_keras.TextEmbedder(backbone, preprocessor), 4),
        (backbone, 0),
    ]:
        folder = tmp_path / type(model).__name__
        model.export_to_huggingface(folder)
        assert read_json(folder / "config.json")["pad_token_id"] == expected


def test_a_large_preset_of_ours_is_written_in_shards(tmp_path, monkeypatch):
    classifier = tiny_classifier()
    classifier.save_to_preset(tmp_path)
    monkeypatch.setattr(safetensors_io, "LARGEST_FILE", 4000)
    for _ in range(2):
        classifier.save_to_preset(tmp_path)
        names = {path.name for path in tmp_path.glob("model*")}
        assert len(names) > 3 and "model.safetensors" not in names
        np.testing.assert_array_equal(predictions(tmp_path), predictions(classifier))
    monkeypatch.undo()
    classifier.save_to_preset(tmp_path)
    assert [path.name for path in tmp_path.glob("model*")] == ["model.safetensors"]


@keras.saving.register_keras_serializable(package="mine")
class Shouting(bert_keras.TextPreprocessor):
    """A user's preprocessor with an argument of its own."""

    def __init__(self, tokenizer, marks=1, **kwargs):
        super().__init__(tokenizer, **kwargs)
        self.marks = marks

    def get_config(self):
        return {**super().get_config(), "marks": self.marks}


def test_a_preset_restores_a_users_preprocessor(tmp_path):
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
def test_another_task_or_other_labels_keep_a_presets_preprocessor_and_problem_type(tmp_path):
    tokenizer = bert_keras.WordPieceTokenizer(VOCABULARY, lowercase=False)
    task = bert_keras.MaskedLM(tiny_backbone(), preprocessor=Lowering(tokenizer, max_length=8))
    task.backbone.embeddings.trainable = False
    task.save_to_preset(tmp_path)
    options = {"problem_type": "multi_label", "label_names": ["x", "y"]}
    classifier = bert_keras.TextClassifier.from_preset(tmp_path, **options)
    assert isinstance(classifier.preprocessor, Lowering)
    assert classifier.preprocessor.max_length == 8
    assert all(weight.trainable for weight in classifier.backbone.embeddings.weights)
    classifier.save_to_preset(tmp_path / "labelled")
    with pytest.warns(UserWarning, match="starts at random"):
        again = bert_keras.TextClassifier.from_preset(tmp_path / "labelled", label_names=[*"pqr"])
    assert (again.problem_type, again.num_classes) == ("multi_label", 3)


@pytest.mark.once
def test_integer_weights_are_refused(tmp_path):
    tiny_classifier().export_to_huggingface(tmp_path / "theirs")
    tiny_classifier().save_to_preset(tmp_path / "ours")
    for folder in tmp_path.iterdir():
        rewrite_hugging_face(folder, lambda t: {k: v.astype("int8") for k, v in t.items()})
        with pytest.raises(ValueError, match=r"must be floats\..*dtype int8"):
            bert_keras.TextClassifier.from_preset(folder)


@pytest.mark.once
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"registered_name": 5}, r"task\.json must have a 'registered_name'"),
        ({"config": [1]}, r"task\.json must have a 'registered_name'"),
        ({"preprocessor": "x"}, r"task\.json must have a 'registered_name'"),
        ({"preprocessor": {"registered_name": "x"}}, r"task\.json must have a 'registered_name'"),
        ({"preprocessor": {"registered_name": "x", "config": {}}}, "'x', which is not registered"),
        ({"config": {"head_options": {"colour": "red"}}}, "`head_options` must be one of"),
    ],
    ids=str,
)
def test_an_impossible_task_json_is_named(ours, changes, message):
    change_json(ours / "task.json", **changes)
    with pytest.raises(ValueError, match=message):
        bert_keras.TextClassifier.from_preset(ours)


@pytest.mark.parametrize(
    ("name", "text"), [("config.json", '{"registered_name": "x"}'), ("task.json", "[]")]
)
def test_a_damaged_file_of_a_preset_of_ours_is_named(ours, name, text):
    (ours / name).write_text(text)
    with pytest.raises(ValueError, match=name):
        bert_keras.TextClassifier.from_preset(ours)


class Unknown(bert_keras.TextPreprocessor):
    """A preprocessor that is not registered."""


@pytest.mark.once
def test_an_unregistered_preprocessor_is_not_saved(tmp_path):
    preprocessor = Unknown(bert_keras.WordPieceTokenizer(VOCABULARY), max_length=12)
    with pytest.raises(ValueError, match=r"must be registered\. Received: .*Unknown"):
        tiny_classifier(preprocessor=preprocessor).save_to_preset(tmp_path / "preset")
    assert not (tmp_path / "preset").exists()


@pytest.mark.once
def test_arguments_that_a_new_head_needs_are_named(tmp_path):
    tiny_backbone().save_to_preset(tmp_path)
    with pytest.raises(TypeError, match=r"no head for a TokenClassifier.*\['num_classes'\]"):
        bert_keras.TokenClassifier.from_preset(tmp_path, preprocessor=None)


@pytest.mark.once
def test_an_export_removes_all_files_of_an_older_preset(ours):
    (ours / "merges.txt").write_text("of another tokenizer")
    bare = tiny_classifier(preprocessor=None)
    bare.export_to_huggingface(ours)
    assert set(contents(ours)) == {"README.md", "config.json", "model.safetensors"}
    tiny_preprocessor().tokenizer.save(ours)
    bare.backbone.export_to_huggingface(ours)
    assert (ours / "tokenizer.json").exists()
