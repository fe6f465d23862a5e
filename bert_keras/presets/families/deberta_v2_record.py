"""DeBERTa-v2, DeBERTa-v3 and mDeBERTa-v3 in Hugging Face's checkpoints.

References: https://github.com/huggingface/transformers, `models/deberta_v2`;
https://github.com/microsoft/DeBERTa, `DeBERTa/apps/models`, for the head of v3's discriminators.
"""

from bert_keras.presets.families import bert_record as bert
from bert_keras.presets.families.record import Field, Head, Record, Tables, of_tasks

_POSITIONS, _DISTANCE = "max_position_embeddings", "max_relative_positions"
_HAS_POSITIONS = "position_biased_input"


def _key_field(argument, key, default, read, write):
    """Returns a `Field` of one key, with functions from its value to ours and back."""
    return Field(
        argument,
        lambda config: read(config.get(key, default)),
        lambda arguments: {key: write(arguments[argument])},
    )


def _read_terms(terms):
    """Returns the terms as a list. Released files have a string such as "p2c|c2p"."""
    return [x.strip() for x in terms.lower().split("|")] if isinstance(terms, str) else terms or []


def _read_positions(config):
    return config.get(_POSITIONS, 512) if config.get(_HAS_POSITIONS, True) else None


def _read_distance(config):
    distance = config.get(_DISTANCE, -1)
    return distance if distance > 0 else config.get(_POSITIONS, 512)


def _write_positions_and_distance(arguments):
    positions, distance = arguments["max_sequence_length"], arguments["max_distance"]
    has_positions = positions is not None
    rows = positions if has_positions else distance
    return {_HAS_POSITIONS: has_positions, _POSITIONS: rows, _DISTANCE: distance}


def _without_unused(tensors, backbone, config):
    """Removes tables that v3 shared in training, and a table or norm that the config turns off."""
    unused = ["embeddings.word_embeddings._weight", "embeddings.position_embeddings._weight"]
    if backbone.max_sequence_length is None:
        unused.append("embeddings.position_embeddings.weight")
    if not backbone.relative_attention:
        unused += ["encoder.LayerNorm.weight", "encoder.LayerNorm.bias"]
    return tensors.without(unused)


# The released heads have names that differ from those that transformers writes.
_RELEASED = {"lm_predictions.lm_head.bias": "cls.predictions.bias"} | {
    f"lm_predictions.lm_head.{name}": f"cls.predictions.transform.{name}"
    for name in ("dense.weight", "dense.bias", "LayerNorm.weight", "LayerNorm.bias")
}
_MULTIPLE_CHOICE = Head(
    bert.hidden_and_dense("pooler.dense", "classifier"),
    "ForMultipleChoice",
    {"pooling": "cls", "hidden_activation": "gelu"},
    "cls_dropout",
)
_OF_POSITIONS = {f"attention/position_{x}": f"pos_{x}_proj" for x in ("key", "query")}
_DETECTOR = bert.hidden_and_dense("mask_predictions.dense", "mask_predictions.classifier")

HUGGING_FACE = Record(
    backbone="bert_keras>DebertaV2Backbone",
    names={"deberta-v2": "DebertaV2"},
    config={
        **bert.SIZES,
        "conv_act": "convolution_activation",
        "conv_kernel_size": "convolution_size",
        "embedding_size": "embedding_dim",
        "relative_attention": "relative_attention",
        "share_att_key": "share_projections",
        "type_vocab_size": "num_segments",
    },
    fields=(
        Field("max_sequence_length", _read_positions, _write_positions_and_distance),
        Field("max_distance", _read_distance),
        _key_field("relative_terms", "pos_att_type", None, _read_terms, list),
        _key_field(
            *("num_buckets", "position_buckets", -1),
            lambda count: count if count > 0 else None,
            lambda count: count or -1,
        ),
        _key_field(
            *("relative_norm", "norm_rel_ebd", "none"),
            lambda names: "layer_norm" in names.lower(),
            lambda has_norm: "layer_norm" if has_norm else "none",
        ),
    ),
    allowed={
        "conv_groups": (1,),
        "legacy": (True, False),
        "pooler_dropout": (0, 0.0),
        "pooler_hidden_act": ("gelu",),
    },
    defaults={"relative_attention": False, "share_att_key": False},
    rows=(
        *bert.ROWS[:4],
        ("embeddings/projection", "embeddings.embed_proj", "kernel"),
        ("encoder/relative_vectors/table", "encoder.rel_embeddings", "embedding"),
        ("encoder/relative_vectors/norm", "encoder.LayerNorm", "norm"),
        ("encoder/layer_0/convolution", "encoder.conv.conv", "dense"),
        ("encoder/layer_0/convolution/norm", "encoder.conv.LayerNorm", "norm"),
        *(
            (ours, f"{theirs}_proj" if ".self." in theirs else theirs, kind)
            for ours, theirs, kind in bert.ROWS[4:-1]
        ),
        *bert.block_rows("encoder.layer.{i}.attention.self", _OF_POSITIONS),
    ),
    prefix="deberta.",
    heads=of_tasks(
        masked_tokens=bert.MASKED_LM._replace(tied=bert.MASKED_LM.tied | _RELEASED),
        choice=_MULTIPLE_CHOICE,
        span=bert.QUESTION_ANSWERING,
        replaced_token=Head(
            (*_DETECTOR, ("head/layer_norm", "mask_predictions.LayerNorm", "norm")),
            "ForPreTraining",
            {"from_first": True},
        ),
        sequence=_MULTIPLE_CHOICE._replace(architecture="ForSequenceClassification"),
        token=bert.TOKEN_CLASSIFIER,
    ),
    tables=Tables(_without_unused),
)
