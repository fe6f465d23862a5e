import json

import numpy as np
import pytest
from checks import (
    TINY,
    assert_close,
    cases,
    check_backbone,
    check_config_is_refused,
    check_equals_transformers,
    check_gradients,
    model_of_transformers,
    padded_inputs,
    random_inputs,
    to_numpy,
    transformers_outputs,
)

import bert_keras
from bert_keras.presets.assign import head_weights
from bert_keras.presets.safetensors_io import WEIGHTS_FILE, read_safetensors, write_safetensors

pytestmark = pytest.mark.once

# A checkpoint of v3, with fewer buckets than tokens.
V3 = {"vocab_size": 50, "hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 3}
V3 |= {"intermediate_size": 28, "max_position_embeddings": 32, "initializer_range": 0.3}
V3 |= {"relative_attention": True, "pos_att_type": "p2c|c2p", "share_att_key": True}
V3 |= {"position_buckets": 8, "norm_rel_ebd": "layer_norm", "position_biased_input": False}
OWN_KEYS = {"share_att_key": False, "norm_rel_ebd": "none"}
CONFIGS = {
    "v3": {},
    "v2-xlarge": {"conv_kernel_size": 3, "conv_act": "gelu", "attention_head_size": 8},
    "own keys": {**OWN_KEYS, "conv_kernel_size": 5},
    "keys alone": {**OWN_KEYS, "pos_att_type": ["c2p"]},
    "queries alone": {"pos_att_type": ["p2c"], "position_buckets": -1},
    "positions and segments": {"position_biased_input": True, "type_vocab_size": 2},
    "narrow table": {"embedding_size": 10, "max_relative_positions": 12},
    "not relative": {"relative_attention": False, "position_biased_input": True},
}
SMALL = {"num_buckets": 6, "max_distance": 10, "initializer_range": 0.3}
ALL_PARTS = {"embedding_dim": 6, "num_segments": 2, "share_projections": False}
ALL_PARTS |= {"convolution_size": 3, **SMALL}


def tiny_backbone(**overrides):
    return bert_keras.DebertaV2Backbone(**{**TINY, **overrides})


def reference_of(architecture="Model", **overrides):
    return model_of_transformers(f"DebertaV2{architecture}", **{**V3, **overrides})


@cases(
    ({}, "deberta_v2_backbone.json"),
    pytest.param(ALL_PARTS, "deberta_v2_all_parts.json", marks=pytest.mark.each_backend),
)
def test_it_keeps_the_contract(tmp_path, options, golden):
    check_backbone(tiny_backbone(**options), golden, tmp_path)


@pytest.mark.parametrize("name", CONFIGS)
def test_outputs_equal_transformers(name, tmp_path):
    reference = reference_of(**CONFIGS[name])
    backbone = check_equals_transformers(reference, padded_inputs(reference.config, 20), tmp_path)
    assert len(backbone.encoder.shared) == (name != "not relative")
    backbone.export_to_huggingface(tmp_path / "ours")
    again = bert_keras.DebertaV2Backbone.from_preset(tmp_path / "ours")
    assert {**again.get_config(), "name": backbone.name} == backbone.get_config()


def test_longer_texts_than_trained_are_computed_as_by_transformers_with_a_warning(tmp_path):
    reference = reference_of()
    inputs = padded_inputs(reference.config, 50)
    with pytest.warns(UserWarning, match="at most 32 tokens.*Received: 50"):
        backbone = check_equals_transformers(reference, inputs, tmp_path)
    assert backbone.max_sequence_length is None


@pytest.mark.parametrize("remat", [pytest.param(True, marks=pytest.mark.each_backend), False])
def test_gradients_equal_those_of_transformers(remat, tmp_path):
    reference = reference_of(conv_kernel_size=3)
    inputs = padded_inputs(reference.config, 20)
    found = check_gradients(reference, inputs, tmp_path, remat=remat)
    assert np.abs(found["encoder/relative_vectors/table/embeddings"]).max() > 1e-3


def test_a_released_file_holds_both_heads_under_names_of_its_own(tmp_path):
    torch, reference = pytest.importorskip("torch"), reference_of("ForMaskedLM", legacy=False)
    tensors = {name: x.detach().numpy() for name, x in reference.state_dict().items()}
    detector = bert_keras.ReplacedTokenDetector(tiny_backbone(hidden_dim=24, num_heads=3))
    rng = np.random.default_rng(0)
    for weight in head_weights(detector).values():
        weight.assign(rng.normal(0, 0.5, weight.shape))
    detector.export_to_huggingface(tmp_path)
    saved, prefix = read_safetensors(tmp_path), "mask_predictions."
    head = {name.removeprefix(prefix): saved[name] for name in saved if name.startswith(prefix)}
    tensors |= {prefix + name: array for name, array in head.items()}
    # What v3's discriminators add to their generator's table.
    tensors["deberta.embeddings.word_embeddings._weight"] = np.ones((50, 24), "float32")
    write_safetensors(tmp_path / WEIGHTS_FILE, tensors)
    config = {"model_type": "deberta-v2", **V3}
    (tmp_path / "config.json").write_text(json.dumps(config))
    inputs = random_inputs(4, 20, num_segments=0)
    real = inputs["padding_mask"]
    expected = transformers_outputs(reference, inputs, output_hidden_states=True)
    generator = bert_keras.MaskedLM.from_preset(tmp_path, preprocessor=None)
    everywhere = np.tile(np.arange(20), (4, 1))
    logits = to_numpy(generator({**inputs, "mask_positions": everywhere}))
    assert_close(logits[real], expected.logits.numpy()[real], 1e-5)
    states = expected.hidden_states[-1]
    weights = {name: torch.tensor(array) for name, array in head.items()}
    norm, dense, last = (
        (weights[f"{name}.weight"], weights[f"{name}.bias"])
        for name in ("LayerNorm", "dense", "classifier")
    )
    f = torch.nn.functional
    x = f.layer_norm(states + states[:, :1], (24,), *norm, eps=1e-7)
    x = f.linear(f.gelu(f.linear(x, *dense)), *last)[..., 0].numpy()
    detector = bert_keras.ReplacedTokenDetector.from_preset(tmp_path, preprocessor=None)
    assert_close(to_numpy(detector(inputs))[real], x[real], 1e-5)


@cases(
    ({"pos_att_type": "p2c|p2p"}, "`relative_terms` must be one of.*'p2p'"),
    ({"position_buckets": 7}, "`num_buckets` must be even"),
    ({"position_buckets": 64}, "`num_buckets` must be"),
    ({"relative_attention": 1}, "`relative_attention` must be one of"),
    ({"max_relative_positions": "-1"}, "max_distance"),
    ({"conv_kernel_size": 4}, "`convolution_size` must be odd"),
    ({"conv_kernel_size": 3, "conv_act": "gelu_new"}, "gelu_new"),
)
def test_unsupported_configs_are_refused_before_weights_are_read(tmp_path, changes, message):
    config = {"model_type": "deberta-v2", **V3, **changes}
    check_config_is_refused(tmp_path, config, message)


def test_absent_keys_of_a_config_mean_plain_attention(tmp_path):
    sizes = {name: V3[name] for name in list(V3)[:5]}
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "deberta-v2", **sizes}))
    backbone = bert_keras.DebertaV2Backbone.from_preset(tmp_path, load_weights=False)
    assert not backbone.relative_attention and list(backbone.relative_terms) == []
    assert (backbone.max_sequence_length, backbone.num_segments) == (512, 0)


def test_adapters_change_projections_of_tokens_and_of_distances():
    backbone = tiny_backbone(**ALL_PARTS)
    names = {"position_query", "position_key"}
    assert names < set(backbone.adaptable)
    backbone.add_adapters(2, targets=("position_query",))
    assert len(backbone.adapter_weights) == 2 * backbone.num_layers
    assert not names & set(tiny_backbone().adaptable)
