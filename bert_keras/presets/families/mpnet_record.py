"""MPNet in Hugging Face's checkpoints.

In their code, the 32 buckets of distances and the padding id 1 are constants. A config with other
values is an error.

Reference: https://github.com/huggingface/transformers, `models/mpnet`.
"""

from bert_keras.presets.families import bert_record as bert
from bert_keras.presets.families import roberta_record as roberta
from bert_keras.presets.families.record import Field, Record

_POSITIONS = "max_position_embeddings"
_LAYER = {
    **{f"attention/{x}": f"attention.attn.{x[0]}" for x in bert.PROJECTIONS},
    "attention/output": "attention.attn.o",
    "attention_norm": "attention.LayerNorm",
    "feed_forward/intermediate": "intermediate.dense",
    "feed_forward/output": "output.dense",
    "feed_forward_norm": "output.LayerNorm",
}

HUGGING_FACE = Record(
    backbone="bert_keras>MPNetBackbone",
    names={"mpnet": "MPNet"},
    config=bert.SIZES,
    fields=(
        Field(
            "max_sequence_length",
            lambda config: config[_POSITIONS] - 2,
            lambda sizes: {_POSITIONS: sizes["max_sequence_length"] + 2},
        ),
    ),
    allowed={
        **bert.ALLOWED,
        "pad_token_id": (1,),
        "relative_attention_num_buckets": (32,),
        "type_vocab_size": (1, 0),
    },
    defaults={"layer_norm_eps": 1e-12, _POSITIONS: 512},
    rows=(
        *(row for row in bert.ROWS[:4] if "segment" not in row[0]),
        ("encoder/attention_bias/table", "encoder.relative_attention_bias", "embedding"),
        *bert.block_rows("encoder.layer.{i}", _LAYER),
        bert.ROWS[-1],
    ),
    prefix="mpnet.",
    heads=roberta.HUGGING_FACE.heads,
)
