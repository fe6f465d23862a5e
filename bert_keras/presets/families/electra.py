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
        "MaskedLM": Head(
            (
                ("head/dense", "generator_predictions.dense", "dense"),
                ("head/layer_norm", "generator_predictions.LayerNorm", "norm"),
                ("head", "generator_lm_head", "bias"),
            ),
            "ForMaskedLM",
            {"activation": "gelu"},
            tied={"generator_lm_head.weight": "embeddings.word_embeddings.weight"},
        ),
        "MultipleChoice": Head(
            (
                ("head/hidden", "sequence_summary.summary", "dense"),
                ("head/dense", "classifier", "dense"),
            ),
            "ForMultipleChoice",
            {**_OPTIONS, "dropout": 0.1},
            ("dropout",),
            "summary_last_dropout",
        ),
        "ReplacedTokenDetector": Head(
            (
                ("head/hidden", "discriminator_predictions.dense", "dense"),
                ("head/dense", "discriminator_predictions.dense_prediction", "dense"),
            ),
            "ForPreTraining",
        ),
        "QuestionAnswering": bert.QUESTION_ANSWERING,
        "TextClassifier": _TEXT_CLASSIFIER._replace(options={**_OPTIONS, "dropout_first": True}),
        "TokenClassifier": bert.TOKEN_CLASSIFIER,
    },
)
