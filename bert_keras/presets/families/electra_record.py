"""ELECTRA in Hugging Face's checkpoints of discriminators and generators, and in KerasHub's.

References: https://github.com/huggingface/transformers, `models/electra`;
https://github.com/keras-team/keras-hub, `models/electra`.
"""

import numpy as np

from bert_keras.presets.families import bert_record as bert
from bert_keras.presets.families import roberta_record as roberta
from bert_keras.presets.families.record import Head, Record, Tables, of_tasks

_OPTIONS = {"pooling": "cls", "hidden_activation": "gelu"}
_MLM, _RTD = "generator_predictions", "discriminator_predictions"

HUGGING_FACE = Record(
    backbone="bert_keras>ElectraBackbone",
    names={"electra": "Electra"},
    config={**bert.SIZES, **bert.TABLE_SIZES, "embedding_size": "embedding_dim"},
    allowed={
        **bert.ALLOWED,
        # For multiple choice.
        "summary_type": ("first",),
        "summary_use_proj": (True,),
        "summary_activation": ("gelu",),
    },
    defaults={"embedding_size": 128},
    rows=(
        *(row for row in bert.ROWS if not row[0].startswith("pooler")),
        ("embeddings/projection", "embeddings_project", "dense"),
    ),
    prefix="electra.",
    heads=of_tasks(
        masked_tokens=bert.masked_lm(
            f"{_MLM}.dense", f"{_MLM}.LayerNorm", "generator_lm_head", False, activation="gelu"
        ),
        choice=Head(
            bert.hidden_and_dense("sequence_summary.summary", "classifier"),
            "ForMultipleChoice",
            {**_OPTIONS, "dropout": 0.1},
            "summary_last_dropout",
        ),
        replaced_token=Head(
            bert.hidden_and_dense(f"{_RTD}.dense", f"{_RTD}.dense_prediction"), "ForPreTraining"
        ),
        span=bert.QUESTION_ANSWERING,
        sequence=roberta.TEXT_CLASSIFIER._replace(options={**_OPTIONS, "dropout_first": True}),
        token=bert.TOKEN_CLASSIFIER,
    ),
)


def _pooler(backbone):
    """Returns zeros as the tensors of KerasHub's pooler. ELECTRA's paper has no pooler."""
    width = backbone.hidden_dim
    layer = f"layers/dense{'' if backbone.embedding_dim == width else '_1'}"
    sizes = {f"{layer}/vars/0": (width, width), f"{layer}/vars/1": (width,)}
    return {name: np.zeros(size, "float32") for name, size in sizes.items()}


KERAS_HUB = bert.KERAS_HUB._replace(
    backbone=HUGGING_FACE.backbone,
    names={"ElectraBackbone": "Electra"},
    config={
        **{theirs: ours for theirs, ours in bert.HUB_SIZES.items() if ours != "vocabulary_size"},
        "vocab_size": "vocabulary_size",
        "embedding_dim": "embedding_dim",
        "num_segments": "num_segments",
    },
    fixed={"activation": "gelu_tanh", "layer_norm_epsilon": 1e-12},
    rows=(
        *bert.HUB_EMBEDDINGS,
        ("embeddings/projection", "layers/dense", "dense"),
        *bert.HUB_BLOCKS,
    ),
    heads={},
    tables=Tables(
        lambda tensors, backbone, config: tensors.without(_pooler(backbone)),
        lambda arrays, backbone: arrays | _pooler(backbone),
    ),
    tokenizers={"Electra": "WordPiece"},
)
