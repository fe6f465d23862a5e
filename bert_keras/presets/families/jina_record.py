"""The encoder of jina-embeddings-v3 in Hugging Face's checkpoints.

Reference: https://github.com/huggingface/transformers, `models/jina_embeddings_v3`.
"""

from bert_keras.presets.families import nomic_bert_record as nomic
from bert_keras.presets.families import roberta_record as roberta
from bert_keras.presets.families.record import TASKS, Field

_DEFAULTS = {"attention_probs_dropout_prob": 0.1, "hidden_dropout_prob": 0.1, "type_vocab_size": 1}
_DEFAULTS |= {"layer_norm_eps": 1e-5, "max_position_embeddings": 8194, "rope_theta": 20_000.0}


HUGGING_FACE = nomic.HUGGING_FACE._replace(
    names={"jina_embeddings_v3": "JinaEmbeddingsV3"},
    fixed={"has_biases": True, "is_gated": False},
    fields=(*nomic.FIELDS, Field("has_pooler", lambda config: True)),
    defaults=_DEFAULTS,
    rows=(*nomic.rows(("fc1", "fc2")), roberta.HUGGING_FACE.rows[-1]),
    prefix="roberta.",
    heads={k: x for k, x in roberta.HUGGING_FACE.heads.items() if k != TASKS["choice"]},
    tables=nomic.HUGGING_FACE.tables,
    native=dict,
    spellings={
        **nomic.SPELLINGS,
        r"\.mixer\.Wqkv\.": ".self_attn.qkv_proj.",
        r"\.mixer\.out_proj\.": ".self_attn.o_proj.",
    },
)
