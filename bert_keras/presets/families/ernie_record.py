"""ERNIE in Hugging Face's checkpoints.

With `use_task_id`, an ERNIE is a BERT that adds one more embedding, that of the task. transformers
takes task 0 by default. This package always does: it adds the vector of task 0 to that of each
segment, and drops the other tasks. The result is a `BertBackbone`, which is exported as a BERT with
the same outputs.

Reference: https://github.com/huggingface/transformers, `models/ernie`.
"""

from bert_keras.presets.families import bert_record as bert
from bert_keras.presets.families.record import Tables

_TASKS = "embeddings.task_type_embeddings.weight"
_SEGMENTS = "embeddings.token_type_embeddings.weight"


def _with_task(tensors, backbone, config):
    """Adds the vector of task 0 to each segment, unless the config turns tasks off."""
    if _TASKS not in tensors or _SEGMENTS not in tensors:
        return tensors
    segments = tensors[_SEGMENTS] + bool(config.get("use_task_id")) * tensors[_TASKS][:1]
    return tensors.without([_TASKS]).updated({_SEGMENTS: segments})


HUGGING_FACE = bert.HUGGING_FACE._replace(
    names={"ernie": "Ernie"},
    prefix="ernie.",
    tables=Tables(_with_task),
)
