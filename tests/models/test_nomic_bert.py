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
    random_inputs,
    to_numpy,
    transformers_outputs,
)

import bert_keras
from bert_keras.models.backbone import Backbone
from bert_keras.presets.safetensors_io import WEIGHTS_FILE, read_safetensors, write_safetensors

pytestmark = pytest.mark.once

SIZES = {"vocab_size": 50, "hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 3}
SIZES |= {"intermediate_size": 28, "initializer_range": 0.3, "pad_token_id": 0}
FAMILIES = {"nomic_bert": "NomicBert", "gte": "Gte", "jina_embeddings_v3": "JinaEmbeddingsV3"}
JINA = {"is_gated": False, "has_biases": True, "has_pooler": True, "num_segments": 1}
CONFIGS = {
    "nomic": ("NomicBert", {}),
    "nomic with theta": ("NomicBert", {"rope_parameters": {"rope_theta": 37.0}}),
    "gte": ("Gte", {"type_vocab_size": 2}),
    "gte without segments": ("Gte", {"type_vocab_size": 0, "hidden_act": "relu"}),
    "jina": ("JinaEmbeddingsV3", {}),
}
NTK = {"type": "ntk", "factor": 8.0}


def tiny_backbone(**overrides):
    return bert_keras.NomicBertBackbone(**{**TINY, **overrides})


def reference_of(family, architecture="Model", **overrides):
    return model_of_transformers(f"{family}{architecture}", **{**SIZES, **overrides})


@cases(
    pytest.param({}, "nomic_bert_backbone.json", marks=pytest.mark.each_backend),
    (JINA, "nomic_bert_jina.json"),
)
def test_it_keeps_the_contract(tmp_path, options, golden):
    check_backbone(tiny_backbone(**options), golden, tmp_path)


@pytest.mark.parametrize("name", CONFIGS)
def test_outputs_equal_transformers(name, tmp_path):
    family, overrides = CONFIGS[name]
    reference = reference_of(family, **overrides)
    inputs = random_inputs(num_segments=reference.config.type_vocab_size, seq_len=20)
    backbone = check_equals_transformers(reference, inputs, tmp_path / "theirs")
    backbone.export_to_huggingface(tmp_path / "ours")
    again = Backbone.from_preset(tmp_path / "ours")
    assert {**again.get_config(), "name": backbone.name} == backbone.get_config()


def test_long_texts_equal_transformers(tmp_path):
    reference = reference_of("NomicBert", num_hidden_layers=1, num_attention_heads=1)
    inputs = random_inputs(2, 2000, num_segments=0)
    reference.save_pretrained(tmp_path)
    backbone = Backbone.from_preset(tmp_path)
    mask = inputs["padding_mask"]
    expected = transformers_outputs(reference, inputs).last_hidden_state.numpy()
    # Their angles are products of rounded speeds, which differ by up to 1e-4 at such positions.
    assert_close(to_numpy(backbone(inputs)["sequence_output"])[mask], expected[mask], 1e-4)


# Our weights' names in transformers' spelling -> the hub's.
HUB = {
    "nomic_bert": {"layers.": "encoder.layers.", "embeddings.LayerNorm": "emb_ln"}
    | {"self_attn.qkv": "attn.Wqkv", "self_attn.o_proj": "attn.out_proj"}
    | {"post_attention_layernorm": "norm1", "post_mlp_layernorm": "norm2"}
    | {"up_proj": "fc11", "gate_proj": "fc12", "down_proj": "fc2"},
    "gte": {"layers.": "encoder.layer.", "self_attn.qkv": "attention.qkv_proj", "gte.": "new."}
    | {"self_attn.o_proj": "attention.o_proj", "post_attention_layernorm": "attn_ln"}
    | {"post_mlp_layernorm": "mlp_ln", "lm_head.layer_norm": "lm_head.norm"},
    "jina_embeddings_v3": {"layers.": "encoder.layers.", "embeddings.LayerNorm": "emb_ln"}
    | {"self_attn.qkv": "mixer.Wqkv", "self_attn.o_proj": "mixer.out_proj"}
    | {"post_attention_layernorm": "norm1", "post_mlp_layernorm": "norm2"},
}


def in_the_hub_s_spelling(tensors, model_type):
    """Returns tensors of transformers as files for the hub's own code have them."""
    found = {}
    for name, array in tensors.items():
        if ".k_proj" in name or ".v_proj" in name or (".gate_proj" in name and model_type == "gte"):
            continue
        if ".q_proj" in name:
            array = np.concatenate([tensors[name.replace("q_proj", f"{x}_proj")] for x in "qkv"])
            name = name.replace("q_proj", "qkv")
        if ".up_proj" in name and model_type == "gte":
            array = np.concatenate([array, tensors[name.replace("up_proj", "gate_proj")]])
            name = name.replace("up_proj", "up_gate_proj")
        for ours, theirs in HUB[model_type].items():
            name = name.replace(ours, theirs)
        found[name] = array
    return found


@pytest.mark.parametrize("model_type", FAMILIES)
@pytest.mark.parametrize("architecture", ["Model", "ForMaskedLM", "ForSequenceClassification"])
def test_the_hub_s_names_are_read_as_by_transformers(model_type, architecture, tmp_path):
    reference = reference_of(FAMILIES[model_type], architecture)
    reference.save_pretrained(tmp_path, save_original_format=False)
    tasks = {"ForMaskedLM": "MaskedLM", "ForSequenceClassification": "TextClassifier"}
    cls = getattr(bert_keras, tasks[architecture]) if architecture in tasks else Backbone
    options = {"preprocessor": None} if architecture in tasks else {}
    expected = cls.from_preset(tmp_path, **options)
    tensors = read_safetensors(tmp_path)
    hub = in_the_hub_s_spelling({name: tensors[name] for name in tensors}, model_type)
    assert not {*hub} & {name for name in tensors if "layers." in name and "mlp.fc" not in name}
    write_safetensors(tmp_path / WEIGHTS_FILE, hub)
    theirs = type(reference).from_pretrained(tmp_path).state_dict()
    for name, array in reference.state_dict().items():
        np.testing.assert_array_equal(theirs[name].numpy(), array.numpy(), err_msg=name)
    # The code of the first files named the encoder so.
    first = {name.replace("nomic_bert.", "bert."): array for name, array in hub.items()}
    for tensors in (hub, first):
        write_safetensors(tmp_path / WEIGHTS_FILE, tensors)
        found = cls.from_preset(tmp_path, **options)
        for a, b in zip(found.weights, expected.weights, strict=True):
            if "/pooler/" not in a.path or architecture == "Model":
                np.testing.assert_array_equal(to_numpy(a), to_numpy(b), err_msg=a.path)


GPT = {"model_type": "nomic_bert", "vocab_size": 50, "n_embd": 24, "n_layer": 2, "n_head": 3}
GPT |= {"n_inner": 28, "n_positions": 8192, "activation_function": "geglu", "prenorm": False}
GPT |= {"rotary_emb_base": 1000, "rotary_emb_fraction": 1.0, "layer_norm_epsilon": 1e-6}
GPT |= {"rotary_scaling_factor": None, "max_trained_positions": 2048, "resid_pdrop": 0.2}
NEW = {"model_type": "new", **SIZES, "rope_theta": 20000, "rope_scaling": NTK}


def config_of(folder, config):
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "model.safetensors").write_bytes(b"never read")
    return Backbone.from_preset(folder, load_weights=False).get_config()


