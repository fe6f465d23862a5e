"""Google's TensorFlow 1 checkpoint folders, against transformers with the same weights."""

import json
import shutil
import warnings

import keras
import numpy as np
import pytest
from bundle_writer import data_path, write_bundle
from hub_server import HubServer
from tiny import VOCABULARY

import bert_keras
from bert_keras.presets.assign import relative_path
from bert_keras.presets.families.bert_record import TF1
from bert_keras.presets.formats.tf1 import _KINDS
from bert_keras.presets.name_map import expand
from bert_keras.tokenizers.tokenizer import Tokenizer

CONFIG = {
    "attention_probs_dropout_prob": 0.1,
    "directionality": "bidi",
    "hidden_act": "gelu",
    "hidden_dropout_prob": 0.2,
    "hidden_size": 16,
    "initializer_range": 0.02,
    "intermediate_size": 24,
    "max_position_embeddings": 16,
    "num_attention_heads": 2,
    "num_hidden_layers": 2,
    "pooler_fc_size": 768,
    "pooler_type": "first_token_transform",
    "type_vocab_size": 2,
    "vocab_size": len(VOCABULARY),
}


@pytest.fixture(scope="module")
def reference():
    """A BertForPreTraining of transformers with the activation of Google's code."""
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)
    names = set(CONFIG) - {"directionality", "pooler_fc_size", "pooler_type"}
    settings = {name: CONFIG[name] for name in names}
    config = transformers.BertConfig(
        **{**settings, "hidden_act": "gelu_new", "initializer_range": 0.2}
    )
    model = transformers.BertForPreTraining(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    return model


def googles_tensors(model):
    """The weights under the names and in the layout of google-research/bert.

    Written after `modeling.py` there, without this package's table.
    """
    tensors = {}
    for name, parameter in model.named_parameters():
        array = parameter.detach().numpy()
        name = name.replace("encoder.layer.", "encoder.layer_").replace(".", "/")
        if name.endswith("embeddings/weight"):
            name = name.removesuffix("/weight")
        elif "LayerNorm" in name:
            name = name.replace("/weight", "/gamma").replace("LayerNorm/bias", "LayerNorm/beta")
        elif name.startswith("cls/seq_relationship/"):  # made by hand there, as (output, input)
            name = name.replace("/weight", "/output_weights").replace("/bias", "/output_bias")
        elif name == "cls/predictions/bias":
            name = "cls/predictions/output_bias"
        elif name.endswith("/weight"):
            name, array = name.replace("/weight", "/kernel"), array.T
        tensors[name] = np.ascontiguousarray(array)
    return tensors


def training_leftovers(tensors):
    slots = {f"{name}/adam_{slot}": array for name, array in tensors.items() for slot in "mv"}
    return {**slots, "global_step": np.array(20_000, "int64")}


def write_folder(folder, tensors, name="bert_model.ckpt", with_tensorflow=False, **config):
    folder.mkdir(exist_ok=True)
    (folder / "bert_config.json").write_text(json.dumps({**CONFIG, **config}))
    (folder / "vocab.txt").write_text("".join(f"{token}\n" for token in VOCABULARY))
    if with_tensorflow:
        save_with_tensorflow(str(folder / name), tensors)
    else:
        write_bundle(folder / name, tensors)
    return folder


def save_with_tensorflow(prefix, tensors):
    tensorflow = pytest.importorskip("tensorflow")
    with tensorflow.Graph().as_default(), tensorflow.compat.v1.Session() as session:
        variables = [
            tensorflow.compat.v1.get_variable(name, initializer=array)
            for name, array in tensors.items()
        ]
        session.run(tensorflow.compat.v1.global_variables_initializer())
        tensorflow.compat.v1.train.Saver(variables).save(session, prefix)


@pytest.fixture
def folder(reference, tmp_path):
    tensors = googles_tensors(reference)
    return write_folder(tmp_path / "theirs", {**tensors, **training_leftovers(tensors)})


def rewrite(folder, change):
    """Replaces the tensors of the folder's checkpoint by `change(tensors)`."""
    from bert_keras.presets.tensor_bundle import read_tensor_bundle

    prefix = folder / "bert_model.ckpt"
    write_bundle(prefix, change(dict(read_tensor_bundle(prefix))))


def inputs():
    rng = np.random.default_rng(0)
    padding_mask = np.ones((3, 12), "int32")
    padding_mask[1, 5:] = 0
    padding_mask[2, 9:] = 0
    return {
        "token_ids": rng.integers(0, len(VOCABULARY), (3, 12)).astype("int32"),
        "segment_ids": rng.integers(0, 2, (3, 12)).astype("int32"),
        "padding_mask": padding_mask,
    }


def reference_outputs(model, arrays):
    import torch

    with torch.no_grad():
        outputs = model(
            input_ids=torch.tensor(arrays["token_ids"]).long(),
            token_type_ids=torch.tensor(arrays["segment_ids"]).long(),
            attention_mask=torch.tensor(arrays["padding_mask"]),
        )
    return {name: value.numpy() for name, value in outputs.items()}


@pytest.mark.parametrize("with_tensorflow", [False, True])
def test_outputs_equal_transformers(reference, tmp_path, with_tensorflow):
    tensors = googles_tensors(reference)
    tensors |= training_leftovers(tensors)
    folder = write_folder(tmp_path / "theirs", tensors, with_tensorflow=with_tensorflow)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        backbone = bert_keras.BertBackbone.from_preset(folder)
    assert (backbone.activation, backbone.dropout) == ("gelu_tanh", 0.2)
    arrays = inputs()
    actual = backbone.predict(arrays, verbose=0)
    expected = reference_outputs(reference.bert, arrays)
    real = arrays["padding_mask"].astype(bool)
    np.testing.assert_allclose(
        actual["sequence_output"][real], expected["last_hidden_state"][real], atol=1e-5
    )
    np.testing.assert_allclose(actual["pooled_output"], expected["pooler_output"], atol=1e-5)
    if not with_tensorflow:  # the comparison sees the difference between the two GELUs
        exact = bert_keras.BertBackbone.from_preset(folder, activation="gelu")
        other = exact.predict(arrays, verbose=0)["sequence_output"][real]
        assert np.abs(other - actual["sequence_output"][real]).max() > 1e-4


def test_the_heads_of_pretraining_come_along(folder, reference):
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        task = bert_keras.Pretraining.from_preset(folder)
    arrays = inputs()
    everywhere = np.tile(np.arange(12, dtype="int32"), (3, 1))
    actual = task.predict({**arrays, "mask_positions": everywhere}, verbose=0)
    expected = reference_outputs(reference, arrays)
    real = arrays["padding_mask"].astype(bool)
    np.testing.assert_allclose(
        actual["masked_lm"][real], expected["prediction_logits"][real], atol=5e-5
    )
    np.testing.assert_allclose(
        actual["next_sentence"], expected["seq_relationship_logits"], atol=1e-5
    )


@pytest.mark.parametrize("name", sorted(TF1.heads))
def test_the_map_of_a_task_s_head_covers_its_weights(name):
    head = getattr(bert_keras, name)(bert_keras.BertBackbone(9, 1, 1, 4, 4)).head
    mapped = expand(TF1.heads[name].rows, _KINDS)
    assert {relative_path(v) for v in head.weights} == set(mapped)


def test_a_part_of_the_pretraining_head_may_be_missing(folder):
    rewrite(folder, lambda t: {k: v for k, v in t.items() if "seq_relationship" not in k})
    with pytest.warns(UserWarning, match="head/next_sentence/dense/kernel") as caught:
        bert_keras.Pretraining.from_preset(folder)
    assert "masked_lm" not in str(caught[0].message)


def fine_tuned(folder, **head):
    rewrite(
        folder,
        lambda t: (
            {k: v for k, v in t.items() if not k.startswith("cls/")}
            | {name.replace("__", "/"): array for name, array in head.items()}
        ),
    )


def test_a_classifier_of_google_s_script_brings_its_head(folder, reference):
    rng = np.random.default_rng(1)
    weights, bias = rng.normal(size=(3, 16)).astype("f"), rng.normal(size=3).astype("f")
    fine_tuned(folder, output_weights=weights, output_bias=bias)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        classifier = bert_keras.TextClassifier.from_preset(folder)
    assert (classifier.num_classes, classifier.problem_type) == (3, "single_label")
    pooled = reference_outputs(reference.bert, inputs())["pooler_output"]
    np.testing.assert_allclose(
        classifier.predict(inputs(), verbose=0), pooled @ weights.T + bias, atol=1e-5
    )
    assert bert_keras.TextClassifier.from_preset(folder, dropout=0.0).num_classes == 3


def test_a_head_with_one_output_is_a_regression(folder):
    fine_tuned(folder, output_weights=np.ones((1, 16), "f"), output_bias=np.ones(1, "f"))
    assert bert_keras.TextClassifier.from_preset(folder).problem_type == "regression"


def test_the_head_of_squad_comes_along(folder, reference):
    rng = np.random.default_rng(1)
    weights, bias = rng.normal(size=(2, 16)).astype("f"), rng.normal(size=2).astype("f")
    fine_tuned(folder, cls__squad__output_weights=weights, cls__squad__output_bias=bias)
    task = bert_keras.QuestionAnswering.from_preset(folder)
    arrays = inputs()
    actual = task.predict(arrays, verbose=0)
    hidden = reference_outputs(reference.bert, arrays)["last_hidden_state"]
    expected = hidden @ weights.T + bias
    real = arrays["padding_mask"].astype(bool)
    for i, name in enumerate(("start_logits", "end_logits")):
        np.testing.assert_allclose(actual[name][real], expected[..., i][real], atol=5e-5)


def test_a_missing_head_is_named_in_a_warning(folder):
    with pytest.warns(UserWarning, match="head/dense/kernel, head/dense/bias"):
        bert_keras.TextClassifier.from_preset(folder, num_classes=4)


def test_half_a_head_is_an_error(folder):
    fine_tuned(folder, output_bias=np.ones(2, "f"))
    with pytest.raises(ValueError, match=r"Weights without a tensor .*head/dense/kernel"):
        bert_keras.TextClassifier.from_preset(folder)


def test_a_missing_pooler_is_named_in_a_warning(folder):
    rewrite(folder, lambda t: {k: v for k, v in t.items() if "pooler" not in k})
    with pytest.warns(UserWarning, match="pooler/dense/kernel, pooler/dense/bias"):
        bert_keras.BertBackbone.from_preset(folder)


def test_names_that_do_not_fit_are_an_error_with_both_lists(folder):
    name = "bert/encoder/layer_1/output/dense/kernel"
    rewrite(folder, lambda t: {("surprise" if k == name else k): v for k, v in t.items()})
    with pytest.raises(ValueError, match="surprise") as raised:
        bert_keras.BertBackbone.from_preset(folder)
    assert "encoder/layer_1/feed_forward/output/kernel" in str(raised.value)
    assert "adam_m" not in str(raised.value)


def test_a_shape_that_does_not_fit_is_an_error_before_the_model_changes(folder):
    from bert_keras.presets import presets

    (folder / "bert_config.json").write_text(json.dumps({**CONFIG, "intermediate_size": 40}))
    source = presets.open_preset(folder)
    backbone = source.backbone(bert_keras.BertBackbone)
    before = [keras.ops.convert_to_numpy(v.value) for v in backbone.weights]
    with pytest.raises(
        ValueError, match=r"feed_forward/intermediate/kernel \(16, 40\) <- bert/enc"
    ):
        source.load_backbone_weights(backbone)
    for value, variable in zip(before, backbone.weights, strict=True):
        np.testing.assert_array_equal(value, keras.ops.convert_to_numpy(variable.value))


@pytest.mark.parametrize("damage", ["cut", "missing", "flipped"])
def test_a_damaged_data_file_is_an_error(folder, damage):
    path = data_path(folder / "bert_model.ckpt")
    data = bytearray(path.read_bytes())
    if damage == "cut":
        path.write_bytes(data[:-100])
    elif damage == "missing":
        path.unlink()
    else:
        data[10] ^= 1
        path.write_bytes(data)
    with pytest.raises((ValueError, FileNotFoundError), match=r"data-00000-of-00001"):
        bert_keras.BertBackbone.from_preset(folder)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"hidden_act": "mish"}, "must be one of.*'mish'"),
        ({"hidden_act": ["gelu"]}, r"must be one of.*\['gelu'\]"),
        ({"vocab_size": 2**40}, "vocabulary_size"),
        ({"num_hidden_layers": "2"}, "num_layers"),
    ],
)
def test_a_config_that_cannot_be_is_an_error(folder, change, message):
    (folder / "bert_config.json").write_text(json.dumps({**CONFIG, **change}))
    with pytest.raises(ValueError, match=message):
        bert_keras.BertBackbone.from_preset(folder)


