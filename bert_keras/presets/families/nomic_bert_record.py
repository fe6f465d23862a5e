"""NomicBERT in Hugging Face's checkpoints, for transformers' own code and for the code on the hub.

Files for the code on the hub have GPT-2's keys in their configs, one tensor for queries, keys and
values, and other names of tensors. Exports have transformers' keys and names.

References: https://github.com/huggingface/transformers, `models/nomic_bert`;
https://github.com/nomic-ai/contrastors, `models/huggingface`.
"""

import numpy as np

from bert_keras.checks import check_choice, check_number, check_settings
from bert_keras.presets.families import bert_record as bert
from bert_keras.presets.families.record import Field, Record, Tables, of_tasks

BACKBONE = "bert_keras>NomicBertBackbone"
_POSITIONS, _THETA = "max_position_embeddings", "rope_theta"
# A layer of ours -> the layers of transformers that are joined in it, in order.
_JOINED = {
    "self_attn.qkv_proj": ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"),
    "mlp.gate_up_proj": ("mlp.gate_proj", "mlp.up_proj"),
}
# Names in the hub's files of several families -> transformers' names.
SPELLINGS = {
    r"\bemb_ln\.": "embeddings.LayerNorm.",
    r"\bencoder\.layers?\.": "layers.",
    r"\.(norm1|attn_ln)\.": ".post_attention_layernorm.",
    r"\.(norm2|mlp_ln)\.": ".post_mlp_layernorm.",
}


def joined(tensors, backbone, config):
    """Joins the tensors of the projections that are one layer in this package."""
    arrays, parts = {}, set()
    for whole, names in _JOINED.items():
        for first in [name for name in tensors if f".{names[0]}." in name]:
            group = [first.replace(names[0], name) for name in names]
            if all(name in tensors for name in group):
                arrays[first.replace(names[0], whole)] = np.concatenate([tensors[x] for x in group])
                parts |= {*group}
    return tensors.without(parts).updated(arrays)


def split(arrays, backbone):
    """Splits arrays into those of transformers, the inverse of `joined`."""
    found = {}
    for name, array in arrays.items():
        whole = next((whole for whole in _JOINED if f".{whole}." in name), "")
        parts = _JOINED.get(whole, ("",))
        for part, piece in zip(parts, np.split(array, len(parts)), strict=True):
            found[name.replace(whole, part)] = piece
    return found


def checked(config, allowed):
    """Returns a copy of a config, after checking keys that no argument of ours reads."""
    advice = f"{BACKBONE} supports no others."
    return dict(check_settings("config.json", config, allowed, advice))


def _read_rotation(config):
    """Returns the base of the rotation, and the number that positions are divided by."""
    rope = {**(config.get("rope_scaling") or {}), **(config.get("rope_parameters") or {})}
    kind, base = rope.get("rope_type", rope.get("type", "default")), rope.get(_THETA)
    base = check_number(_THETA, config[_THETA] if base is None else base, above=0)
    is_plain = rope.get("partial_rotary_factor") in (None, 1) and rope.get("mixed_b") is None
    if kind not in ("default", "linear", "ntk") or not is_plain:
        raise ValueError(
            "Rotary positions must be over whole heads, and plain, 'linear' or 'ntk' without "
            f"`mixed_b`. Received: {rope}. {BACKBONE} has no others."
        )
    if kind == "default":
        return base, 1.0
    factor = check_number("factor", rope["factor"], above=0)
    if kind == "linear":
        return base, factor
    # The larger base slows down all planes except the fastest; the scale slows that one down too.
    return base * factor, factor ** (2 * config["num_attention_heads"] / config["hidden_size"])


def _write_rotation(arguments):
    rotation = {"rope_type": "default", _THETA: arguments["rotary_base"]}
    if arguments["rotary_scale"] != 1:
        rotation |= {"rope_type": "linear", "factor": float(arguments["rotary_scale"])}
    return {"rope_parameters": rotation}


FIELDS = (
    Field("rotary_base", lambda config: _read_rotation(config)[0], _write_rotation),
    Field("rotary_scale", lambda config: _read_rotation(config)[1]),
)


