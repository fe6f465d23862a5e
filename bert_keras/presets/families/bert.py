"""BERT in Hugging Face's checkpoints, in Google's TensorFlow 1 checkpoints, and in KerasHub's.

References: https://github.com/huggingface/transformers, `models/bert`;
https://github.com/google-research/bert, `modeling.py` and `run_*.py`;
https://github.com/keras-team/keras-hub, `models/bert`.
"""

from bert_keras.presets.families.record import Head, Record, side_by_side

BACKBONE = "bert_keras>BertBackbone"
SIZES = {
    "vocab_size": "vocabulary_size",
    "num_hidden_layers": "num_layers",
    "num_attention_heads": "num_heads",
    "hidden_size": "hidden_dim",
    "intermediate_size": "intermediate_dim",
    "hidden_dropout_prob": "dropout",
    "attention_probs_dropout_prob": "attention_dropout",
    "initializer_range": "initializer_range",
}
TABLES = {"max_position_embeddings": "max_sequence_length", "type_vocab_size": "num_segments"}
# The first of several names for one activation is the one that is written.
ACTIVATIONS = {
    "gelu": "gelu",
    "gelu_pytorch_tanh": "gelu_tanh",
    "gelu_new": "gelu_tanh",
    "gelu_fast": "gelu_tanh",
    "relu": "relu",
    "silu": "silu",
    "swish": "silu",
    "tanh": "tanh",
}
ALLOWED = {"position_embedding_type": ("absolute",), "add_cross_attention": (False, None)}


def block_rows(theirs, parts):
    """Returns the rows of every encoder block, of a dict, our part -> theirs."""
    kinds = {part: "norm" if part.endswith("norm") else "dense" for part in parts}
    return tuple(
        (f"encoder/layer_{{i}}/{part}", f"{theirs}.{name}", kinds[part])
        for part, name in parts.items()
    )


ROWS = (
    ("embeddings/token_embedding", "embeddings.word_embeddings", "embedding"),
    ("embeddings/position_embedding", "embeddings.position_embeddings", "embedding"),
    ("embeddings/segment_embedding", "embeddings.token_type_embeddings", "embedding"),
    ("embeddings/layer_norm", "embeddings.LayerNorm", "norm"),
    *block_rows(
        "encoder.layer.{i}",
        {
            "attention/query": "attention.self.query",
            "attention/key": "attention.self.key",
            "attention/value": "attention.self.value",
            "attention/output": "attention.output.dense",
            "attention_norm": "attention.output.LayerNorm",
            "feed_forward/intermediate": "intermediate.dense",
            "feed_forward/output": "output.dense",
            "feed_forward_norm": "output.LayerNorm",
        },
    ),
    ("pooler/dense", "pooler.dense", "dense"),
)


def masked_lm(dense, norm, bias, has_decoder=True, **options):
    """Returns the head of masked tokens, by what the tensors of its parts are called.

    Args:
        dense, norm, bias: str, the layer before the decoder, its norm, and the place of the bias.
        has_decoder: bool, whether the copies of table and bias that files may hold are those of
            `{bias}.decoder`, instead of the table's alone in the place of the bias.
        **options: see `Head`.
    """
    copy = f"{bias}.decoder" if has_decoder else bias
    tied = {f"{copy}.weight": "embeddings.word_embeddings.weight"}
    if has_decoder:
        tied[f"{copy}.bias"] = f"{bias}.bias"
    rows = (("head/dense", dense, "dense"), ("head/layer_norm", norm, "norm"))
    return Head((*rows, ("head", bias, "bias")), "ForMaskedLM", options, tied=tied)


def hidden_and_dense(hidden, dense):
    """Returns the rows of a head with a hidden layer, by the names of its two layers."""
    return (("head/hidden", hidden, "dense"), ("head/dense", dense, "dense"))


CLASSIFIER = (("head/dense", "classifier", "dense"),)
POOLER = {"pooling": "pooler"}
CLASSES = ("num_classes", "label_names", "dropout")
DROPOUT = "classifier_dropout"
# The heads that RoBERTa has too.
TOKEN_CLASSIFIER = Head(
    CLASSIFIER,
    "ForTokenClassification",
    says=CLASSES,
    dropout=DROPOUT,
    parts=("head/dense/", "head/crf/"),
)
QUESTION_ANSWERING = Head((("head/dense", "qa_outputs", "dense"),), "ForQuestionAnswering")
MULTIPLE_CHOICE = Head(CLASSIFIER, "ForMultipleChoice", POOLER, ("dropout",), DROPOUT)
TEXT_CLASSIFIER = Head(
    CLASSIFIER, "ForSequenceClassification", POOLER, (*CLASSES, "problem_type"), DROPOUT
)