@pytest.mark.parametrize("text", ["{", "[1]", "", "{}", '{"hidden_size": 4}'])
def test_a_damaged_config_is_an_error(folder, text):
    (folder / "bert_config.json").write_text(text)
    with pytest.raises(ValueError, match=r"bert_config\.json|lacks"):
        bert_keras.BertBackbone.from_preset(folder)


def test_a_checkpoint_of_tensorflow_2_says_so(folder):
    rewrite(folder, lambda t: {**t, "_CHECKPOINTABLE_OBJECT_GRAPH": np.zeros(1, "f")})
    with pytest.raises(ValueError, match="object-based checkpoint of TensorFlow 2"):
        bert_keras.BertBackbone.from_preset(folder)


def weight_of(folder):
    backbone = bert_keras.BertBackbone.from_preset(folder)
    return keras.ops.convert_to_numpy(backbone.pooler.dense.bias)[0]


def test_of_several_checkpoints_the_last_one_is_taken(folder, reference):
    tensors = googles_tensors(reference)
    for step in (100, 2000):
        tensors["bert/pooler/dense/bias"] = np.full(16, step, "f")
        write_bundle(folder / f"model.ckpt-{step}", tensors)
    assert weight_of(folder) not in (100, 2000)  # bert_model.ckpt
    (folder / "checkpoint").write_text(
        'model_checkpoint_path: "/home/me/out/model.ckpt-2000"\n'
        'all_model_checkpoint_paths: "model.ckpt-100"\n'
    )
    assert weight_of(folder) == 2000
    (folder / "checkpoint").unlink()
    for path in folder.glob("bert_model.ckpt*"):
        path.unlink()
    with pytest.raises(ValueError, match=r"model\.ckpt-100', 'model\.ckpt-2000"):
        bert_keras.BertBackbone.from_preset(folder)


