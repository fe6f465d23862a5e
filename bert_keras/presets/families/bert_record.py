"""BERT in Hugging Face's checkpoints, in Google's TensorFlow 1 checkpoints, and in KerasHub's.

References: https://github.com/huggingface/transformers, `models/bert`;
https://github.com/google-research/bert, `modeling.py` and `run_*.py`;
https://github.com/keras-team/keras-hub, `models/bert`.
"""

from bert_keras.presets.families.record import TASKS, Field, Head, Record, of_tasks, side_by_side

BACKBONE = "bert_keras>BertBackbone"
# The layers that attention begins with.
PROJECTIONS = ("query", "key", "value")
SIZES = {
    "vocab_size": "vocabulary_size",
    "num_hidden_layers": "num_layers",
    "num_attention_heads": "num_heads",
    "hidden_size": "hidden_dim",
    "intermediate_size": "intermediate_dim",
    "hidden_dropout_prob": "dropout",
    "attention_probs_dropout_prob": "attention_dropout",
    "initializer_range": "initializer_range",
    "layer_norm_eps": "layer_norm_epsilon",
}
TABLE_SIZES = {"max_position_embeddings": "max_sequence_length", "type_vocab_size": "num_segments"}
_ALLOWED = {"position_embedding_type": ("absolute",), "add_cross_attention": (False, None)}
# Of families that are encoders only.
ALLOWED = {**_ALLOWED, "is_decoder": (False,)}


def block_rows(theirs, parts):
    """Returns the rows of all encoder blocks from a dict, our part -> theirs."""
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
            **{f"attention/{x}": f"attention.self.{x}" for x in PROJECTIONS},
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
    """Returns the head for masked tokens with the given names of its tensors.

    Args:
        dense, norm, bias: str, the layer before the decoder, its norm, and the layer of the bias.
        has_decoder: bool, whether files may hold copies of the token table and the bias under
            `{bias}.decoder`. If not, they may hold a copy of the table as `{bias}.weight`.
        **options: see `Head`.
    """
    copy = f"{bias}.decoder" if has_decoder else bias
    tied = {f"{copy}.weight": "embeddings.word_embeddings.weight"}
    if has_decoder:
        tied[f"{copy}.bias"] = f"{bias}.bias"
    rows = (("head/dense", dense, "dense"), ("head/layer_norm", norm, "norm"))
    return Head((*rows, ("head", bias, "bias")), "ForMaskedLM", options, tied=tied)


def hidden_and_dense(hidden, dense):
    """Returns the rows of a head with a hidden layer from the names of its two layers."""
    return (("head/hidden", hidden, "dense"), ("head/dense", dense, "dense"))


CLASSIFIER = (("head/dense", "classifier", "dense"),)
POOLER = {"pooling": "pooler"}
DROPOUT = "classifier_dropout"
# Heads that RoBERTa has too.
TOKEN_CLASSIFIER = Head(
    CLASSIFIER,
    "ForTokenClassification",
    dropout=DROPOUT,
    parts=("head/dense/", "head/crf/"),
)
QUESTION_ANSWERING = Head((("head/dense", "qa_outputs", "dense"),), "ForQuestionAnswering")
MULTIPLE_CHOICE = Head(CLASSIFIER, "ForMultipleChoice", POOLER, DROPOUT)
TEXT_CLASSIFIER = Head(CLASSIFIER, "ForSequenceClassification", POOLER, DROPOUT)

MASKED_LM = masked_lm(
    "cls.predictions.transform.dense", "cls.predictions.transform.LayerNorm", "cls.predictions"
)
_NEXT_SENTENCE = Head(
    (("head/dense", "cls.seq_relationship", "dense"),), "ForNextSentencePrediction"
)
HUGGING_FACE = Record(
    backbone=BACKBONE,
    names={"bert": "Bert"},
    config={**SIZES, **TABLE_SIZES, "is_decoder": "causal"},
    allowed=_ALLOWED,
    rows=ROWS,
    prefix="bert.",
    heads=of_tasks(
        masked_tokens=MASKED_LM,
        token_vectors=Head(
            (("head/dense", "linear", "kernel"),),
            "HF_ColBERT",
            changes_the_encoder=True,
        ),
        choice=MULTIPLE_CHOICE,
        next_sentence=_NEXT_SENTENCE,
        pretraining=side_by_side(
            "ForPreTraining", masked_lm=MASKED_LM, next_sentence=_NEXT_SENTENCE
        ),
        span=QUESTION_ANSWERING,
        sequence=TEXT_CLASSIFIER,
        token=TOKEN_CLASSIFIER,
    ),
)


def scopes(rows, prefix=""):
    """Returns rows with their names written as TensorFlow's scopes."""
    return tuple(
        (ours, prefix + theirs.replace("layer.{i}", "layer_{i}").replace(".", "/"), kind)
        for ours, theirs, kind in rows
    )