_MASKED_LM = masked_lm(
    "cls.predictions.transform.dense", "cls.predictions.transform.LayerNorm", "cls.predictions"
)
_NEXT_SENTENCE = Head(
    (("head/dense", "cls.seq_relationship", "dense"),), "ForNextSentencePrediction"
)
HUGGING_FACE = Record(
    backbone=BACKBONE,
    names={"bert": "Bert"},
    config={**SIZES, **TABLES, "layer_norm_eps": "layer_norm_epsilon", "is_decoder": "causal"},
    activation=("hidden_act", ACTIVATIONS),
    allowed=ALLOWED,
    rows=ROWS,
    prefix="bert.",
    heads={
        "MaskedLM": _MASKED_LM,
        "MultipleChoice": MULTIPLE_CHOICE,
        "NextSentencePrediction": _NEXT_SENTENCE,
        "Pretraining": side_by_side(
            "ForPreTraining", masked_lm=_MASKED_LM, next_sentence=_NEXT_SENTENCE
        ),
        "QuestionAnswering": QUESTION_ANSWERING,
        "TextClassifier": TEXT_CLASSIFIER,
        "TokenClassifier": TOKEN_CLASSIFIER,
    },
)


def _scopes(rows, prefix=""):
    """Returns rows with the names of TensorFlow's scopes."""
    return tuple(
        (ours, prefix + theirs.replace("layer.{i}", "layer_{i}").replace(".", "/"), kind)
        for ours, theirs, kind in rows
    )


_MASKED_LM_TF1 = Head(_scopes(_MASKED_LM.rows))
# The heads of Google's scripts that are no layers have kernels `(output, input)`.
_NEXT_SENTENCE_TF1 = Head((("head/dense", "cls/seq_relationship/output", "by_hand"),))
TF1 = Record(
    backbone=BACKBONE,
    names={},
    config={**SIZES, **TABLES},
    # "gelu" is the approximation, as in `modeling.gelu`; Hugging Face's is exact.
    activation=("hidden_act", {"gelu": "gelu_tanh"} | {n: n for n in ("relu", "tanh", "linear")}),
    rows=_scopes(ROWS, "bert/"),
    heads={
        "QuestionAnswering": Head((("head/dense", "cls/squad/output", "by_hand"),)),
        "TextClassifier": Head(
            (("head/dense", "output", "by_hand"),), "", POOLER, ("num_classes", "problem_type")
        ),
        "Pretraining": side_by_side(masked_lm=_MASKED_LM_TF1, next_sentence=_NEXT_SENTENCE_TF1),
        "MaskedLM": _MASKED_LM_TF1,
        "NextSentencePrediction": _NEXT_SENTENCE_TF1,
    },
)

_HUB_ROWS = (
    ("attention/query", "self_attention_layer/query_dense", "split_into_heads"),
    ("attention/key", "self_attention_layer/key_dense", "split_into_heads"),
    ("attention/value", "self_attention_layer/value_dense", "split_into_heads"),
    ("attention/output", "self_attention_layer/output_dense", "join_heads"),
    ("attention_norm", "self_attention_layer_norm", "norm"),
    ("feed_forward/intermediate", "feedforward_intermediate_dense", "dense"),
    ("feed_forward/output", "feedforward_output_dense", "dense"),
    ("feed_forward_norm", "feedforward_layer_norm", "norm"),
)
_HUB_BLOCK = "layers/transformer_encoder"
_HUB_CONFIG = (*list(SIZES.values())[:6], *TABLES.values())
KERAS_HUB = Record(
    backbone=BACKBONE,
    names={"BertBackbone": "Bert"},
    config=dict(zip(_HUB_CONFIG, _HUB_CONFIG, strict=True)),
    activation=None,
    fixed={"activation": "gelu_tanh", "layer_norm_epsilon": 1e-12},
    rows=(
        ("embeddings/token_embedding", "layers/reversible_embedding", "embedding"),
        ("embeddings/position_embedding", "layers/position_embedding", "embedding"),
        ("embeddings/segment_embedding", "layers/embedding", "embedding"),
        ("embeddings/layer_norm", "layers/layer_normalization", "norm"),
        ("pooler/dense", "layers/dense", "dense"),
        # The first layer has no number, the second the number 1.
        *((f"encoder/layer_0/{a}", f"{_HUB_BLOCK}/{b}", c) for a, b, c in _HUB_ROWS),
        *((f"encoder/layer_{{i}}/{a}", f"{_HUB_BLOCK}_{{i}}/{b}", c, 1) for a, b, c in _HUB_ROWS),
    ),
    optional=(),
    # Left out: `BertMaskedLM`, whose head has the exact GELU on an encoder with the approximate
    # one, where ours, as BERT's, has the encoder's.
    heads={
        "TextClassifier": Head(
            (("head/dense", "layers/dense", "dense"),),
            ("BertTextClassifier", "BertClassifier"),
            POOLER,
            ("num_classes", "problem_type", "dropout"),
            "dropout",
        )
    },
)
