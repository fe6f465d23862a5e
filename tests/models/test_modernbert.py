import keras
import numpy as np
import pytest
from checks import (
    TINY,
    assert_close,
    cases,
    check_backbone,
    check_config_is_refused,
    check_equals_transformers,
    compute,
    random_inputs,
    random_reference,
    to_numpy,
)
from files import read_json, write_json

import bert_keras
from bert_keras.engine import kernels as backends
from bert_keras.layers.dropout import Dropout
from bert_keras.layers.local_attention import attend_locally
from bert_keras.presets.assign import relative_path

pytestmark = pytest.mark.once


def tiny_backbone(**overrides):
    return bert_keras.ModernBertBackbone(**{**TINY, "local_attention": 4, **overrides})


@pytest.mark.each_backend
def test_it_keeps_the_contract(tmp_path):
    check_backbone(tiny_backbone(), "modernbert_backbone.json", tmp_path)


@cases((1, 0), (7, 3), (8, 2), (9, 2), pytest.param(17, 4, marks=pytest.mark.each_backend))
def test_blocks_equal_a_mask_over_all_pairs(monkeypatch, length, reach):
    rng = np.random.default_rng(length)
    query, key, value = rng.normal(size=(3, 3, length, 2, 4)).astype("float32")
    is_token = np.arange(length) < np.array([[length], [length // 2 + 1], [1]])
    dropout = Dropout(0.0)
    texts = np.where(np.arange(length) < length // 2, 1, length // 2 + 1).astype("int32")
    for mask in (None, is_token[:, None, None], np.tile(texts, (3, 1))[:, None, None]):
        outputs = []
        for least in (0, 10**6):
            monkeypatch.setitem(backends.LEAST_BLOCKS, keras.backend.backend(), least)
            arrays = (query, key, value, *([] if mask is None else [mask]))

            def attended(query, key, value, mask=None):
                return attend_locally(query, key, value, mask, reach, dropout)[0]

            outputs.append(to_numpy(compute(attended, *arrays)))
        seen = np.ones_like(is_token) if mask is None or mask.dtype != bool else is_token
        np.testing.assert_allclose(outputs[0][seen], outputs[1][seen], atol=1e-6)


def test_texts_of_any_length_and_training_steps_agree_with_the_mask(monkeypatch):
    results = []
    for least in (0, 10**6):
        monkeypatch.setitem(backends.LEAST_BLOCKS, keras.backend.backend(), least)
        keras.utils.set_random_seed(0)
        task = bert_keras.TextClassifier(tiny_backbone(remat=True), num_classes=2)
        rows = [random_inputs(4, length, length, num_segments=1) for length in (6, 11)]
        task.compile(learning_rate=1e-3)
        for row in rows:
            task.fit(row, np.array([0, 1, 1, 0]), epochs=1, verbose=0)
        results.append([task.predict(row, verbose=0) for row in rows])
    for blocks, square in zip(*results, strict=True):
        np.testing.assert_allclose(blocks, square, atol=1e-5)


def test_adapters_are_on_the_common_projection():
    task = bert_keras.TextClassifier(tiny_backbone(), num_classes=2, lora_rank=2)
    assert task.backbone.lora["lora_targets"] == ["query_key_value"]
    trained = {relative_path(weight) for weight in task.backbone.trainable_weights}
    layers = [f"encoder/layer_{i}/attention/query_key_value/lora_" for i in (0, 1)]
    assert trained == {layer + letter for layer in layers for letter in "ab"}
    frozen = bert_keras.TextClassifier(tiny_backbone(), num_classes=2, frozen=1)
    trained = {relative_path(weight).split("/")[1] for weight in frozen.trainable_weights}
    assert {"layer_1", "final_norm"} <= trained and "layer_0" not in trained


@pytest.mark.parametrize("kind", [bert_keras.heads.SequenceHead, bert_keras.heads.TokenHead])
def test_a_norm_follows_a_hidden_layer(kind):
    with pytest.raises(ValueError, match="Name its `hidden_activation`"):
        kind(2, 8, norm=True)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"num_heads": 8}, "heads of an even width"),
        ({"local_attention": 0}, "local_attention"),
        ({"global_attention_every": None}, "global_attention_every"),
        ({"global_rotary_base": 0}, "global_rotary_base"),
        ({"local_rotary_base": "1e4"}, "local_rotary_base"),
        ({"embedding_dropout": 1}, "embedding_dropout"),
    ],
    ids=lambda value: "" if isinstance(value, str) else next(iter(value)),
)
def test_impossible_arguments_are_refused(wrong, message):
    with pytest.raises(ValueError, match=message):
        tiny_backbone(**wrong)


