"""KerasHub's preset folders, against transformers with the same weights."""

import shutil

import h5py
import ml_dtypes
import numpy as np
import pytest
from checks import cases, to_numpy
from files import write_json
from foreign import (
    KERAS_HUB_CONFIG,
    WIDTH,
    add_keras_hub_classifier,
    assert_outputs_equal,
    first_weights,
    inputs,
    outputs_of,
    replaced,
    rewrite_keras_hub,
    serialized,
    write_keras_hub,
)
from tiny import VOCABULARY

import bert_keras
from bert_keras.tokenizers.tokenizer import Tokenizer

pytestmark = pytest.mark.usefixtures("shared_backbones")


@pytest.fixture(scope="module")
def written(reference, tmp_path_factory):
    folder = tmp_path_factory.mktemp("written") / "theirs"
    write_keras_hub(folder, reference)
    return folder


@pytest.fixture
def folder(written, tmp_path):
    return shutil.copytree(written, tmp_path / "theirs")


def test_the_names_of_older_versions_give_the_same(folder):
    expected = first_weights(folder)
    write_json(folder / "config.json", serialized("BertBackbone", KERAS_HUB_CONFIG, "keras_nlp"))
    older = {"layers/": "_layer_checkpoint_dependencies/", "/query_dense": "/_query_dense"}
    rewrite_keras_hub(folder, lambda a: {replaced(name, older): x for name, x in a.items()})
    np.testing.assert_array_equal(first_weights(folder), expected)


def test_bfloat16_and_float16_are_read(folder, reference):
    path = "layers/transformer_encoder_1/_self_attention_layer/key_dense/vars/0"
    with h5py.File(folder / "model.weights.h5", "a") as file:
        rounded = file[path][()].astype(ml_dtypes.bfloat16)
        del file[path]
        file.create_dataset(path, data=rounded).attrs["dtype"] = "bfloat16"
        table = file["layers/embedding/vars/0"][()]
        del file["layers/embedding/vars/0"]
        file["layers/embedding/vars/0"] = table.astype("float16")
    backbone = bert_keras.BertBackbone.from_preset(folder)
    kernel = to_numpy(backbone.encoder.blocks[1].attention.key.kernel)
    np.testing.assert_array_equal(kernel, rounded.astype("f").reshape(WIDTH, WIDTH))
    assert_outputs_equal(backbone, outputs_of(reference.bert), atol=0.05)


@pytest.mark.filterwarnings("error::UserWarning")
@cases(("keras_hub", "BertTextClassifier"), ("keras_nlp", "BertClassifier"))
def test_a_classifier_comes_with_its_head_and_tokenizer(folder, reference, package, name):
    kernel, bias = add_keras_hub_classifier(folder, package=package, name=name)
    preprocessor = {"sequence_length": 12, "truncate": "round_robin"}
    saved = serialized("BertTextClassifierPreprocessor", preprocessor)
    write_json(folder / "preprocessor.json", saved)
    classifier = bert_keras.TextClassifier.from_preset(folder)
    assert (classifier.num_classes, classifier.dropout) == (3, 0.3)
    assert classifier.preprocessor.max_length == 12
    outputs = outputs_of(reference.bert)
    assert_outputs_equal(classifier.backbone, outputs)
    logits = classifier.predict(inputs(), verbose=0)
    np.testing.assert_allclose(logits, outputs["pooler_output"] @ kernel + bias, atol=1e-5)
    assert set(classifier.classify("a B c")) == {"label", "probabilities"}


@cases(
    ("softmax", 2, "single_label"),
    ("sigmoid", 2, "multi_label"),
    ("linear", 1, "regression"),
    (None, 2, "single_label"),
)
def test_a_classifiers_activation_gives_its_problem(folder, activation, num_classes, problem_type):
    add_keras_hub_classifier(folder, activation, num_classes)
    assert bert_keras.TextClassifier.from_preset(folder).problem_type == problem_type