_MASKED_LM_TF1 = Head(scopes(MASKED_LM.rows))
# Heads that are not layers in Google's scripts have kernels `(output, input)`.
_NEXT_SENTENCE_TF1 = Head((("head/dense", "cls/seq_relationship/output", "by_hand"),))
TF1 = Record(
    backbone=BACKBONE,
    names={},
    config=SIZES | TABLE_SIZES,
    # "gelu" is the tanh approximation, as in `modeling.gelu`; Hugging Face's is the exact one.
    activations={"gelu": "gelu_tanh"} | {name: name for name in ("relu", "tanh", "linear")},
    rows=scopes(ROWS, "bert/"),
    heads=of_tasks(
        span=Head((("head/dense", "cls/squad/output", "by_hand"),)),
        sequence=Head((("head/dense", "output", "by_hand"),), "", POOLER),
        pretraining=side_by_side(masked_lm=_MASKED_LM_TF1, next_sentence=_NEXT_SENTENCE_TF1),
        masked_tokens=_MASKED_LM_TF1,
        next_sentence=_NEXT_SENTENCE_TF1,
    ),
)

# KerasHub

_HUB_LAYER = "_self_attention_layer"
_HUB_ROWS = (
    *((f"attention/{x}", f"{_HUB_LAYER}/{x}_dense", "split_into_heads") for x in PROJECTIONS),
    ("attention/output", f"{_HUB_LAYER}/output_dense", "join_heads"),
    ("attention_norm", "_self_attention_layer_norm", "norm"),
    ("feed_forward/intermediate", "_feedforward_intermediate_dense", "dense"),
    ("feed_forward/output", "_feedforward_output_dense", "dense"),
    ("feed_forward_norm", "_feedforward_layer_norm", "norm"),
)


def hub_block_rows(ours, theirs):
    """Returns the rows of all encoder blocks, from the beginnings of their names."""
    return tuple((f"{ours}/{a}", f"layers/{theirs}/{b}", kind) for a, b, kind in _HUB_ROWS)


HUB_BLOCKS = hub_block_rows("encoder/layer_{i}", "transformer_encoder_{i}")
HUB_EMBEDDINGS = (
    ("embeddings/token_embedding", "layers/reversible_embedding", "embedding"),
    ("embeddings/position_embedding", "layers/position_embedding", "embedding"),
    ("embeddings/segment_embedding", "layers/embedding", "embedding"),
    ("embeddings/layer_norm", "layers/layer_normalization", "norm"),
)
# In families without segments both tables are in one layer.
_TABLES = "layers/token_and_position_embedding"
HUB_TOKENS_AND_POSITIONS = (
    ("embeddings/token_embedding", f"{_TABLES}/token_embedding", "embedding"),
    ("embeddings/position_embedding", f"{_TABLES}/position_embedding", "embedding"),
    HUB_EMBEDDINGS[-1],
)


def _check_one_rate(arguments):
    """Returns no key of the config: KerasHub has none for the attention's own dropout."""
    dropout, of_attention = arguments["dropout"], arguments["attention_dropout"]
    if dropout != of_attention:
        raise ValueError(
            f"KerasHub has one rate of dropout for all. Received: dropout={dropout}, "
            f"attention_dropout={of_attention}. Save the model, load it with both equal, "
            f"backbone={{'attention_dropout': {dropout}}}, and export that."
        )
    return {}


HUB_FIXED = {"activation": "gelu_tanh", "layer_norm_epsilon": 1e-12, "has_pooler": True}
HUB_SIZES = {name: name for name in (*list(SIZES.values())[:6], "max_sequence_length")}


def hub_masked_lm(activation):
    """Returns the head for masked tokens, whose norm has an epsilon of its own.

    Args:
        activation: str, that of the head, which may differ from the encoder's.
    """
    layer = "layers/masked_lm_head"
    rows = (
        ("head/dense", f"{layer}/_intermediate_dense", "dense"),
        ("head/layer_norm", f"{layer}/_intermediate_layer_norm", "norm"),
        ("head", layer, "bias"),
    )
    options = {"activation": activation, "layer_norm_epsilon": 1e-5}
    return Head(rows, (TASKS["masked_tokens"],), options)


def hub_text_classifier(rows, options):
    """Returns the head of a classifier from the rows of its layers and our options."""
    return Head(rows, (TASKS["sequence"], "Classifier"), options, "dropout")


HUB_POOLED = (("head/dense", "layers/dense", "dense"),)
HUB_HIDDEN = hidden_and_dense("layers/dense", "layers/dense_1")
KERAS_HUB = Record(
    backbone=BACKBONE,
    names={"BertBackbone": "Bert"},
    config={**HUB_SIZES, "num_segments": "num_segments"},
    activation_key=None,
    fields=(Field("attention_dropout", lambda config: None, _check_one_rate),),
    fixed={**HUB_FIXED, "causal": False},
    rows=(*HUB_EMBEDDINGS, ("pooler/dense", "layers/dense", "dense"), *HUB_BLOCKS),
    heads=of_tasks(
        masked_tokens=hub_masked_lm("gelu"),
        sequence=hub_text_classifier(HUB_POOLED, POOLER),
        embedding=Head((), ("TextEmbedder",), pooling="pooling_mode"),
    ),
    tokenizers={"Bert": "WordPiece"},
)
