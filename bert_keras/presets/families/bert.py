"""BERT in Hugging Face's checkpoints, in Google's TensorFlow 1 checkpoints, and in KerasHub's.

References: https://github.com/huggingface/transformers, `models/bert`;
https://github.com/google-research/bert, `modeling.py` and `run_*.py`;
https://github.com/keras-team/keras-hub, `models/bert`.
"""

from bert_keras.presets.families.record import Head, Record

BACKBONE = "bert_keras>BertBackbone"
CONFIG = {
    "vocab_size": "vocabulary_size",
    "num_hidden_layers": "num_layers",
    "num_attention_heads": "num_heads",
    "hidden_size": "hidden_dim",
    "intermediate_size": "intermediate_dim",
    "hidden_dropout_prob": "dropout",
    "attention_probs_dropout_prob": "attention_dropout",
    "layer_norm_eps": "layer_norm_epsilon",
    "initializer_range": "initializer_range",
}
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

LAYER = {
    "attention/query": "attention.self.query",
    "attention/key": "attention.self.key",
    "attention/value": "attention.self.value",
    "attention/output": "attention.output.dense",
    "attention_norm": "attention.output.LayerNorm",
    "feed_forward/intermediate": "intermediate.dense",
    "feed_forward/output": "output.dense",
    "feed_forward_norm": "output.LayerNorm",
}


def block_rows(theirs, layer):
    """Returns the rows of every encoder block, of a dict, our part -> theirs."""
    return tuple(
        (
            f"encoder/layer_{{i}}/{part}",
            f"{theirs}.{name}",
            "norm" if part.endswith("norm") else "dense",
        )
        for part, name in layer.items()
    )


ROWS = (
    ("embeddings/token_embedding", "embeddings.word_embeddings", "embedding"),
    ("embeddings/position_embedding", "embeddings.position_embeddings", "embedding"),
    ("embeddings/segment_embedding", "embeddings.token_type_embeddings", "embedding"),
    ("embeddings/layer_norm", "embeddings.LayerNorm", "norm"),
    *block_rows("encoder.layer.{i}", LAYER),
    ("pooler/dense", "pooler.dense", "dense"),
)


def _masked_lm(layer):
    return (
        (f"{layer}/dense", "cls.predictions.transform.dense", "dense"),
        (f"{layer}/layer_norm", "cls.predictions.transform.LayerNorm", "norm"),
        (layer, "cls.predictions", "bias"),
    )


def _next_sentence(layer):
    return ((f"{layer}/dense", "cls.seq_relationship", "dense"),)


TIED = {
    "cls.predictions.decoder.weight": "embeddings.word_embeddings.weight",
    "cls.predictions.decoder.bias": "cls.predictions.bias",
}
CLASSIFIER = (("head/dense", "classifier", "dense"),)
PARTS = ("head/masked_lm/", "head/next_sentence/")
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

HUGGING_FACE = Record(
    backbone=BACKBONE,
    names={"bert": "Bert"},
    config={
        **CONFIG,
        "max_position_embeddings": "max_sequence_length",
        "type_vocab_size": "num_segments",
        "is_decoder": "causal",
    },
    activation=("hidden_act", ACTIVATIONS),
    allowed=ALLOWED,
    rows=ROWS,
    prefix="bert.",
    heads={
        "MaskedLM": Head(_masked_lm("head"), "ForMaskedLM", tied=TIED),
        "MultipleChoice": MULTIPLE_CHOICE,
        "NextSentencePrediction": Head(_next_sentence("head"), "ForNextSentencePrediction"),
        "Pretraining": Head(
            _masked_lm("head/masked_lm") + _next_sentence("head/next_sentence"),
            "ForPreTraining",
            tied=TIED,
            parts=PARTS,
        ),
        "QuestionAnswering": QUESTION_ANSWERING,
        "TextClassifier": Head(
            CLASSIFIER, "ForSequenceClassification", POOLER, (*CLASSES, "problem_type"), DROPOUT
        ),
        "TokenClassifier": TOKEN_CLASSIFIER,
    },
)


def _to_tf1(rows):
    """Returns rows with the names of TensorFlow's scopes."""
    return tuple(
        (ours, theirs.replace("layer.{i}", "layer_{i}").replace(".", "/"), kind)
        for ours, theirs, kind in rows
    )


def _masked_lm_tf1(layer):
    return (*_to_tf1(_masked_lm(layer)[:2]), (layer, "cls/predictions/output", "bias"))


def _by_hand(theirs, layer="head"):
    """The heads of Google's scripts that are no layers: their kernels are `(output, input)`."""
    return ((f"{layer}/dense", theirs, "by_hand"),)


TF1 = Record(
    backbone=BACKBONE,
    names={},
    config={
        theirs: ours
        for theirs, ours in HUGGING_FACE.config.items()
        if theirs not in ("layer_norm_eps", "is_decoder")
    },
    # The approximation, as in `modeling.gelu`, where Hugging Face's "gelu" is exact.
    activation=(
        "hidden_act",
        {"gelu": "gelu_tanh", "relu": "relu", "tanh": "tanh", "linear": "linear"},
    ),
    rows=tuple((ours, f"bert/{theirs}", kind) for ours, theirs, kind in _to_tf1(ROWS)),
    heads={
        "QuestionAnswering": Head(_by_hand("cls/squad/output")),
        "TextClassifier": Head(
            _by_hand("output"), options=POOLER, says=("num_classes", "problem_type")
        ),
        "Pretraining": Head(
            (
                *_masked_lm_tf1("head/masked_lm"),
                *_by_hand("cls/seq_relationship/output", "head/next_sentence"),
            ),
            parts=PARTS,
        ),
        "MaskedLM": Head(_masked_lm_tf1("head")),
        "NextSentencePrediction": Head(_by_hand("cls/seq_relationship/output")),
    },
)

_HUB_LAYER = (
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
KERAS_HUB = Record(
    backbone=BACKBONE,
    names={"BertBackbone": "Bert"},
    config={
        name: name
        for name in (*HUGGING_FACE.config.values(),)
        if name not in ("attention_dropout", "layer_norm_epsilon", "initializer_range", "causal")
    },
    activation=None,
    fixed={"activation": "gelu_tanh", "layer_norm_epsilon": 1e-12},
    rows=(
        ("embeddings/token_embedding", "layers/reversible_embedding", "embedding"),
        ("embeddings/position_embedding", "layers/position_embedding", "embedding"),
        ("embeddings/segment_embedding", "layers/embedding", "embedding"),
        ("embeddings/layer_norm", "layers/layer_normalization", "norm"),
        ("pooler/dense", "layers/dense", "dense"),
        # The first layer has no number, the second the number 1.
        *((f"encoder/layer_0/{a}", f"{_HUB_BLOCK}/{b}", kind) for a, b, kind in _HUB_LAYER),
        *(
            (f"encoder/layer_{{i}}/{a}", f"{_HUB_BLOCK}_{{i}}/{b}", kind, 1)
            for a, b, kind in _HUB_LAYER
        ),
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
