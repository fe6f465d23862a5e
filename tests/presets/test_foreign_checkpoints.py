"""What holds for the checkpoints of every other library."""

import re
import shutil

import numpy as np
import pytest
from checks import assert_same_structure_close, cases
from files import read_json, write_json
from foreign import FORMATS, assert_outputs_equal, first_weights, outputs_of
from hub_server import HubServer

import bert_keras
from bert_keras.presets.presets import open_preset

pytestmark = pytest.mark.usefixtures("shared_backbones")


@pytest.fixture(scope="module")
def written(reference, tmp_path_factory):
    """A folder of each format."""
    root = tmp_path_factory.mktemp("written")
    for name, format in FORMATS.items():
        format.write(root / name, reference)
    return root


@pytest.fixture(params=FORMATS)
def checkpoint(request, written, tmp_path):
    """A folder and its `Format`."""
    shutil.copytree(written / request.param, tmp_path / "theirs")
    return tmp_path / "theirs", FORMATS[request.param]


@pytest.mark.filterwarnings("error::UserWarning")
def test_outputs_equal_transformers(checkpoint, reference):
    folder, format = checkpoint
    backbone = bert_keras.BertBackbone.from_preset(folder)
    assert (backbone.activation, backbone.layer_norm_epsilon) == ("gelu_tanh", 1e-12)
    dropout = 0.2 if format is FORMATS["keras_hub"] else 0.1
    assert (backbone.dropout, backbone.attention_dropout) == (0.2, dropout)
    assert_outputs_equal(backbone, outputs_of(reference.bert))


def test_a_missing_head_is_named_in_a_warning(checkpoint):
    with pytest.warns(UserWarning, match="head/dense/kernel, head/dense/bias"):
        bert_keras.TokenClassifier.from_preset(checkpoint[0], num_classes=4)


@pytest.mark.parametrize("checkpoint", ["hugging_face", "tf1"], indirect=True)
def test_it_comes_from_the_hub_and_then_from_its_cache(checkpoint, tmp_path, monkeypatch):
    folder, _ = checkpoint
    expected = first_weights(folder)
    (folder / "graph.pbtxt").write_text("not needed")
    with HubServer({"someone/bert": folder}) as hub:
        hub.use(monkeypatch, tmp_path / "cache")
        np.testing.assert_array_equal(first_weights("hf://someone/bert"), expected)
        assert not [request for request in hub.requests if "graph.pbtxt" in request]
        hub.stop()
        np.testing.assert_array_equal(first_weights("hf://someone/bert"), expected)


def test_integers_in_place_of_floats_are_refused(checkpoint):
    folder, format = checkpoint
    format.rewrite(folder, lambda t: {**t, format.kernel: t[format.kernel].astype("int32")})
    with pytest.raises(ValueError, match="must be floats"):
        bert_keras.BertBackbone.from_preset(folder)


def test_an_unknown_name_is_an_error_that_lists_both_sides(checkpoint):
    folder, format = checkpoint
    names = {format.kernel: "surprise"}
    format.rewrite(folder, lambda t: {names.get(k, k): x for k, x in t.items()})
    with pytest.raises(ValueError, match="surprise") as raised:
        bert_keras.BertBackbone.from_preset(folder)
    assert "encoder/layer_1/feed_forward/output/kernel" in str(raised.value)
    assert "layer_0/output/dense/kernel/adam_m" not in str(raised.value)


def test_a_wrong_shape_is_an_error_that_names_it_and_changes_nothing(checkpoint):
    folder, format = checkpoint
    config = read_json(folder / format.config)
    config.get("config", config)[format.intermediate_dim] = 40
    write_json(folder / format.config, config)
    source = open_preset(folder)
    backbone = source.backbone(bert_keras.BertBackbone, True, {})
    before = backbone.get_weights()
    for load in (
        lambda: source.load_backbone_weights(backbone),
        lambda: bert_keras.BertBackbone.from_preset(folder),
    ):
        with pytest.raises(ValueError, match=r"feed_forward/intermediate/kernel \(16, 40\) <- "):
            load()
    assert_same_structure_close(backbone.get_weights(), before, 0)


@pytest.mark.parametrize("keep", [4, 1000, 0.5, 0.99, None])
def test_truncated_or_missing_weights_are_an_error_that_names_the_file(checkpoint, keep):
    folder, format = checkpoint
    path = folder / format.weights
    data = path.read_bytes()
    path.unlink()
    if keep:
        path.write_bytes(data[: int(keep if keep > 1 else keep * len(data))])
    with pytest.raises((ValueError, FileNotFoundError), match=re.escape(format.weights)):
        bert_keras.BertBackbone.from_preset(folder)


@cases("{", "[1]", "", "{}", '{"model_type": "gpt2"}', '{"hidden_size": 4}')
def test_a_damaged_or_foreign_config_is_an_error_that_names_the_file(checkpoint, text):
    folder, format = checkpoint
    (folder / format.config).write_text(text)
    with pytest.raises(ValueError, match=f"{re.escape(format.config)}|lacks"):
        bert_keras.BertBackbone.from_preset(folder)
