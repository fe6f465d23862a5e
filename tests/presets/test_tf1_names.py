"""TensorFlow 1 checkpoints with the names of other people's scripts, and Google's ALBERT."""

import numpy as np
import pytest
from checks import model_of_transformers, perturbed
from files import write_json
from foreign import (
    TF1_CONFIG,
    assert_outputs_equal,
    outputs_of,
    rewrite_tf1,
    tf1_tensors,
    write_tf1,
    write_tf_checkpoint,
    write_vocabulary,
)

import bert_keras

pytestmark = pytest.mark.usefixtures("shared_backbones")
COUNTERS = {"current_loss_scale": np.float32(1024), "good_steps": np.array(4, "int32")}


def with_slots(*endings):
    return lambda t: t | {name + ending: x for name, x in t.items() for ending in endings}


@pytest.mark.parametrize(
    "change",
    [
        with_slots("/ExponentialMovingAverage"),
        with_slots("/Momentum"),
        with_slots("/lamb_m", "/lamb_v"),
        with_slots("/Adam", "/Adam_1", "/Adam/ExponentialMovingAverage"),
        lambda t: t | {name: np.reshape(x, ()) for name, x in COUNTERS.items()},
        lambda t: t | {f"loss_scale/{name}": np.reshape(x, ()) for name, x in COUNTERS.items()},
        lambda t: {name.removeprefix("bert/"): x for name, x in t.items()},
    ],
    ids=["averages", "momentum", "LAMB", "Adam", "loss scale", "loss scale in a scope", "no bert/"],
)
@pytest.mark.filterwarnings("error::UserWarning")
def test_what_a_training_leaves_changes_nothing(reference, tmp_path, change):
    write_tf1(tmp_path, reference)
    rewrite_tf1(tmp_path, change)
    task = bert_keras.Pretraining.from_preset(tmp_path)
    assert_outputs_equal(task.backbone, outputs_of(reference.bert))


def test_a_head_of_another_script_is_left_out_and_named(reference, tmp_path):
    write_tf1(tmp_path, reference)
    head = {
        "project/output_weights": np.ones((5, 16), "f"),
        "crf_loss/transitions": np.ones(5, "f"),
    }
    rewrite_tf1(tmp_path, lambda t: t | head)
    with pytest.warns(UserWarning, match="crf_loss/transitions, project/output_weights"):
        backbone = bert_keras.BertBackbone.from_preset(tmp_path)
    assert_outputs_equal(backbone, outputs_of(reference.bert))


def albert_name(name):
    """Returns the name in google-research/albert of a tensor of transformers."""
    name = name.removeprefix("albert.").replace(".", "/")
    for old, new in (
        ("albert_layer_groups/", "transformer/group_"),
        ("/albert_layers/", "/inner_group_"),
        ("/full_layer_layer_norm/", "/LayerNorm_1/"),
        ("/attention/LayerNorm/", "/LayerNorm/"),
        ("/attention/dense/", "/attention_1/output/dense/"),
        ("/ffn/", "/ffn_1/intermediate/dense/"),
        ("/ffn_output/", "/ffn_1/intermediate/output/dense/"),
        *(
            (f"/attention/{part}/", f"/attention_1/self/{part}/")
            for part in ("query", "key", "value")
        ),
        ("pooler/", "pooler/dense/"),
    ):
        name = name.replace(old, new)
    return f"bert/{name}"


@pytest.mark.parametrize(("num_groups", "num_inner_layers"), [(1, 1), (2, 2)])
@pytest.mark.filterwarnings("error::UserWarning")
def test_googles_albert_gives_the_outputs_of_transformers(tmp_path, num_groups, num_inner_layers):
    config = {key: x for key, x in TF1_CONFIG.items() if key[:6] not in ("pooler", "direct")}
    config |= {"embedding_size": 12, "num_hidden_groups": num_groups}
    config |= {"inner_group_num": num_inner_layers, "initializer_range": 0.3}
    settings = {**config, "hidden_act": "gelu_new"}
    model = perturbed(model_of_transformers("AlbertModel", **settings))
    write_json(tmp_path / "albert_config.json", {**config, "net_structure_type": 0})
    write_vocabulary(tmp_path / "vocab.txt")
    write_tf_checkpoint(tmp_path / "model.ckpt-best", tf1_tensors(model, albert_name))
    backbone = bert_keras.AlbertBackbone.from_preset(tmp_path)
    assert_outputs_equal(backbone, outputs_of(model))