@pytest.mark.parametrize("seed", range(4))
def test_outputs_equal_transformers_in_both_spellings_of_a_config(seed, tmp_path):
    every, bases = (2, 3, 4, 2)[seed], {"global_rope_theta": 90.0, "local_rope_theta": 7.5}
    reference, inputs = random_reference(
        "ModernBert",
        seed,
        num_hidden_layers=(3, 5, 4, 4)[seed],
        num_attention_heads=(1, 3, 2, 4)[seed],
        hidden_size=(6, 24, 20, 16)[seed],
        max_position_embeddings=(9, 29, 17, 23)[seed],
        hidden_activation=("gelu", "gelu_new", "relu", "silu")[seed],
        norm_eps=10.0 ** -(3, 5, 6, 8)[seed],
        local_attention=(1, 8, 3, 4)[seed],
        global_attn_every_n_layers=every,
        pad_token_id=0,
        **bases,
    )
    inputs["padding_mask"][:, 0] = True
    backbone = check_equals_transformers(reference, inputs, tmp_path)
    saved = read_json(tmp_path / "config.json")
    for key in ("layer_types", "rope_parameters", "global_attn_every_n_layers"):
        saved.pop(key, None)
    old = {"position_embedding_type": "sans_pos", "global_attn_every_n_layers": every, **bases}
    write_json(tmp_path / "config.json", saved | old)
    again = bert_keras.ModernBertBackbone.from_preset(tmp_path)
    expected = backbone(inputs)["sequence_output"]
    assert_close(again(inputs)["sequence_output"], expected, 0)
    # transformers 4 reads the old keys of an export, and 5 those beside them.
    again.export_to_huggingface(tmp_path / "ours")
    ours = read_json(tmp_path / "ours/config.json")
    spelled = {"global_attn_every_n_layers": every, **bases}
    assert {key: ours.get(key) for key in spelled} == spelled and "rope_parameters" in ours


# Settings that have no weights must be in the config.
UNSUPPORTED = [
    ((), {"layer_types": ["sliding_attention", "full_attention"]}, "no other patterns"),
    ((), {"rope_parameters": {"full_attention": {"rope_type": "yarn"}}}, "Received:.*yarn"),
    ((), {"rope_parameters": {"rope_type": "default", "rope_theta": 9.0}}, "Received:.*9.0"),
    (("rope_parameters",), {"rope_scaling": {"type": "linear"}}, "linear"),
    ((), {"rope_parameters": 7}, "must define global_rotary_base"),
    (
        ("rope_parameters",),
        {"global_rope_theta": 9.0, "local_rope_theta": None},
        "local_rotary_base",
    ),
    ((), {"local_attention": None}, "local_attention"),
    (("rope_parameters",), {}, "must define global_rotary_base"),
    (("local_attention",), {}, "must define local_attention"),
    (("layer_types",), {}, "must define global_attention_every"),
    (("sliding_attention",), {}, "must define local_rotary_base"),
]


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    folder = tmp_path_factory.mktemp("exported")
    tiny_backbone().export_to_huggingface(folder)
    return folder


@pytest.mark.parametrize(("without", "changes", "message"), UNSUPPORTED)
def test_an_unsupported_config_is_refused_before_weights_are_read(
    exported, tmp_path, without, changes, message
):
    config = read_json(exported / "config.json")
    for key in ("global_attn_every_n_layers", "global_rope_theta", "local_rope_theta", *without):
        config.pop(key, None)
        config.get("rope_parameters", {}).pop(key, None)
    check_config_is_refused(tmp_path, config | changes, message)
