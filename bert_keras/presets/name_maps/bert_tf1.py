"""BERT's variables here and in Google's TensorFlow 1 checkpoints.

See `name_map` for how to read it. Kernels are stored as they are here, `(input, output)`, except
those of the heads that Google's scripts write out by hand, `output_weights`: `(output, input)`.

Reference: https://github.com/google-research/bert, `modeling.py` and `run_*.py`.
"""

KINDS = {
    "table": [("embeddings", "", None)],
    "norm": [("gamma", "/gamma", None), ("beta", "/beta", None)],
    "dense": [("kernel", "/kernel", None), ("bias", "/bias", None)],
    "by_hand": [("kernel", "_weights", "transpose"), ("bias", "_bias", None)],
    "bias": [("bias", "_bias", None)],
}

_LAYER = "bert/encoder/layer_{i}"
BACKBONE = [
    ("embeddings/token_embedding", "bert/embeddings/word_embeddings", "table"),
    ("embeddings/position_embedding", "bert/embeddings/position_embeddings", "table"),
    ("embeddings/segment_embedding", "bert/embeddings/token_type_embeddings", "table"),
    ("embeddings/layer_norm", "bert/embeddings/LayerNorm", "norm"),
    ("encoder/layer_{i}/attention/query", f"{_LAYER}/attention/self/query", "dense"),
    ("encoder/layer_{i}/attention/key", f"{_LAYER}/attention/self/key", "dense"),
    ("encoder/layer_{i}/attention/value", f"{_LAYER}/attention/self/value", "dense"),
    ("encoder/layer_{i}/attention/output", f"{_LAYER}/attention/output/dense", "dense"),
    ("encoder/layer_{i}/attention_norm", f"{_LAYER}/attention/output/LayerNorm", "norm"),
    ("encoder/layer_{i}/feed_forward/intermediate", f"{_LAYER}/intermediate/dense", "dense"),
    ("encoder/layer_{i}/feed_forward/output", f"{_LAYER}/output/dense", "dense"),
    ("encoder/layer_{i}/feed_forward_norm", f"{_LAYER}/output/LayerNorm", "norm"),
    ("pooler/dense", "bert/pooler/dense", "dense"),
]

# Variables that a checkpoint may lack: they keep their initial values, with a warning.
OPTIONAL = ("pooler/",)


def _masked_lm(ours):
    return [
        (f"{ours}/dense", "cls/predictions/transform/dense", "dense"),
        (f"{ours}/layer_norm", "cls/predictions/transform/LayerNorm", "norm"),
        (ours, "cls/predictions/output", "bias"),
    ]


def _next_sentence(ours):
    return [(f"{ours}/dense", "cls/seq_relationship/output", "by_hand")]


# The heads of Google's scripts, the more particular first: a task by class name -> rows.
HEADS = {
    "QuestionAnswering": [("head/dense", "cls/squad/output", "by_hand")],
    "TextClassifier": [("head/dense", "output", "by_hand")],
    "Pretraining": _masked_lm("head/masked_lm") + _next_sentence("head/next_sentence"),
    "MaskedLM": _masked_lm("head"),
    "NextSentencePrediction": _next_sentence("head"),
}

# Parts of a head that a checkpoint may lack as a whole: our prefix -> theirs.
HEAD_PARTS = {"head/masked_lm/": "cls/predictions/", "head/next_sentence/": "cls/seq_relationship/"}

# Tensors without a place in a backbone: the heads.
HEAD_PREFIXES = ("cls/", "output_weights", "output_bias")

# What training leaves in a checkpoint, skipped on purpose: counters and the optimizers' slots, of
# Google's own Adam and of TensorFlow's.
NOT_WEIGHTS = ("global_step", "beta1_power", "beta2_power")
SLOT_ENDINGS = ("/adam_m", "/adam_v", "/Adam", "/Adam_1")