def test_the_config_may_have_the_usual_name(folder):
    (folder / "bert_config.json").rename(folder / "config.json")
    assert bert_keras.BertBackbone.from_preset(folder).activation == "gelu_tanh"


def test_weights_of_another_format_beside_it_are_preferred(folder, reference):
    """Their config says which GELU they were saved with."""
    reference.bert.save_pretrained(folder)
    assert bert_keras.BertBackbone.from_preset(folder).activation == "gelu_tanh"
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "hidden_act": "gelu"}))
    assert bert_keras.BertBackbone.from_preset(folder).activation == "gelu"


@pytest.mark.parametrize(
    ("name", "lowercase"),
    [
        ("uncased_L-12_H-768_A-12", True),
        ("wwm_uncased_L-24_H-1024_A-16", True),
        ("cased_L-12_H-768_A-12", False),
        ("multi_cased_L-12_H-768_A-12", False),
        ("multilingual_L-12_H-768_A-12", True),
        ("chinese_L-12_H-768_A-12", True),
        ("mine", None),
    ],
)
@pytest.mark.parametrize("further", [[], ["Upper"]])
def test_the_folder_s_name_says_whether_to_lowercase(tmp_path, name, lowercase, further):
    folder = tmp_path / name
    folder.mkdir()
    (folder / "vocab.txt").write_text("\n".join(VOCABULARY + further))
    expected = not further if lowercase is None else lowercase
    for source in (folder, folder / "vocab.txt"):
        assert lowercases(source) == expected
    (folder / "tokenizer_config.json").write_text(json.dumps({"do_lower_case": not expected}))
    assert lowercases(folder) != expected


