"""ALBERT in Hugging Face's checkpoints, in Google's TensorFlow 1 checkpoints, and in KerasHub's.

References: https://github.com/huggingface/transformers, `models/albert`;
https://github.com/google-research/albert, `modeling.py`;
https://github.com/keras-team/keras-hub, `models/albert`.
"""

import itertools
import math

from bert_keras.checks import check_int
from bert_keras.presets.families import bert_record as bert
from bert_keras.presets.families.record import Field, Head, Record, Tables, of_tasks, side_by_side

_LAYER = {
    "attention/query": "attention.query",
    "attention/key": "attention.key",
    "attention/value": "attention.value",
    "attention/output": "attention.dense",
    "attention_norm": "attention.LayerNorm",
    "feed_forward/intermediate": "ffn",
    "feed_forward/output": "ffn_output",
    "feed_forward_norm": "full_layer_layer_norm",
}
_INNER = "inner_group_num"
_DROPOUT = "classifier_dropout_prob"
_MASKED_LM = bert.masked_lm("predictions.dense", "predictions.LayerNorm", "predictions")
_SENTENCE_ORDER = Head((("head/dense", "sop_classifier.classifier", "dense"),), "ForPreTraining")


def _read_depth(config):
    """Returns the number of blocks; the config counts passes through a group of blocks."""
    counts = (check_int(key, config[key], 1, 1024) for key in ("num_hidden_layers", _INNER))
    return math.prod(counts)


def _write_passes(arguments):
    return {"num_hidden_layers": arguments["num_layers"] // arguments["num_inner_layers"]}


def _blocks(theirs, parts):
    """Returns the rows of all blocks, see `block_rows`. Blocks are numbered by group and layer."""
    rows = bert.block_rows(theirs, parts)
    return tuple((ours.replace("layer_{i}", "group_{g}_layer_{j}"), *row) for ours, *row in rows)


HUGGING_FACE = Record(
    backbone="bert_keras>AlbertBackbone",
    names={"albert": "Albert"},
    config={
        **{theirs: ours for theirs, ours in bert.SIZES.items() if ours != "num_layers"},
        **bert.TABLE_SIZES,
        "layer_norm_eps": "layer_norm_epsilon",
        "embedding_size": "embedding_dim",
        "num_hidden_groups": "num_groups",
        _INNER: "num_inner_layers",
    },
    activation=("hidden_act", bert.ACTIVATIONS),
    fields=(Field("num_layers", _read_depth, _write_passes),),
    allowed={**bert.ALLOWED, "is_decoder": (False,)},
    defaults={"hidden_act": "gelu_new", _INNER: 1},
    rows=(
        *bert.ROWS[:4],
        ("embeddings/projection", "encoder.embedding_hidden_mapping_in", "dense"),
        *_blocks("encoder.albert_layer_groups.{g}.albert_layers.{j}", _LAYER),
        ("pooler/dense", "pooler", "dense"),
    ),
    counts={"g": "num_groups", "j": "num_inner_layers"},
    prefix="albert.",
    heads=of_tasks(
        masked_tokens=_MASKED_LM,
        choice=bert.MULTIPLE_CHOICE._replace(dropout=_DROPOUT),
        pretraining=side_by_side(
            "ForPreTraining", masked_lm=_MASKED_LM, next_sentence=_SENTENCE_ORDER
        ),
        # transformers has no model for this head alone: exports lack the head for masked tokens.
        next_sentence=_SENTENCE_ORDER,
        span=bert.QUESTION_ANSWERING,
        sequence=bert.TEXT_CLASSIFIER._replace(dropout=_DROPOUT),
        token=bert.TOKEN_CLASSIFIER._replace(dropout=_DROPOUT),
    ),
)

_SCOPES = {
    "attention/query": "attention_1.self.query",
    "attention/key": "attention_1.self.key",
    "attention/value": "attention_1.self.value",
    "attention/output": "attention_1.output.dense",
    "attention_norm": "LayerNorm",
    "feed_forward/intermediate": "ffn_1.intermediate.dense",
    "feed_forward/output": "ffn_1.intermediate.output.dense",
    "feed_forward_norm": "LayerNorm_1",
}
TF1 = bert.TF1._replace(
    backbone=HUGGING_FACE.backbone,
    config={k: v for k, v in HUGGING_FACE.config.items() if k != "layer_norm_eps"},
    fields=HUGGING_FACE.fields,
    rows=bert.scopes(
        (
            *bert.ROWS[:4],
            HUGGING_FACE.rows[4],
            *_blocks("encoder.transformer.group_{g}.inner_group_{j}", _SCOPES),
            bert.ROWS[-1],
        ),
        "bert/",
    ),
    counts=HUGGING_FACE.counts,
)


def _renamed(name, layers):
    """Returns a tensor's name with its layer renamed, if the dict `layers` has a new name."""
    root, layer, *rest = name.split("/")
    return "/".join((root, layers.get(layer, layer), *rest))


def _hub_blocks(backbone):
    """Returns a pair for each block: KerasHub's name, and the name in the rows below.

    KerasHub numbers all blocks in sequence, the rows have the numbers of group and layer.
    """
    places = itertools.product(range(backbone.num_groups), range(backbone.num_inner_layers))
    names = [f"{g}_{j}_block" for g, j in places]
    return [(f"transformer_encoder_{i}".removesuffix("_0"), x) for i, x in enumerate(names)]


def _number_by_group(tensors, backbone, config):
    layers = dict(_hub_blocks(backbone))
    return tensors.renamed({_renamed(name, layers): name for name in tensors})


def _number_in_sequence(arrays, backbone):
    layers = {ours: theirs for theirs, ours in _hub_blocks(backbone)}
    return {_renamed(name, layers): array for name, array in arrays.items()}


def _read_hub_depth(config):
    return math.prod(check_int(key, config[key], 1, 1024) for key in ("num_layers", _HUB_INNER))


def _write_hub_passes(arguments):
    passes, groups = _write_passes(arguments)["num_hidden_layers"], arguments["num_groups"]
    if passes % groups:
        raise ValueError(
            "KerasHub passes each group equally often. Received: "
            f"{passes} passes of num_groups={groups}."
        )
    return {"num_layers": passes}


_HUB_INNER = "num_inner_repetitions"
_HUB_SIZES = {name: name for name in bert.HUB_SIZES if name != "num_layers"}
KERAS_HUB = Record(
    backbone=HUGGING_FACE.backbone,
    names={"AlbertBackbone": "Albert"},
    config={
        **_HUB_SIZES,
        **{name: name for name in ("embedding_dim", "num_segments", "num_groups")},
        _HUB_INNER: "num_inner_layers",
    },
    activation=None,
    fields=(*bert.HUB_FIELDS, Field("num_layers", _read_hub_depth, _write_hub_passes)),
    fixed=bert.HUB_FIXED,
    rows=(
        *bert.HUB_EMBEDDINGS,
        ("embeddings/projection", "layers/dense", "dense"),
        *bert.hub_block_rows("encoder/group_{g}_layer_{j}", "{g}_{j}_block"),
        ("pooler/dense", "layers/dense_1", "dense"),
    ),
    counts=HUGGING_FACE.counts,
    optional=(),
    heads=of_tasks(
        masked_tokens=bert.hub_masked_lm("gelu_tanh"),
        sequence=bert.hub_text_classifier(bert.HUB_POOLED, bert.POOLER),
    ),
    tables=Tables(_number_by_group, _number_in_sequence),
    tokenizers={"Albert": "Unigram"},
)
