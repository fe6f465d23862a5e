"""ELECTRA in Hugging Face's checkpoints, of discriminators and of generators.

Reference: https://github.com/huggingface/transformers, `models/electra`.
"""

from bert_keras.presets.families import bert, roberta
from bert_keras.presets.families.record import Head, Record

_OPTIONS = {"pooling": "cls", "hidden_activation": "gelu"}
_TEXT_CLASSIFIER = roberta.HUGGING_FACE.heads["TextClassifier"]

HUGGING_FACE = Record(
    backbone="bert_keras>ElectraBackbone",
    names={"electra": "Electra"},
    config={
        **bert.SIZES,
        **bert.TABLES,
        "embedding_size": "embedding_dim",
        "layer_norm_eps": "layer_norm_epsilon",
    },
    activation=("hidden_act", bert.ACTIVATIONS),
    allowed={
        **bert.ALLOWED,
        "is_decoder": (False,),
        # Of multiple choice.
        "summary_type": ("first",),
        "summary_use_proj": (True,),
        "summary_activation": ("gelu",),
    },
    defaults={"embedding_size": 128},
    rows=(
        *(row for row in bert.ROWS if not row[0].startswith("pooler")),
        ("embeddings/projection", "embeddings_project", "dense"),
    ),
    optional=(),
    prefix="electra.",
    heads={
        "MaskedLM": bert.masked_lm(
            "generator_predictions.dense",
            "generator_predictions.LayerNorm",
            "generator_lm_head",
            has_decoder=False,
            activation="gelu",
        ),
        "MultipleChoice": Head(
            bert.hidden_and_dense("sequence_summary.summary", "classifier"),
            "ForMultipleChoice",
            {**_OPTIONS, "dropout": 0.1},
            ("dropout",),
            "summary_last_dropout",
        ),
        "ReplacedTokenDetector": Head(
            bert.hidden_and_dense(
                "discriminator_predictions.dense", "discriminator_predictions.dense_prediction"
            ),
            "ForPreTraining",
        ),
        "QuestionAnswering": bert.QUESTION_ANSWERING,
        "TextClassifier": _TEXT_CLASSIFIER._replace(options={**_OPTIONS, "dropout_first": True}),
        "TokenClassifier": bert.TOKEN_CLASSIFIER,
    },
)