def rows(feed_forward, without_bias=()):
    """Returns the rows of a family, whose feed-forward layers have the two given names.

    Args:
        feed_forward: pair of str.
        without_bias: tuple of str; a dense layer whose name ends with one has no bias.
    """
    first, second = (f"mlp.{name}" for name in feed_forward)
    parts = {
        "attention/query_key_value": "self_attn.qkv_proj",
        "attention/output": "self_attn.o_proj",
        "attention_norm": "post_attention_layernorm",
        "feed_forward/intermediate": first,
        "feed_forward/output": second,
        "feed_forward_norm": "post_mlp_layernorm",
    }
    blocks = (
        (ours, theirs, "kernel" if theirs.endswith(without_bias) else kind)
        for ours, theirs, kind in bert.block_rows("layers.{i}", parts)
    )
    return (bert.ROWS[0], *bert.ROWS[2:4], *blocks)


def pooled_classifier(prefix):
    """Returns the head of a classifier with a pooler, under the given prefix of the backbone."""
    return bert.TEXT_CLASSIFIER._replace(
        rows=bert.hidden_and_dense(f"{prefix}pooler.dense", "classifier"),
        options={"pooling": "cls", "hidden_activation": "tanh"},
    )


# GPT-2's keys in the hub's configs -> transformers' keys.
_KEYS = {"n_embd": "hidden_size", "n_inner": "intermediate_size", "n_head": "num_attention_heads"}
_KEYS |= {"n_layer": "num_hidden_layers", "n_positions": _POSITIONS, "rotary_emb_base": _THETA}
_KEYS |= {"layer_norm_epsilon": "layer_norm_eps", "resid_pdrop": "hidden_dropout_prob"}
_KEYS |= {"attn_pdrop": "attention_probs_dropout_prob"}
_GATES = {"swiglu": "silu", "geglu": "gelu"}
# Keys of the hub's configs that must be off.
_OFF = "causal mlp_fc1_bias mlp_fc2_bias parallel_block prenorm qkv_proj_bias use_rms_norm"
_OFF += " rotary_emb_interleaved scale_attn_by_inverse_layer_idx"
_ALLOWED = {
    **dict.fromkeys(_OFF.split(), (False, None)),
    "activation_function": tuple(_GATES),
    "moe_every_n_layers": (0, None),
    "num_experts": (0, None),
    "rotary_emb_fraction": (1.0, 1),
    "rotary_emb_scale_base": (None,),
    "scale_attn_weights": (True,),
}


def _native(config):
    """Returns a config with transformers' keys.

    Beyond the length of training, the hub's code changes the base of the rotation with the length
    of each batch. Such configs are limited to that length, up to which the base is the config's.
    """
    config = checked(config, _ALLOWED)
    if "n_positions" in config:  # If both keys are there, the other has the length of training.
        config.pop(_POSITIONS, None)
    for theirs, native in _KEYS.items():
        if theirs in config:
            value = config[theirs]
            advice = f"`{theirs}` is {value}. Remove the wrong one."
            config[native] = check_choice(native, config.get(native, value), (value,), advice)
    if "activation_function" in config:
        config["hidden_act"] = _GATES[config["activation_function"]]
    if config.get("rotary_scaling_factor"):
        config[_POSITIONS] = config["max_trained_positions"]
    return config


_MASKED_LM = "cls.predictions"
HUGGING_FACE = Record(
    backbone=BACKBONE,
    names={"nomic_bert": "NomicBert"},
    config=bert.SIZES | bert.TABLE_SIZES,
    fields=FIELDS,
    fixed={"has_biases": False, "is_gated": True, "has_pooler": False},
    defaults={"hidden_act": "silu", _POSITIONS: 2048, _THETA: 1000.0},
    rows=rows(("gate_up_proj", "down_proj"), ("_proj",)),
    prefix="nomic_bert.",
    heads=of_tasks(
        masked_tokens=bert.masked_lm(
            f"{_MASKED_LM}.transform.dense", f"{_MASKED_LM}.transform.layer_norm", _MASKED_LM
        ),
        sequence=pooled_classifier("nomic_bert."),
        token=bert.TOKEN_CLASSIFIER,
    ),
    tables=Tables(joined, split, joins=True),
    native=_native,
    spellings={
        **SPELLINGS,
        r"^bert\.": "nomic_bert.",
        r"\.attn\.Wqkv\.": ".self_attn.qkv_proj.",
        r"\.attn\.out_proj\.": ".self_attn.o_proj.",
        r"\.fc11\.": ".up_proj.",
        r"\.fc12\.": ".gate_proj.",
        r"\.mlp\.fc2\.": ".mlp.down_proj.",
    },
)
