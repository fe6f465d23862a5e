"""BERT's variables here and in KerasHub's weights files. See `name_map` for how to read it.

Their names are paths inside an HDF5 file, made of the layers' classes; leading underscores, which
differ between Keras's versions, are left out. Queries, keys and values have an axis for the heads
and one for each head's width, where we have one for both.
"""

KINDS = {
    "embedding": [("embeddings", "0", None)],
    "norm": [("gamma", "0", None), ("beta", "1", None)],
    "dense": [("kernel", "0", None), ("bias", "1", None)],
    "split_into_heads": [("kernel", "0", "merge_last"), ("bias", "1", "merge_last")],
    "join_heads": [("kernel", "0", "merge_first"), ("bias", "1", None)],
}
# Between their layer's path and the number of its variable.
SEPARATOR = "/vars/"

BACKBONE = [
    ("embeddings/token_embedding", "layers/reversible_embedding", "embedding"),
    ("embeddings/position_embedding", "layers/position_embedding", "embedding"),
    ("embeddings/segment_embedding", "layers/embedding", "embedding"),
    ("embeddings/layer_norm", "layers/layer_normalization", "norm"),
    ("pooler/dense", "layers/dense", "dense"),
]
# In each encoder layer, see `backbone_rows`.
LAYER = [
    ("attention/query", "self_attention_layer/query_dense", "split_into_heads"),
    ("attention/key", "self_attention_layer/key_dense", "split_into_heads"),
    ("attention/value", "self_attention_layer/value_dense", "split_into_heads"),
    ("attention/output", "self_attention_layer/output_dense", "join_heads"),
    ("attention_norm", "self_attention_layer_norm", "norm"),
    ("feed_forward/intermediate", "feedforward_intermediate_dense", "dense"),
    ("feed_forward/output", "feedforward_output_dense", "dense"),
    ("feed_forward_norm", "feedforward_layer_norm", "norm"),
]


def backbone_rows(num_layers):
    """Returns the rows of a backbone: their first layer has no number, the second the number 1."""
    rows = list(BACKBONE)
    for i in range(num_layers):
        theirs = "layers/transformer_encoder" + (f"_{i}" if i else "")
        rows += [(f"encoder/layer_{i}/{a}", f"{theirs}/{b}", kind) for a, b, kind in LAYER]
    return rows


# Our task's class name -> the class names of theirs whose head it takes, and the rows of the file
# `task.weights.h5`. Left out: `BertMaskedLM`, whose head has the exact GELU on an encoder with the
# approximate one, where ours, as BERT's, has the encoder's.
TASKS = {"TextClassifier": ("BertTextClassifier", "BertClassifier")}
HEADS = {"TextClassifier": [("head/dense", "layers/dense", "dense")]}

# What training leaves in a file, skipped on purpose.
NOT_WEIGHTS = ("optimizer/",)