def lowercases(source):
    return Tokenizer.load(source).settings["normalizer"]["lowercase"]


def test_it_comes_from_the_hub_and_then_from_its_cache(folder, tmp_path, monkeypatch):
    (folder / "graph.pbtxt").write_text("not needed")
    with HubServer({"someone/bert": folder}) as hub:
        hub.use(monkeypatch, tmp_path / "cache")
        first = weight_of("hf://someone/bert")
        assert first == weight_of(folder)
        assert not [request for request in hub.requests if "graph.pbtxt" in request]
        hub.stop()
        assert weight_of("hf://someone/bert") == first


def test_it_is_not_downloaded_beside_weights_of_another_format(
    folder, reference, tmp_path, monkeypatch
):
    reference.bert.save_pretrained(folder)
    with HubServer({"someone/bert": folder}) as hub:
        hub.use(monkeypatch, tmp_path / "cache")
        weight_of("hf://someone/bert")
        assert not [request for request in hub.requests if ".ckpt" in request]


def test_saved_in_our_layout_it_gives_the_same(folder, tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        classifier = bert_keras.TextClassifier.from_preset(folder)
    classifier.save_to_preset(tmp_path / "ours")
    shutil.rmtree(folder)
    again = bert_keras.TextClassifier.from_preset(tmp_path / "ours")
    np.testing.assert_array_equal(again.predict(["a b"]), classifier.predict(["a b"]))
