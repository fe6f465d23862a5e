"""Presets of ours and Hugging Face's: in, out, and what is refused."""

import shutil

import keras
import numpy as np
import pytest
import safetensors.numpy
import torch
import transformers
from checks import cases
from files import change_json, contents, read_json
from foreign import bert_of_transformers, write_hugging_face
from tiny import VOCABULARY, tiny_backbone, tiny_classifier, tiny_preprocessor

import bert_keras

TEXTS = ["a b c", "d e", "h a g g", "", "b" * 30]


def predictions(source, **options):
    """Returns the logits for `TEXTS` of a classifier, or of one loaded from a preset."""
    if not isinstance(source, keras.Model):
        source = bert_keras.TextClassifier.from_preset(source, **options)
    return source.predict(TEXTS, verbose=0)


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    root = tmp_path_factory.mktemp("written")
    names = dict(enumerate(("bad", "fine", "good")))
    model = bert_of_transformers("SequenceClassification", id2label=names)
    write_hugging_face(root / "theirs", model)
    tiny_classifier(label_names=["no", "yes"]).save_to_preset(root / "ours")
    return root


@pytest.fixture
def theirs(written, tmp_path):
    """A fine-tuned BertForSequenceClassification, saved by transformers."""
    return shutil.copytree(written / "theirs", tmp_path / "theirs")


@pytest.fixture
def ours(written, tmp_path):
    """A preset of a classifier with random weights."""
    return shutil.copytree(written / "ours", tmp_path / "ours")


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


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_a_checkpoint_of_half_the_size_has_the_rounded_weights(tmp_path, dtype):
    classifier = tiny_classifier()
    classifier.export_to_huggingface(tmp_path / "whole")
    half = bert_keras.TextClassifier.from_preset(tmp_path / "whole", dtype=dtype)
    half.export_to_huggingface(tmp_path / "half")
    sizes = [(tmp_path / name / "model.safetensors").stat().st_size for name in ("half", "whole")]
    assert sizes[0] < 0.6 * sizes[1]
    loaded = bert_keras.TextClassifier.from_preset(tmp_path / "half")
    assert loaded.compute_dtype == "float32"
    for before, after in zip(classifier.get_weights(), loaded.get_weights(), strict=True):
        rounded = torch.tensor(before).to(getattr(torch, dtype)).float()
        np.testing.assert_array_equal(after, rounded.numpy())
    model = transformers.AutoModelForSequenceClassification.from_pretrained(tmp_path / "half")
    assert str(model.dtype) == f"torch.{dtype}"


def test_an_exported_task_cuts_texts_where_it_did_before(tmp_path):
    text, preprocessor = "a b c d e f g h", tiny_preprocessor(max_length=6)
    classifier = tiny_classifier(preprocessor=preprocessor)
    classifier.export_to_huggingface(tmp_path)
    loaded = bert_keras.TextClassifier.from_preset(tmp_path)
    assert loaded.preprocessor.max_length == 6 and preprocessor.tokenizer.model_max_length is None
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path)
    expected = preprocessor([text])["token_ids"][0]
    np.testing.assert_array_equal(theirs(text, truncation=True)["input_ids"], expected)


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


@pytest.mark.parametrize("options", [{"num_classes": 5}, {"label_names": [*"vwxyz"]}], ids=str)
def test_another_number_of_classes_gets_a_new_head_and_a_warning(theirs, options):
    with pytest.warns(UserWarning, match="num_classes"):
        classifier = bert_keras.TextClassifier.from_preset(theirs, **options)
    assert classifier.label_names == (tuple("vwxyz") if "label_names" in options else None)
    assert predictions(classifier).shape == (len(TEXTS), 5)


def test_an_argument_that_a_new_head_needs_is_named(tmp_path):
    tiny_backbone().save_to_preset(tmp_path)
    with pytest.raises(TypeError, match=r"no head for a TokenClassifier.*\['num_classes'\]"):
        bert_keras.TokenClassifier.from_preset(tmp_path, preprocessor=None)


