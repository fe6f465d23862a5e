"""DeBERTa-v2, DeBERTa-v3 and mDeBERTa-v3 in Hugging Face's checkpoints.

References: https://github.com/huggingface/transformers, `models/deberta_v2`;
https://github.com/microsoft/DeBERTa, `DeBERTa/apps/models`, for the head of v3's discriminators.
"""

from bert_keras.checks import check_choice
from bert_keras.presets.families import bert_record as bert
from bert_keras.presets.families.record import Field, Head, Record, Tables

_POSITIONS, _DISTANCE = "max_position_embeddings", "max_relative_positions"
_HAS_POSITIONS, _TERMS, _NORM = "position_biased_input", "pos_att_type", "norm_rel_ebd"
_BUCKETS, _ACTIVATION = "position_buckets", "conv_act"
_THEIRS = {ours: theirs for theirs, ours in reversed(bert.ACTIVATIONS.items())}


def _heads(config):
    """Returns the number of heads; the widths of heads and of the pooler must follow from it."""
    width, heads = config["hidden_size"], config["num_attention_heads"]
    for key, times in (("attention_head_size", heads), ("pooler_hidden_size", 1)):
        if key in config:
            rule = f"The width by `{key}`"
            check_choice(rule, config[key] * times, (width,), "It must be `hidden_size`.")
    return heads


def _terms(config):
    """Returns the terms, which are a list or, as in released files, a string such as "p2c|c2p"."""
    terms = config[_TERMS] or []
    return [x.strip() for x in terms.lower().split("|")] if isinstance(terms, str) else terms


def _convolution_activation(config):
    name = config[_ACTIVATION]
    return bert.ACTIVATIONS[check_choice(_ACTIVATION, name, bert.ACTIVATIONS)]


def _write_lengths(arguments):
    positions, distance = arguments["max_sequence_length"], arguments["max_distance"]
    has_positions = positions is not None
    return {
        _HAS_POSITIONS: has_positions,
        _POSITIONS: positions if has_positions else distance,
        _DISTANCE: distance,
    }


def _without_copies(tensors, backbone):
    """Leaves out tensors that are not used: v3's table before sharing, positions, a norm."""
    unused = ["embeddings.word_embeddings._weight", "embeddings.position_embeddings._weight"]
    if backbone.max_sequence_length is None:
        unused.append("embeddings.position_embeddings.weight")
    if not backbone.relative_attention:
        unused += ["encoder.LayerNorm.weight", "encoder.LayerNorm.bias"]
    return tensors.only(name for name in tensors if name not in unused)


# The released heads for masked tokens have these names.
_LM_HEAD = {"dense": "transform.dense", "LayerNorm": "transform.LayerNorm"}
_OTHER_NAMES = {"lm_predictions.lm_head.bias": "cls.predictions.bias"} | {
    f"lm_predictions.lm_head.{theirs}.{end}": f"cls.predictions.{name}.{end}"
    for theirs, name in _LM_HEAD.items()
    for end in ("weight", "bias")
}
_MASKED_LM = bert.HUGGING_FACE.heads["MaskedLM"]
_POOLED = {
    "rows": bert.hidden_and_dense("pooler.dense", "classifier"),
    "options": {"pooling": "cls", "hidden_activation": "gelu"},
    "dropout": "cls_dropout",
}

HUGGING_FACE = Record(
    backbone="bert_keras>DebertaV2Backbone",
    names={"deberta-v2": "DebertaV2"},
    config={
        **bert.SIZES,
        "embedding_size": "embedding_dim",
        "layer_norm_eps": "layer_norm_epsilon",
        "type_vocab_size": "num_segments",
        "relative_attention": "relative_attention",
        "share_att_key": "share_projections",
        "conv_kernel_size": "convolution_size",
    },
    activation=("hidden_act", bert.ACTIVATIONS),
    fields=(
        Field("num_heads", _heads, lambda sizes: {}),
        Field("relative_terms", _terms, lambda sizes: {_TERMS: list(sizes["relative_terms"])}),
        Field(
            "max_sequence_length",
            lambda config: config[_POSITIONS] if config[_HAS_POSITIONS] else None,
            _write_lengths,
        ),
        Field(
            "max_distance",
            lambda config: config[_DISTANCE if config[_DISTANCE] > 0 else _POSITIONS],
            lambda sizes: {},
        ),
        Field(
            "num_buckets",
            lambda config: config[_BUCKETS] if config[_BUCKETS] > 0 else None,
            lambda sizes: {_BUCKETS: sizes["num_buckets"] or -1},
        ),
        Field(
            "relative_norm",
            lambda config: "layer_norm" in config[_NORM].lower(),
            lambda sizes: {_NORM: "layer_norm" if sizes["relative_norm"] else "none"},
        ),
        Field(
            "convolution_activation",
            _convolution_activation,
            lambda sizes: {_ACTIVATION: _THEIRS.get(*[sizes["convolution_activation"]] * 2)},
        ),
    ),
    allowed={
        "conv_groups": (1,),
        "legacy": (True, False),
        "pooler_dropout": (0, 0.0),
        "pooler_hidden_act": ("gelu",),
    },
    defaults={
        "relative_attention": False,
        "share_att_key": False,
        _ACTIVATION: "tanh",
        _BUCKETS: -1,
        _DISTANCE: -1,
        _HAS_POSITIONS: True,
        _NORM: "none",
        _POSITIONS: 512,
        _TERMS: None,
    },
    rows=(
        *bert.ROWS[:4],
        ("embeddings/projection", "embeddings.embed_proj", "kernel"),
        ("encoder/relative_vectors/table", "encoder.rel_embeddings", "embedding"),
        ("encoder/relative_vectors/norm", "encoder.LayerNorm", "norm"),
        ("encoder/layer_0/convolution", "encoder.conv.conv", "dense"),
        ("encoder/layer_0/convolution/norm", "encoder.conv.LayerNorm", "norm"),
        *bert.block_rows(
            "encoder.layer.{i}",
            {
                "attention/query": "attention.self.query_proj",
                "attention/key": "attention.self.key_proj",
                "attention/value": "attention.self.value_proj",
                "attention/position_key": "attention.self.pos_key_proj",
                "attention/position_query": "attention.self.pos_query_proj",
                "attention/output": "attention.output.dense",
                "attention_norm": "attention.output.LayerNorm",
                "feed_forward/intermediate": "intermediate.dense",
                "feed_forward/output": "output.dense",
                "feed_forward_norm": "output.LayerNorm",
            },
        ),
    ),
    optional=(),
    prefix="deberta.",
    heads={
        "MaskedLM": _MASKED_LM._replace(tied={**_MASKED_LM.tied, **_OTHER_NAMES}),
        "MultipleChoice": Head(architecture="ForMultipleChoice", says=("dropout",), **_POOLED),
        "QuestionAnswering": bert.QUESTION_ANSWERING,
        "ReplacedTokenDetector": Head(
            (
                *bert.hidden_and_dense("mask_predictions.dense", "mask_predictions.classifier"),
                ("head/layer_norm", "mask_predictions.LayerNorm", "norm"),
            ),
            "ForPreTraining",
            {"from_first": True},
        ),
        "TextClassifier": Head(
            architecture="ForSequenceClassification",
            says=(*bert.CLASSES, "problem_type"),
            **_POOLED,
        ),
        "TokenClassifier": bert.TOKEN_CLASSIFIER._replace(says=bert.CLASSES[:2], dropout=None),
    },
    tables=Tables(_without_copies, lambda arrays, backbone: arrays),
)
