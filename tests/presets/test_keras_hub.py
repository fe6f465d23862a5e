"""KerasHub's preset folders, against transformers with the same weights.

The folders are written here with h5py, in the layout of KerasHub 0.32;
`test_against_keras_hub.py` has folders that KerasHub itself wrote.
"""

import json
import warnings

import h5py
import keras
import ml_dtypes
import numpy as np
import pytest
from tiny import VOCABULARY

import bert_keras
from bert_keras.presets.assign import relative_path
from bert_keras.presets.families.bert_record import KERAS_HUB
from bert_keras.presets.formats.keras_hub import KINDS
from bert_keras.presets.name_map import expand
from bert_keras.tokenizers.tokenizer import Tokenizer

LAYERS, HEADS, WIDTH, INNER = 2, 2, 16, 24
CONFIG = {
    "name": "bert_backbone",
    "trainable": True,
    "vocabulary_size": len(VOCABULARY),
    "num_layers": LAYERS,
    "num_heads": HEADS,
    "hidden_dim": WIDTH,
    "intermediate_dim": INNER,
    "dropout": 0.2,
    "max_sequence_length": 16,
    "num_segments": 2,
}
TOKENIZER = {"lowercase": True, "strip_accents": False, "split": True, "suffix_indicator": "##"}


@pytest.fixture(scope="module")
def reference():
    """A BertModel of transformers with the activation of KerasHub's."""
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)
    config = transformers.BertConfig(
        vocab_size=len(VOCABULARY),
        hidden_size=WIDTH,
        num_hidden_layers=LAYERS,
        num_attention_heads=HEADS,
        intermediate_size=INNER,
        max_position_embeddings=16,
        hidden_act="gelu_new",
        initializer_range=0.2,
    )
    model = transformers.BertModel(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    return model


def hubs_arrays(model):
    """The weights by their paths in `model.weights.h5`, written after a file of KerasHub's."""
    state = {name: value.detach().numpy() for name, value in model.named_parameters()}
    arrays = {}

    def put(path, *values):
        for i, value in enumerate(values):
            arrays[f"layers/{path}/vars/{i}"] = np.ascontiguousarray(value)

    def dense(name):
        return state[f"{name}.weight"].T, state[f"{name}.bias"]

    def norm(name):
        return state[f"{name}.weight"], state[f"{name}.bias"]

    put("reversible_embedding", state["embeddings.word_embeddings.weight"])
    put("position_embedding", state["embeddings.position_embeddings.weight"])
    put("embedding", state["embeddings.token_type_embeddings.weight"])
    put("layer_normalization", *norm("embeddings.LayerNorm"))
    put("dense", *dense("pooler.dense"))
    for i in range(LAYERS):
        ours = "transformer_encoder" + (f"_{i}" if i else "")
        theirs = f"encoder.layer.{i}"
        for part in ("query", "key", "value"):
            kernel, bias = dense(f"{theirs}.attention.self.{part}")
            put(
                f"{ours}/_self_attention_layer/{part}_dense",
                kernel.reshape(WIDTH, HEADS, -1),
                bias.reshape(HEADS, -1),
            )
        kernel, bias = dense(f"{theirs}.attention.output.dense")
        put(f"{ours}/_self_attention_layer/output_dense", kernel.reshape(HEADS, -1, WIDTH), bias)
        put(f"{ours}/_self_attention_layer_norm", *norm(f"{theirs}.attention.output.LayerNorm"))
        put(f"{ours}/_feedforward_intermediate_dense", *dense(f"{theirs}.intermediate.dense"))
        put(f"{ours}/_feedforward_output_dense", *dense(f"{theirs}.output.dense"))
        put(f"{ours}/_feedforward_layer_norm", *norm(f"{theirs}.output.LayerNorm"))
    return arrays


def write_h5(path, arrays):
    with h5py.File(path, "w") as file:
        for name, array in arrays.items():
            file[name] = array
        file.create_group("layers/dropout/vars").attrs["name"] = "embeddings_dropout"


def serialized(class_name, config, package="keras_hub"):
    return {
        "module": f"{package}.src.models.bert.somewhere",
        "class_name": class_name,
        "config": config,
        "registered_name": f"{package}>{class_name}",
    }


def write_json(path, value):
    path.write_text(json.dumps(value))


@pytest.fixture
def folder(reference, tmp_path):
    folder = tmp_path / "theirs"
    (folder / "assets" / "tokenizer").mkdir(parents=True)
    text = "".join(f"{token}\n" for token in VOCABULARY)
    (folder / "assets" / "tokenizer" / "vocabulary.txt").write_text(text)
    write_json(folder / "config.json", serialized("BertBackbone", CONFIG))
    write_json(folder / "tokenizer.json", serialized("BertTokenizer", TOKENIZER))
    write_h5(folder / "model.weights.h5", hubs_arrays(reference))
    return folder


def rewrite(folder, change, name="model.weights.h5"):
    """Replaces the arrays of a weights file by `change(arrays)`."""
    arrays = {}
    with h5py.File(folder / name) as file:
        file.visititems(
            lambda path, item: (
                arrays.update({path: item[()]}) if isinstance(item, h5py.Dataset) else None
            )
        )
    write_h5(folder / name, change(arrays))


def add_classifier(folder, activation="linear", num_classes=3, package="keras_hub", name=None):
    """Adds the files of a fine-tuned classifier; returns kernel and bias of its head."""
    rng = np.random.default_rng(1)
    kernel = rng.normal(size=(WIDTH, num_classes)).astype("f")
    bias = rng.normal(size=num_classes).astype("f")
    config = {"num_classes": num_classes, "activation": activation, "dropout": 0.3}
    task = serialized(name or "BertTextClassifier", config, package)
    write_json(folder / "task.json", task)
    arrays = {"layers/dense/vars/0": kernel, "layers/dense/vars/1": bias}
    write_h5(
        folder / "task.weights.h5",
        {**arrays, "optimizer/vars/0": np.array(7), "optimizer/vars/1": np.array(1e-4)},
    )
    return kernel, bias


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


def assert_outputs_equal(backbone, model, atol=1e-5):
    import torch

    arrays = inputs()
    with torch.no_grad():
        expected = model(
            input_ids=torch.tensor(arrays["token_ids"]).long(),
            token_type_ids=torch.tensor(arrays["segment_ids"]).long(),
            attention_mask=torch.tensor(arrays["padding_mask"]),
        )
    actual = backbone.predict(arrays, verbose=0)
    real = arrays["padding_mask"].astype(bool)
    np.testing.assert_allclose(
        actual["sequence_output"][real], expected.last_hidden_state.numpy()[real], atol=atol
    )
    pooled = expected.pooler_output.numpy()
    np.testing.assert_allclose(actual["pooled_output"], pooled, atol=atol)
    return pooled


def test_outputs_equal_transformers(folder, reference):
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        backbone = bert_keras.BertBackbone.from_preset(folder)
    assert (backbone.activation, backbone.layer_norm_epsilon) == ("gelu_tanh", 1e-12)
    assert (backbone.dropout, backbone.attention_dropout) == (0.2, 0.2)
    assert_outputs_equal(backbone, reference)


def test_a_sharded_preset_gives_the_same(folder):
    expected = first_weights(folder)
    arrays = {}
    rewrite(folder, lambda a: arrays.update(a) or a)
    (folder / "model.weights.h5").unlink()
    weight_map = {}
    for i in range(3):
        name = f"model_{i:05d}.weights.h5"
        part = {path: arrays[path] for path in list(arrays)[i::3]}
        write_h5(folder / name, part)
        for path in part:
            # One file is given as a name, several as a list.
            weight_map.setdefault(f"/{path.rpartition('/')[0]}", []).append(name)
    weight_map = {k: v[0] if len(v) == 1 else v for k, v in weight_map.items()}
    write_json(folder / "model.weights.json", {"metadata": {}, "weight_map": weight_map})
    np.testing.assert_array_equal(first_weights(folder), expected)
    (folder / "model_00001.weights.h5").unlink()
    with pytest.raises(FileNotFoundError, match=r"lacks model_00001\.weights\.h5"):
        first_weights(folder)
    write_json(folder / "model.weights.json", {"weight_map": {"/a": "../elsewhere.weights.h5"}})
    with pytest.raises(ValueError, match="which cannot be"):
        first_weights(folder)


def first_weights(folder):
    backbone = bert_keras.BertBackbone.from_preset(folder)
    return np.concatenate(
        [np.ravel(keras.ops.convert_to_numpy(v.value))[:3] for v in backbone.weights]
    )


def test_the_names_of_older_versions_give_the_same(folder):
    expected = first_weights(folder)
    write_json(folder / "config.json", serialized("BertBackbone", CONFIG, "keras_nlp"))
    old = {"layers/": "_layer_checkpoint_dependencies/", "/query_dense": "/_query_dense"}

    def rename(arrays):
        renamed = {}
        for name, array in arrays.items():
            for new, older in old.items():
                name = name.replace(new, older)
            renamed[name] = array
        return renamed

    rewrite(folder, rename)
    np.testing.assert_array_equal(first_weights(folder), expected)


def test_bfloat16_and_float16_are_read(folder, reference):
    path = "layers/transformer_encoder_1/_self_attention_layer/key_dense/vars/0"
    with h5py.File(folder / "model.weights.h5", "a") as file:
        exact = file[path][()]
        del file[path]
        file.create_dataset(path, data=exact.astype(ml_dtypes.bfloat16)).attrs["dtype"] = "bfloat16"
        table = file["layers/embedding/vars/0"][()]
        del file["layers/embedding/vars/0"]
        file["layers/embedding/vars/0"] = table.astype("float16")
    backbone = bert_keras.BertBackbone.from_preset(folder)
    kernel = backbone.encoder.blocks[1].attention.key.kernel
    np.testing.assert_array_equal(
        keras.ops.convert_to_numpy(kernel),
        exact.astype(ml_dtypes.bfloat16).astype("f").reshape(WIDTH, WIDTH),
    )
    assert_outputs_equal(backbone, reference, atol=0.05)


@pytest.mark.parametrize(
    ("package", "name"), [("keras_hub", None), ("keras_nlp", "BertClassifier")]
)
def test_a_classifier_comes_with_its_head_and_tokenizer(folder, reference, package, name):
    kernel, bias = add_classifier(folder, package=package, name=name)
    preprocessor = {"sequence_length": 12, "truncate": "round_robin"}
    write_json(
        folder / "preprocessor.json", serialized("BertTextClassifierPreprocessor", preprocessor)
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        classifier = bert_keras.TextClassifier.from_preset(folder)
    assert (classifier.num_classes, classifier.dropout) == (3, 0.3)
    assert classifier.preprocessor.max_length == 12
    pooled = assert_outputs_equal(classifier.backbone, reference)
    logits = classifier.predict(inputs(), verbose=0)
    np.testing.assert_allclose(logits, pooled @ kernel + bias, atol=1e-5)
    assert set(classifier.classify("a B c")) == {"label", "probabilities"}


@pytest.mark.parametrize(
    ("activation", "num_classes", "problem_type"),
    [
        ("softmax", 2, "single_label"),
        ("sigmoid", 2, "multi_label"),
        ("linear", 1, "regression"),
        (None, 2, "single_label"),
    ],
)
def test_the_activation_of_a_classifier_is_its_problem(
    folder, activation, num_classes, problem_type
):
    add_classifier(folder, activation, num_classes)
    assert bert_keras.TextClassifier.from_preset(folder).problem_type == problem_type


@pytest.mark.parametrize("activation", ["relu", {"class_name": "function"}])
def test_another_activation_of_a_classifier_is_an_error(folder, activation):
    add_classifier(folder, activation)
    with pytest.raises(ValueError, match=r"'relu'|function"):
        bert_keras.TextClassifier.from_preset(folder)


def test_a_missing_head_is_named_in_a_warning(folder):
    with pytest.warns(UserWarning, match="head/dense/kernel, head/dense/bias"):
        bert_keras.TextClassifier.from_preset(folder)
    add_classifier(folder)
    with pytest.warns(UserWarning, match="head/dense/kernel, head/dense/bias"):
        bert_keras.TokenClassifier.from_preset(folder, num_classes=2)


def test_the_maps_cover_every_weight():
    model = bert_keras.TextClassifier(bert_keras.BertBackbone(9, 3, 1, 4, 4))
    rows = KERAS_HUB.rows + KERAS_HUB.heads["TextClassifier"].rows
    expected = {relative_path(v) for v in (*model.backbone.weights, *model.head.weights)}
    assert expected == set(expand(rows, KINDS, i=3))


def test_names_that_do_not_fit_are_an_error_with_both_lists(folder):
    name = "layers/transformer_encoder_1/_feedforward_output_dense/vars/0"
    rewrite(folder, lambda t: {("surprise" if k == name else k): v for k, v in t.items()})
    with pytest.raises(ValueError, match="surprise") as raised:
        bert_keras.BertBackbone.from_preset(folder)
    assert "encoder/layer_1/feed_forward/output/kernel" in str(raised.value)


def test_shapes_that_do_not_fit_are_an_error(folder):
    write_json(
        folder / "config.json", serialized("BertBackbone", {**CONFIG, "intermediate_dim": 40})
    )
    with pytest.raises(ValueError, match=r"feed_forward/intermediate/kernel \(16, 40\)"):
        bert_keras.BertBackbone.from_preset(folder)
    # Merged, the axes of heads and of their width have the same size.
    write_json(folder / "config.json", serialized("BertBackbone", {**CONFIG, "num_heads": 4}))
    with pytest.raises(ValueError, match=r"2 heads.*num_heads=4"):
        bert_keras.BertBackbone.from_preset(folder)


@pytest.mark.parametrize("keep", [4, 1000, 0.5, 0.99])
def test_a_truncated_weights_file_is_an_error(folder, keep):
    path = folder / "model.weights.h5"
    data = path.read_bytes()
    path.write_bytes(data[: int(keep if keep > 1 else keep * len(data))])
    with pytest.raises(ValueError, match=r"model\.weights\.h5"):
        bert_keras.BertBackbone.from_preset(folder)


def test_links_to_other_files_are_not_followed(folder, tmp_path):
    secret = tmp_path / "secret.h5"
    path = "layers/embedding/vars/0"
    with h5py.File(secret, "w") as file:
        file["x"] = np.ones((2, WIDTH), "f")
    with h5py.File(folder / "model.weights.h5", "a") as file:
        del file[path]
        file[path] = h5py.ExternalLink(str(secret), "x")
    with pytest.raises(ValueError, match="embeddings/segment_embedding"):
        bert_keras.BertBackbone.from_preset(folder)
    (tmp_path / "raw").write_bytes(np.ones((2, WIDTH), "f").tobytes())
    with h5py.File(folder / "model.weights.h5", "a") as file:
        del file[path]
        parts = [(str(tmp_path / "raw"), 0, h5py.h5f.UNLIMITED)]
        file.create_dataset(path, (2, WIDTH), "f", external=parts)
    with pytest.raises(ValueError, match="from another file"):
        bert_keras.BertBackbone.from_preset(folder)


def test_a_quantized_preset_is_an_error(folder):
    path = "layers/dense/vars/0"
    rewrite(folder, lambda t: {k: v.astype("int8") if k == path else v for k, v in t.items()})
    with pytest.raises(ValueError, match="must be floats"):
        bert_keras.BertBackbone.from_preset(folder)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("config.json", serialized("ResNetBackbone", CONFIG), "ResNetBackbone"),
        ("config.json", {**serialized("BertBackbone", {}), "config": 3}, "'config'"),
        ("config.json", serialized("BertBackbone", {"num_layers": 2}), "lacks"),
        ("config.json", serialized("BertBackbone", {**CONFIG, "num_layers": 2**40}), "num_layers"),
        ("task.json", [], "object"),
        ("tokenizer.json", serialized("BertTokenizer", {"suffix_indicator": "@@"}), "##"),
        ("tokenizer.json", [], "class_name"),
    ],
)
def test_settings_that_cannot_be_are_an_error(folder, name, value, message):
    write_json(folder / name, value)
    with pytest.raises(ValueError, match=message):
        bert_keras.TextClassifier.from_preset(folder)