# What the JSON of a preset in Hugging Face's layout may not say.
RULE = r"`{}` in `.*config\.json` must be.*Received"
THEIRS = [
    ({"is_decoder": "no"}, "causal"),
    ({"add_cross_attention": True}, "add_cross_attention"),
    ({"hidden_act": ["gelu"]}, "hidden_act"),
    ({"layer_norm_eps": "1e-12"}, "layer_norm_epsilon"),
    ({"layer_norm_eps": -1.0}, "layer_norm_epsilon"),
    ({"initializer_range": None}, "initializer_range"),
    ({"id2label": ["A", "B"]}, "AttributeError: 'list'"),
    ({"problem_type": ["a"]}, RULE.format("problem_type")),
    ({"problem_type": "foo"}, RULE.format("problem_type")),
    ({"classifier_dropout": "x"}, RULE.format("classifier_dropout")),
    ({"quantization_config": {"bits": 4}}, RULE.format("quantization_config")),
]
# What the files of ours may not say: a name, and keys of its object or its whole text.
NO_NAME = r"task\.json must have a 'registered_name'"
OURS = [
    ("config.json", {"registered_name": "bert_keras>WordPieceTokenizer"}, "not a Backbone. Load"),
    ("config.json", {"registered_name": "bert_keras>Nothing"}, "not registered. Import"),
    ("config.json", '{"registered_name": "x"}', r"config\.json must have"),
    ("task.json", "[]", r"task\.json"),
    ("task.json", {"registered_name": 5}, "'5', which is not registered"),
    ("task.json", {"config": [1]}, NO_NAME),
    ("task.json", {"preprocessor": "x"}, NO_NAME),
    ("task.json", {"preprocessor": {"registered_name": "x"}}, NO_NAME),
    ("task.json", {"preprocessor": {"registered_name": "x", "config": {}}},
     "'x', which is not reg"),
    ("task.json", {"config": {"head_options": {"colour": "red"}}}, "`head_options` must be one of"),
    ("model.safetensors", "\x09\0\0\0\0\0\0\0{}", r"model\.safetensors"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("layout", "name", "change", "message"),
    [*(("theirs", "config.json", *row) for row in THEIRS), *(("ours", *row) for row in OURS)],
    ids=str,
)
def test_a_preset_that_cannot_be_right_is_refused(request, layout, name, change, message):
    folder = request.getfixturevalue(layout)
    if isinstance(change, str):
        (folder / name).write_text(change)
    else:
        change_json(folder / name, **change)
    with pytest.raises(ValueError, match=message):
        bert_keras.TextClassifier.from_preset(folder)


def test_weights_that_do_not_fit_the_config_are_refused(tmp_path):
    tiny_classifier(tiny_backbone(num_layers=2)).save_to_preset(tmp_path)
    config = read_json(tmp_path / "config.json")["config"]
    change_json(tmp_path / "config.json", config={**config, "num_layers": 1})
    with pytest.raises(ValueError, match=r"without a weight \(16\): encoder/layer_1/"):
        bert_keras.TextClassifier.from_preset(tmp_path)
    change_json(tmp_path / "config.json", config=config)
    path = tmp_path / "model.safetensors"
    tensors = safetensors.numpy.load_file(path)
    safetensors.numpy.save_file({**tensors, "head/other": np.zeros(2, "float32")}, path)
    with pytest.raises(ValueError, match=r"without a weight \(1\): head/other"):
        bert_keras.TextClassifier.from_preset(tmp_path)


class Unregistered(bert_keras.TextPreprocessor):
    """A preprocessor that Keras cannot find by name."""


UNREGISTERED = r"must be registered\. Received: .*Unregistered"


def with_unregistered_preprocessor():
    return tiny_classifier(preprocessor=Unregistered(tiny_preprocessor().tokenizer, max_length=12))


def with_a_setting_that_json_cannot_hold():
    classifier = tiny_classifier()
    classifier.dropout = object()
    return classifier


@cases(
    (
        lambda: tiny_classifier(pooling="mean"),
        "export_to_huggingface",
        ValueError,
        "pooling='mean'",
    ),
    (with_unregistered_preprocessor, "save_to_preset", ValueError, UNREGISTERED),
    (with_a_setting_that_json_cannot_hold, "save_to_preset", TypeError, "JSON"),
)
def test_what_cannot_be_written_leaves_the_old_preset(ours, tmp_path, make, writer, error, message):
    before, model = contents(ours), make()
    for folder in (ours, tmp_path / "new"):
        with pytest.raises(error, match=message):
            getattr(model, writer)(folder)
    assert contents(ours) == before
    assert not (tmp_path / "new").exists() or not list((tmp_path / "new").iterdir())


def test_files_of_an_older_preset_are_removed(tmp_path):
    def names():
        return {path.name for path in tmp_path.iterdir()}

    files = {"README.md", "config.json", "model.safetensors"}
    tokenizer_files = {"tokenizer.json", "tokenizer_config.json", "vocab.txt"}
    bare, frozen = tiny_classifier(preprocessor=None), tiny_classifier(frozen="backbone")
    frozen.save_to_preset(tmp_path)
    assert names() == files | tokenizer_files | {"task.json"}
    bare.save_to_preset(tmp_path)
    assert names() == files | {"task.json"}
    frozen.save_to_preset(tmp_path)
    tiny_backbone().save_to_preset(tmp_path)
    assert "task.json" not in names()
    assert bert_keras.BertBackbone.from_preset(tmp_path).trainable
    frozen.save_to_preset(tmp_path)
    (tmp_path / "merges.txt").write_text("of another tokenizer")
    bare.export_to_huggingface(tmp_path)
    assert names() == files
    # A backbone has no tokenizer that could replace the one in the folder.
    tiny_preprocessor().tokenizer.save(tmp_path)
    bare.backbone.export_to_huggingface(tmp_path)
    assert names() == files | tokenizer_files


@keras.saving.register_keras_serializable(package="mine")
class Lowering(bert_keras.TextPreprocessor):
    """A user's preprocessor, with a step and an argument of its own."""

    def __init__(self, tokenizer, marks=1, **kwargs):
        super().__init__(tokenizer, **kwargs)
        self.marks = marks

    def get_config(self):
        return {**super().get_config(), "marks": self.marks}

    def tokenize(self, texts, pairs=None):
        return super().tokenize([text.lower() for text in texts], pairs)


def test_another_task_or_other_labels_keep_a_presets_preprocessor_and_problem_type(tmp_path):
    tokenizer = bert_keras.WordPieceTokenizer(VOCABULARY, lowercase=False)
    preprocessor = Lowering(tokenizer, marks=3, max_length=8)
    task = bert_keras.MaskedLM(tiny_backbone(), preprocessor=preprocessor)
    task.backbone.embeddings.trainable = False
    task.save_to_preset(tmp_path)
    options = {"problem_type": "multi_label", "label_names": ["x", "y"]}
    classifier = bert_keras.TextClassifier.from_preset(tmp_path, **options)
    again = classifier.preprocessor
    assert (type(again), again.marks, again.max_length) == (Lowering, 3, 8)
    actual, expected = (each(["A b"])["token_ids"] for each in (again, preprocessor))
    np.testing.assert_array_equal(actual, expected)
    assert all(weight.trainable for weight in classifier.backbone.embeddings.weights)
    classifier.save_to_preset(tmp_path / "labelled")
    with pytest.warns(UserWarning, match="starts at random"):
        again = bert_keras.TextClassifier.from_preset(
            tmp_path / "labelled", label_names=[*"pqr"], max_length=9
        )
    assert (again.problem_type, again.num_classes) == ("multi_label", 3)
    assert (type(again.preprocessor), again.preprocessor.max_length) == (Lowering, 9)
