"""ALBERT in Hugging Face's checkpoints, in Google's TensorFlow 1 checkpoints, and in KerasHub's.

References: https://github.com/huggingface/transformers, `models/albert`;
https://github.com/google-research/albert, `modeling.py`;
https://github.com/keras-team/keras-hub, `models/albert`.
"""

import math

from bert_keras.checks import check_int
from bert_keras.presets.families import bert_record as bert
from bert_keras.presets.families.record import Field, Head, Record, of_tasks, side_by_side

_LAYER = {
    **{f"attention/{x}": f"attention.{x}" for x in bert.PROJECTIONS},
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
        "embedding_size": "embedding_dim",
        "num_hidden_groups": "num_groups",
        _INNER: "num_inner_layers",
    },
    fields=(Field("num_layers", _read_depth, _write_passes),),
    allowed=bert.ALLOWED,
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
    **{f"attention/{x}": f"attention_1.self.{x}" for x in bert.PROJECTIONS},
    "attention/output": "attention_1.output.dense",
    "attention_norm": "LayerNorm",
    "feed_forward/intermediate": "ffn_1.intermediate.dense",
    "feed_forward/output": "ffn_1.intermediate.output.dense",
    "feed_forward_norm": "LayerNorm_1",
}
TF1 = bert.TF1._replace(
    backbone=HUGGING_FACE.backbone,
    config=HUGGING_FACE.config,
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


# The released presets repeat one layer. KerasHub numbers several in another way.
_HUB_ONE = {"num_groups": "num_groups", "num_inner_repetitions": "num_inner_layers"}
KERAS_HUB = bert.KERAS_HUB._replace(
    backbone=HUGGING_FACE.backbone,
    names={"AlbertBackbone": "Albert"},
    config=bert.HUB_SIZES | {name: name for name in ("embedding_dim", "num_segments")},
    fixed={**bert.HUB_FIXED, **dict.fromkeys(_HUB_ONE.values(), 1)},
    allowed=dict.fromkeys(_HUB_ONE, (1,)),
    rows=(
        *bert.HUB_EMBEDDINGS,
        ("embeddings/projection", "layers/dense", "dense"),
        *bert.hub_block_rows("encoder/group_0_layer_0", "transformer_encoder"),
        ("pooler/dense", "layers/dense_1", "dense"),
    ),
    counts={},
    heads=of_tasks(
        masked_tokens=bert.hub_masked_lm("gelu_tanh"),
        sequence=bert.hub_text_classifier(bert.HUB_POOLED, bert.POOLER),
    ),
    tokenizers={"Albert": "Unigram"},
)