def test_links_to_other_files_are_not_followed(folder, tmp_path):
    path = "layers/embedding/vars/0"
    with h5py.File(tmp_path / "secret.h5", "w") as file:
        file["x"] = np.ones((2, WIDTH), "f")
    with h5py.File(folder / "model.weights.h5", "a") as file:
        del file[path]
        file[path] = h5py.ExternalLink(str(tmp_path / "secret.h5"), "x")
    with pytest.raises(ValueError, match="embeddings/segment_embedding"):
        bert_keras.BertBackbone.from_preset(folder)
    (tmp_path / "raw").write_bytes(np.ones((2, WIDTH), "f").tobytes())
    with h5py.File(folder / "model.weights.h5", "a") as file:
        del file[path]
        external = [(str(tmp_path / "raw"), 0, h5py.h5f.UNLIMITED)]
        file.create_dataset(path, (2, WIDTH), "f", external=external)
    with pytest.raises(ValueError, match="from another file"):
        bert_keras.BertBackbone.from_preset(folder)


def backbone_config(**changes):
    """Returns a config.json in which some sizes have changed."""
    return serialized("BertBackbone", {**KERAS_HUB_CONFIG, **changes})


def classifier_config(activation):
    return serialized("BertTextClassifier", {"num_classes": 2, "activation": activation})


# A message that names the file.
NAMED = r"`class_name` in KerasHub's `.*config\.json` must be"
REFUSED = [
    ("config.json", serialized("ResNetBackbone", KERAS_HUB_CONFIG), "ResNetBackbone"),
    *(
        ("config.json", {**backbone_config(), "class_name": name}, NAMED)
        for name in (["a"], 5, None)
    ),
    ("config.json", {**backbone_config(), "config": 3}, "'config'"),
    (
        "config.json",
        serialized("BertBackbone", {"num_layers": 2}),
        "sizes.*'vocabulary_size', 'num_heads'",
    ),
    ("config.json", backbone_config(num_layers=2**40), "num_layers"),
    # Merged, the axes of heads and of their width have the same size.
    ("config.json", backbone_config(num_heads=4), r"num_heads.*\(2,\). Received: 4"),
    ("task.json", [], "object"),
    ("task.json", classifier_config("relu"), "'relu'"),
    ("task.json", classifier_config({"class_name": "function"}), "function"),
    ("tokenizer.json", serialized("BertTokenizer", {"suffix_indicator": "@@"}), "##"),
    ("tokenizer.json", [], "object"),
    ("tokenizer.json", {"config": {}}, "class_name"),
]


@pytest.mark.parametrize(("name", "value", "message"), REFUSED)
def test_impossible_settings_are_refused(folder, name, value, message):
    write_json(folder / name, value)
    with pytest.raises(ValueError, match=message):
        bert_keras.TextClassifier.from_preset(folder)


def test_names_of_labels_that_are_no_list_are_refused(folder):
    write_json(folder / "task.json", classifier_config("linear"))
    write_json(folder / "metadata.json", {"label_names": {"bad": 0, "good": 1}})
    with pytest.raises(TypeError, match=r"`label_names` in .*metadata\.json` must be a list"):
        bert_keras.TextClassifier.from_preset(folder)


@pytest.mark.parametrize("lowercase", [True, False])
def test_the_tokenizers_settings_are_taken_literally(folder, lowercase):
    config = {"lowercase": lowercase, "strip_accents": False, "oov_token": "[MASK]"}
    write_json(folder / "tokenizer.json", serialized("BertTokenizer", config))
    tokenizer = Tokenizer.load(folder)
    normalizer = tokenizer.settings["normalizer"]
    assert (normalizer["lowercase"], normalizer["strip_accents"]) == (lowercase, False)
    assert tokenizer.vocabulary == VOCABULARY
    assert tokenizer.tokenize("A") == (["a"] if lowercase else ["[MASK]"])
