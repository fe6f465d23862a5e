"""Google's TensorFlow 1 checkpoint folders, against transformers with the same weights."""

import numpy as np
import pytest
from checks import cases
from files import change_json, write_json
from foreign import (
    IS_TOKEN,
    inputs,
    outputs_of,
    rewrite_tf1,
    set_tf1_head,
    tf1_tensors,
    write_tf1,
    write_tf_checkpoint,
    write_vocabulary,
)
from tiny import VOCABULARY

import bert_keras
from bert_keras.tokenizers.tokenizer import Tokenizer

pytestmark = pytest.mark.usefixtures("shared_backbones")


@pytest.fixture
def folder(reference, tmp_path):
    write_tf1(tmp_path / "theirs", reference)
    return tmp_path / "theirs"


@pytest.mark.filterwarnings("error::UserWarning")
def test_the_pretraining_heads_are_loaded(folder, reference):
    task = bert_keras.Pretraining.from_preset(folder)
    everywhere = np.tile(np.arange(12, dtype="int32"), (3, 1))
    actual = task.predict({**inputs(), "mask_positions": everywhere}, verbose=0)
    expected = outputs_of(reference)
    logits = expected["prediction_logits"][IS_TOKEN]
    np.testing.assert_allclose(actual["masked_lm"][IS_TOKEN], logits, atol=5e-5)
    logits = expected["seq_relationship_logits"]
    np.testing.assert_allclose(actual["next_sentence"], logits, atol=1e-5)


@pytest.mark.filterwarnings("error::UserWarning")
def test_a_classifier_of_googles_script_brings_its_head(folder, reference):
    rng = np.random.default_rng(1)
    weights, bias = rng.normal(size=(3, 16)), rng.normal(size=3)
    set_tf1_head(folder, output_weights=weights, output_bias=bias)
    classifier = bert_keras.TextClassifier.from_preset(folder)
    assert (classifier.num_classes, classifier.problem_type) == (3, "single_label")
    expected = outputs_of(reference.bert)["pooler_output"] @ weights.T + bias
    np.testing.assert_allclose(classifier.predict(inputs(), verbose=0), expected, atol=1e-5)
    assert bert_keras.TextClassifier.from_preset(folder, dropout=0.0).num_classes == 3


def test_a_head_with_one_output_is_a_regression(folder):
    set_tf1_head(folder, output_weights=np.ones((1, 16)), output_bias=np.ones(1))
    assert bert_keras.TextClassifier.from_preset(folder).problem_type == "regression"


def test_the_squad_head_is_loaded(folder, reference):
    rng = np.random.default_rng(1)
    weights, bias = rng.normal(size=(2, 16)), rng.normal(size=2)
    set_tf1_head(folder, cls__squad__output_weights=weights, cls__squad__output_bias=bias)
    actual = bert_keras.QuestionAnswering.from_preset(folder).predict(inputs(), verbose=0)
    expected = outputs_of(reference.bert)["last_hidden_state"] @ weights.T + bias
    for i, name in enumerate(("start_logits", "end_logits")):
        logits = expected[..., i][IS_TOKEN]
        np.testing.assert_allclose(actual[name][IS_TOKEN], logits, atol=5e-5)


def flip_a_bit(folder):
    path = folder / "bert_model.ckpt.data-00000-of-00001"
    data = bytearray(path.read_bytes())
    data[10] ^= 1
    path.write_bytes(data)


def with_config(**changes):
    return lambda folder: change_json(folder / "bert_config.json", **changes)


def of_tensorflow_2(folder):
    rewrite_tf1(
        folder, lambda t: {f"model/{k}/.ATTRIBUTES/VARIABLE_VALUE": x for k, x in t.items()}
    )


@cases(
    (
        lambda folder: set_tf1_head(folder, output_bias=np.ones(2)),
        r"Weights without a tensor .*head/dense/kernel",
    ),
    (flip_a_bit, "bert_model.ckpt cannot be read.*[Cc]hecksum"),
    (of_tensorflow_2, "Tensors without a weight .*VARIABLE_VALUE"),
    (with_config(hidden_act="mish"), "must be one of.*'mish'"),
    (with_config(hidden_act=["gelu"]), r"must be one of.*\['gelu'\]"),
    (with_config(vocab_size=2**40), "vocabulary_size"),
    (with_config(num_hidden_layers="2"), "num_layers"),
)
def test_a_folder_that_cannot_be_right_is_refused(folder, change, message):
    change(folder)
    with pytest.raises(ValueError, match=message):
        bert_keras.TextClassifier.from_preset(folder)


def test_one_of_several_checkpoints_is_not_chosen_silently(folder, reference):
    write_tf_checkpoint(folder / "model.ckpt-100", tf1_tensors(reference))
    with pytest.raises(ValueError, match=r"bert_model\.ckpt', 'model\.ckpt-100'.*the others away"):
        bert_keras.BertBackbone.from_preset(folder)
    for path in folder.glob("bert_model.ckpt*"):
        path.unlink()
    bert_keras.BertBackbone.from_preset(folder)


@pytest.mark.parametrize("name", ["config.json", "albert_config.json"])
def test_the_config_may_have_the_usual_name_or_albert_s(folder, name):
    (folder / "bert_config.json").rename(folder / name)
    assert bert_keras.BertBackbone.from_preset(folder).activation == "gelu_tanh"


def test_safetensors_in_the_same_folder_are_preferred(folder, reference):
    """Their config says which GELU they were saved with."""
    reference.bert.save_pretrained(folder)
    assert bert_keras.BertBackbone.from_preset(folder).activation == "gelu_tanh"
    change_json(folder / "config.json", hidden_act="gelu")
    assert bert_keras.BertBackbone.from_preset(folder).activation == "gelu"


@pytest.mark.parametrize("further", [[], ["Upper"]])
def test_the_vocabulary_decides_about_lowercasing(tmp_path, further):
    write_vocabulary(tmp_path / "vocab.txt", VOCABULARY + further)
    for source in (tmp_path, tmp_path / "vocab.txt"):
        assert lowercases(source) == (not further)
    write_json(tmp_path / "tokenizer_config.json", {"do_lower_case": bool(further)})
    assert lowercases(tmp_path) == bool(further)


def lowercases(source):
    return Tokenizer.load(source).settings["normalizer"]["lowercase"]