def test_a_folder_without_weights_says_so(folder):
    (folder / "model.weights.h5").unlink()
    with pytest.raises(FileNotFoundError, match=r"model\.weights\.h5"):
        bert_keras.BertBackbone.from_preset(folder)


@pytest.mark.parametrize("lowercase", [True, False])
def test_the_tokenizer_s_settings_are_taken_as_they_stand(folder, lowercase):
    config = {**TOKENIZER, "lowercase": lowercase, "oov_token": "[MASK]"}
    write_json(folder / "tokenizer.json", serialized("BertTokenizer", config))
    tokenizer = Tokenizer.load(folder)
    normalizer = tokenizer.settings["normalizer"]
    assert (normalizer["lowercase"], normalizer["strip_accents"]) == (lowercase, False)
    assert tokenizer.vocabulary == VOCABULARY
    assert tokenizer.tokenize("A") == (["a"] if lowercase else ["[MASK]"])


@pytest.mark.once
@pytest.mark.parametrize("name", [["a"], 5, None])
def test_a_class_that_is_no_name_is_an_error_that_says_so(tmp_path, name):
    config = {**serialized("BertBackbone", {}), "class_name": name}
    (tmp_path / "config.json").write_text(json.dumps(config))
    (tmp_path / "model.weights.h5").write_bytes(b"never read")
    with pytest.raises(ValueError, match=r"`class_name` in KerasHub's `.*config\.json` must be"):
        bert_keras.BertBackbone.from_preset(tmp_path)
