"""GTE (gte-multilingual) in Hugging Face's checkpoints, also in those of `model_type` "new".

Reference: https://github.com/huggingface/transformers, `models/gte`.
"""

import numpy as np

from bert_keras.presets.families import bert_record as bert
from bert_keras.presets.families import nomic_bert_record as nomic
from bert_keras.presets.families.record import Tables, of_tasks

_DEFAULTS = {"attention_probs_dropout_prob": 0.0, "hidden_dropout_prob": 0.1, "type_vocab_size": 1}
_DEFAULTS |= {"max_position_embeddings": 8192, "rope_theta": 160_000.0}
_ALLOWED = {
    "layer_norm_type": ("layer_norm",),
    "logn_attention_clip1": (False,),
    "logn_attention_scale": (False,),
    "position_embedding_type": ("rope",),
}


def _joined(tensors, backbone, config):
    """Joins tensors. Where the hub's file has gate and up joined, the gate comes second: swap."""
    joint, arrays = [name for name in tensors if ".up_gate_proj." in name], {}
    for name in joint:
        array = tensors[name]
        arrays[name.replace("up_gate", "gate_up")] = np.roll(array, len(array) // 2, axis=0)
    return nomic.joined(tensors.without(joint).updated(arrays), backbone, config)


HUGGING_FACE = nomic.HUGGING_FACE._replace(
    names={"gte": "Gte", "new": "New"},
    fixed={"has_biases": True, "is_gated": True, "has_pooler": False},
    defaults=_DEFAULTS,
    rows=nomic.rows(("gate_up_proj", "down_proj"), ("gate_up_proj",)),
    prefix="gte.",
    heads=of_tasks(
        masked_tokens=bert.masked_lm(
            *("lm_head.dense", "lm_head.layer_norm", "lm_head.decoder"),
            has_decoder=False,
            activation="gelu",
        ),
        sequence=nomic.pooled_classifier("gte."),
        token=bert.TOKEN_CLASSIFIER,
    ),
    tables=Tables(_joined, nomic.split, joins=True),
    native=lambda config: nomic.checked(config, _ALLOWED),
    spellings={
        **nomic.SPELLINGS,
        r"^new\.": "gte.",
        r"\.attention\.": ".self_attn.",
        r"^lm_head\.norm\.": "lm_head.layer_norm.",
    },
)
