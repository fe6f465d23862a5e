"""BERT's variables here and in Hugging Face's checkpoints. See `name_map` for how to read it."""

BACKBONE = [
    ("embeddings/token_embedding", "embeddings.word_embeddings", "embedding"),
    ("embeddings/position_embedding", "embeddings.position_embeddings", "embedding"),
    ("embeddings/segment_embedding", "embeddings.token_type_embeddings", "embedding"),
    ("embeddings/layer_norm", "embeddings.LayerNorm", "norm"),
    ("encoder/layer_{i}/attention/query", "encoder.layer.{i}.attention.self.query", "dense"),
    ("encoder/layer_{i}/attention/key", "encoder.layer.{i}.attention.self.key", "dense"),
    ("encoder/layer_{i}/attention/value", "encoder.layer.{i}.attention.self.value", "dense"),
    ("encoder/layer_{i}/attention/output", "encoder.layer.{i}.attention.output.dense", "dense"),
    ("encoder/layer_{i}/attention_norm", "encoder.layer.{i}.attention.output.LayerNorm", "norm"),
    (
        "encoder/layer_{i}/feed_forward/intermediate",
        "encoder.layer.{i}.intermediate.dense",
        "dense",
    ),
    ("encoder/layer_{i}/feed_forward/output", "encoder.layer.{i}.output.dense", "dense"),
    ("encoder/layer_{i}/feed_forward_norm", "encoder.layer.{i}.output.LayerNorm", "norm"),
    ("pooler/dense", "pooler.dense", "dense"),
]

# Variables that a checkpoint may lack: they keep their initial values, with a warning.
OPTIONAL = ("pooler/",)

# The tasks' own heads: task class -> rows, and the architecture's name on the other side.
HEADS = {
    "MultipleChoice": [("head/dense", "classifier", "dense")],
    "QuestionAnswering": [("head/dense", "qa_outputs", "dense")],
    "TextClassifier": [("head/dense", "classifier", "dense")],
    "TokenClassifier": [("head/dense", "classifier", "dense")],
}
ARCHITECTURES = {
    "BertBackbone": "BertModel",
    "MultipleChoice": "BertForMultipleChoice",
    "QuestionAnswering": "BertForQuestionAnswering",
    "TextClassifier": "BertForSequenceClassification",
    "TokenClassifier": "BertForTokenClassification",
}

# Prefix of the backbone in checkpoints that hold a head too.
PREFIX = "bert."

# Tensors without a place here: index buffers, and the heads of tasks other than the one loaded.
NOT_WEIGHTS = ("embeddings.position_ids",)
HEAD_PREFIXES = ("cls.", "classifier.", "qa_outputs.")

# Names of the first PyTorch port, from before 2019.
OLD_ENDINGS = {"LayerNorm.gamma": "LayerNorm.weight", "LayerNorm.beta": "LayerNorm.bias"}
