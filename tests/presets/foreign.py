"""A tiny BERT of transformers, written in the formats of other libraries.

The writers follow the files of those libraries, without the tables of this package, but for
KerasHub's, which reads what this package exports.
"""

import tempfile
from collections.abc import Callable
from typing import NamedTuple

import h5py
import numpy as np
from checks import assert_close, model_of_transformers, perturbed, to_numpy, transformers_outputs
from files import write_json
from safetensors.numpy import load_file, save_file
from tiny import VOCABULARY

import bert_keras
from bert_keras.presets.formats.tf1 import read_tf_checkpoint

LAYERS, HEADS, WIDTH, INNER = 2, 2, 16, 24
TF1_CONFIG = {
    "attention_probs_dropout_prob": 0.1,
    "directionality": "bidi",
    "hidden_act": "gelu",
    "hidden_dropout_prob": 0.2,
    "hidden_size": WIDTH,
    "initializer_range": 0.02,
    "intermediate_size": INNER,
    "max_position_embeddings": 16,
    "num_attention_heads": HEADS,
    "num_hidden_layers": LAYERS,
    "pooler_fc_size": 768,
    "pooler_type": "first_token_transform",
    "type_vocab_size": 2,
    "vocab_size": len(VOCABULARY),
}
KERAS_HUB_CONFIG = {
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


def bert_of_transformers(architecture="PreTraining", **config):
    """Returns a random BERT with the activation of Google's code, in which no weight is 0 or 1."""
    names = set(TF1_CONFIG) - {"directionality", "pooler_fc_size", "pooler_type"}
    settings = {name: TF1_CONFIG[name] for name in names} | {"hidden_act": "gelu_new"}
    settings |= {"initializer_range": 0.2, **config}
    return perturbed(model_of_transformers(f"BertFor{architecture}", **settings))


def inputs():
    """Returns three rows of 12, 5 and 9 tokens with random segments."""
    rng = np.random.default_rng(0)
    return {
        "token_ids": rng.integers(0, len(VOCABULARY), (3, 12)).astype("int32"),
        "segment_ids": rng.integers(0, 2, (3, 12)).astype("int32"),
        "padding_mask": (np.arange(12) < np.array([[12], [5], [9]])).astype("int32"),
    }


IS_TOKEN = inputs()["padding_mask"].astype(bool)


def outputs_of(model):
    """Returns what a model of transformers computes from `inputs`, a dict of arrays."""
    return {name: value.numpy() for name, value in transformers_outputs(model, inputs()).items()}


def assert_outputs_equal(backbone, expected, atol=1e-5):
    """Compares a backbone with outputs of a `BertModel` at all tokens but padding."""
    actual = backbone.predict(inputs(), verbose=0)
    names = {"sequence_output": "last_hidden_state", "pooled_output": "pooler_output"}
    for ours, theirs in names.items():
        mask = IS_TOKEN if ours == "sequence_output" else slice(None)
        assert_close(actual[ours][mask], expected[theirs][mask], atol)


def first_weights(folder):
    """Returns some values of each weight of the backbone in a folder."""
    backbone = bert_keras.BertBackbone.from_preset(folder)
    return np.concatenate([np.ravel(to_numpy(v))[:3] for v in backbone.weights])


def replaced(name, names):
    for old, new in names.items():
        name = name.replace(old, new)
    return name


# Hugging Face's format


def write_hugging_face(folder, model):
    model.save_pretrained(folder)
    bert_keras.WordPieceTokenizer(VOCABULARY).save(folder)


def rewrite_hugging_face(folder, change):
    """Replaces the tensors of a checkpoint by `change(tensors)`."""
    path = folder / "model.safetensors"
    save_file(change(load_file(path)), path)


# KerasHub's format, version 0.32


def serialized(class_name, config, package="keras_hub"):
    """Returns what KerasHub's JSON files hold of an object."""
    return {
        "module": f"{package}.src.models.bert.somewhere",
        "class_name": class_name,
        "config": config,
        "registered_name": f"{package}>{class_name}",
    }


def write_h5(path, arrays):
    with h5py.File(path, "w") as file:
        for name, array in arrays.items():
            file[name] = array
        file.create_group("layers/dropout/vars").attrs["name"] = "embeddings_dropout"


def write_keras_hub(folder, model):
    """Exports a model, which `test_to_keras_hub.py` shows to be the same in KerasHub itself."""
    with tempfile.TemporaryDirectory() as theirs:
        model.save_pretrained(theirs)
        backbone = bert_keras.BertBackbone.from_preset(theirs, attention_dropout=0.2)
    backbone.export_to_keras_hub(folder)
    (folder / "assets" / "tokenizer").mkdir(parents=True)
    write_vocabulary(folder / "assets" / "tokenizer" / "vocabulary.txt")
    tokenizer = {"lowercase": True, "strip_accents": False, "split": True, "suffix_indicator": "##"}
    write_json(folder / "tokenizer.json", serialized("BertTokenizer", tokenizer))


def add_keras_hub_classifier(
    folder, activation="linear", num_classes=3, package="keras_hub", name="BertTextClassifier"
):
    """Adds the files of a fine-tuned classifier; returns kernel and bias of its head."""
    rng = np.random.default_rng(1)
    kernel = rng.normal(size=(WIDTH, num_classes)).astype("f")
    bias = rng.normal(size=num_classes).astype("f")
    config = {"num_classes": num_classes, "activation": activation, "dropout": 0.3}
    write_json(folder / "task.json", serialized(name, config, package))
    arrays = {"layers/dense/vars/0": kernel, "layers/dense/vars/1": bias}
    optimizer = {"optimizer/vars/0": np.array(7), "optimizer/vars/1": np.array(1e-4)}
    write_h5(folder / "task.weights.h5", arrays | optimizer)
    return kernel, bias


def write_vocabulary(path, tokens=VOCABULARY):
    path.write_text("".join(f"{token}\n" for token in tokens), encoding="utf-8")


def rewrite_keras_hub(folder, change):
    """Replaces the arrays of a weights file by `change(arrays)`."""
    arrays = {}

    def read(path, item):
        if isinstance(item, h5py.Dataset):
            arrays[path] = item[()]

    with h5py.File(folder / "model.weights.h5") as file:
        file.visititems(read)
    write_h5(folder / "model.weights.h5", change(arrays))


# The format of google-research/bert, TensorFlow 1


def write_tf_checkpoint(prefix, tensors):
    """Writes arrays as a checkpoint with one data file."""
    import tensorflow  # Only here: most tests need no TensorFlow.

    tensorflow.raw_ops.SaveV2(
        prefix=str(prefix),
        tensor_names=list(tensors),
        shape_and_slices=[""] * len(tensors),
        tensors=[tensorflow.convert_to_tensor(array) for array in tensors.values()],
    )


def bert_name(name):
    """Returns the name in google-research/bert of a tensor of transformers."""
    return name.replace("encoder.layer.", "encoder.layer_").replace(".", "/")


def tf1_tensors(model, name_of=bert_name):
    """Returns a model's weights under the names and in the layout of Google's `modeling.py`."""
    tensors = {}
    for name, parameter in model.named_parameters():
        name, array = name_of(name), parameter.detach().numpy()
        if name.endswith("embeddings/weight"):
            name = name.removesuffix("/weight")
        elif "LayerNorm" in name:
            name = name.replace("/weight", "/gamma").replace("/bias", "/beta")
        elif name.startswith("cls/seq_relationship/"):  # made by hand there, as (output, input)
            name = name.replace("/weight", "/output_weights").replace("/bias", "/output_bias")
        elif name == "cls/predictions/bias":
            name = "cls/predictions/output_bias"
        elif name.endswith("/weight"):
            name, array = name.replace("/weight", "/kernel"), array.T
        tensors[name] = np.ascontiguousarray(array)
    return tensors


def write_tf1(folder, model):
    """Writes the folder of a model that was trained by Adam."""
    folder.mkdir(exist_ok=True)
    write_json(folder / "bert_config.json", TF1_CONFIG)
    write_vocabulary(folder / "vocab.txt")
    tensors = tf1_tensors(model)
    slots = {f"{name}/adam_{slot}": array for name, array in tensors.items() for slot in "mv"}
    step = {"global_step": np.array(20_000, "int64")}
    write_tf_checkpoint(folder / "bert_model.ckpt", {**tensors, **slots, **step})


def rewrite_tf1(folder, change):
    """Replaces the tensors of the folder's checkpoint by `change(tensors)`."""
    prefix = folder / "bert_model.ckpt"
    write_tf_checkpoint(prefix, change(dict(read_tf_checkpoint(prefix))))


def set_tf1_head(folder, **head):
    """Replaces the pretraining heads by another head; `__` in a name stands for `/`."""
    head = {name.replace("__", "/"): array.astype("f") for name, array in head.items()}
    rewrite_tf1(folder, lambda t: {k: v for k, v in t.items() if k[:4] != "cls/"} | head)


class Format(NamedTuple):
    """A format, and the names in it that the tests change.

    Fields:
        write: function of a folder and a `BertForPreTraining`.
        rewrite: function of a folder and a function of all tensors, a dict by name.
        config: name of the file with the sizes.
        intermediate_dim: name of this size there.
        weights: name of the file with the weights.
        kernel: name of a kernel of the upper layer.
    """

    write: Callable
    rewrite: Callable
    config: str
    intermediate_dim: str
    weights: str
    kernel: str


FORMATS = {
    "hugging_face": Format(
        write_hugging_face,
        rewrite_hugging_face,
        "config.json",
        "intermediate_size",
        "model.safetensors",
        "bert.encoder.layer.1.output.dense.weight",
    ),
    "keras_hub": Format(
        write_keras_hub,
        rewrite_keras_hub,
        "config.json",
        "intermediate_dim",
        "model.weights.h5",
        "layers/transformer_encoder_1/_feedforward_output_dense/vars/0",
    ),
    "tf1": Format(
        write_tf1,
        rewrite_tf1,
        "bert_config.json",
        "intermediate_size",
        "bert_model.ckpt.data-00000-of-00001",
        "bert/encoder/layer_1/output/dense/kernel",
    ),
}