def test_configs_in_the_hub_s_spelling_are_read(tmp_path):
    expected = {"hidden_dim": 24, "num_layers": 2, "num_heads": 3, "intermediate_dim": 28}
    nomic = {"activation": "gelu", "rotary_base": 1000, "layer_norm_epsilon": 1e-6, "dropout": 0.2}
    nomic |= {"max_sequence_length": 8192, **expected}
    assert config_of(tmp_path, GPT).items() >= nomic.items()
    # The hub's code changes the base beyond the length of training.
    found = config_of(tmp_path, {**GPT, "rotary_scaling_factor": 2})
    assert found["max_sequence_length"] == 2048
    gte = {**expected, "rotary_base": 160_000, "rotary_scale": 8 ** (2 / 8), "num_segments": 1}
    assert config_of(tmp_path, NEW).items() >= gte.items()


@pytest.mark.parametrize("family", ["Gte", "NomicBert"])
@pytest.mark.parametrize("remat", [True, False])
def test_gradients_equal_those_of_transformers(family, remat, tmp_path):
    check_gradients(reference_of(family), random_inputs(num_segments=0), tmp_path, remat=remat)


@cases(
    (GPT, {"prenorm": True}, "`prenorm` in `config.json` must be one of"),
    (GPT, {"qkv_proj_bias": True}, "`qkv_proj_bias`"),
    (GPT, {"activation_function": "gelu"}, "`activation_function`"),
    (GPT, {"rotary_emb_fraction": 0.5}, "`rotary_emb_fraction`"),
    (GPT, {"rotary_emb_interleaved": True}, "`rotary_emb_interleaved`"),
    (GPT, {"moe_every_n_layers": 2}, "`moe_every_n_layers`"),
    (GPT, {"hidden_size": 768}, "`hidden_size` must be one of.*`n_embd` is 24"),
    (GPT, {"n_head": None}, "num_heads"),
    (NEW, {"rope_scaling": {**NTK, "mixed_b": 0.6}}, "mixed_b"),
    (NEW, {"rope_scaling": {"type": "dynamic", "factor": 2.0}}, "'dynamic'"),
    (NEW, {"rope_scaling": {"type": "ntk"}}, "factor"),
    (NEW, {"position_embedding_type": "absolute"}, "`position_embedding_type`"),
    (NEW, {"logn_attention_scale": True}, "`logn_attention_scale`"),
    (NEW, {"rope_scaling": {"partial_rotary_factor": 0.5}}, "whole heads"),
)
def test_unsupported_configs_are_refused_before_weights_are_read(
    tmp_path, config, changes, message
):
    check_config_is_refused(tmp_path, {**config, **changes}, message)


def test_adapters_of_several_tasks_in_one_file_are_refused(tmp_path):
    tiny_backbone(**JINA).export_to_huggingface(tmp_path)
    tensors = read_safetensors(tmp_path)
    arrays = {name: tensors[name] for name in tensors}
    arrays["layers.0.self_attn.qkv_proj.parametrizations.weight.0.lora_A"] = np.ones((5, 4, 8))
    write_safetensors(tmp_path / WEIGHTS_FILE, arrays)
    with pytest.raises(ValueError, match=r"Tensors without a weight .*lora_A"):
        Backbone.from_preset(tmp_path)


def test_a_backbone_that_no_family_has_is_not_exported(tmp_path):
    with pytest.raises(ValueError, match=r"is_gated=False has no counterpart.*: True"):
        tiny_backbone(is_gated=False).export_to_huggingface(tmp_path)


@pytest.mark.parametrize("options", [{}, JINA], ids=["nomic", "jina"])
def test_adapters_change_the_common_projection(options):
    backbone = tiny_backbone(**options)
    names = {"query_key_value", "attention_output", "intermediate", "feed_forward_output"}
    assert {*backbone.adaptable} == names
    backbone.add_adapters(2)
    assert len(backbone.adapter_weights) == 2 * backbone.num_layers
