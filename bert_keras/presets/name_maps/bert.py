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


def _masked_lm(layer):
    return [
        (f"{layer}/dense", "cls.predictions.transform.dense", "dense"),
        (f"{layer}/layer_norm", "cls.predictions.transform.LayerNorm", "norm"),
        (layer, "cls.predictions", "bias"),
    ]


# The tasks' own heads: task class -> rows, and the architecture's name on the other side.
HEADS = {
    "MaskedLM": _masked_lm("head"),
    "MultipleChoice": [("head/dense", "classifier", "dense")],
    "NextSentencePrediction": [("head/dense", "cls.seq_relationship", "dense")],
    "Pretraining": [
        *_masked_lm("head/masked_lm"),
        ("head/next_sentence/dense", "cls.seq_relationship", "dense"),
    ],
    "QuestionAnswering": [("head/dense", "qa_outputs", "dense")],
    "TextClassifier": [("head/dense", "classifier", "dense")],
    "TokenClassifier": [("head/dense", "classifier", "dense")],
}
ARCHITECTURES = {
    "BertBackbone": "BertModel",
    "MaskedLM": "BertForMaskedLM",
    "MultipleChoice": "BertForMultipleChoice",
    "NextSentencePrediction": "BertForNextSentencePrediction",
    "Pretraining": "BertForPreTraining",
    "QuestionAnswering": "BertForQuestionAnswering",
    "TextClassifier": "BertForSequenceClassification",
    "TokenClassifier": "BertForTokenClassification",
}

# Parts of a head that a checkpoint may lack as a whole: our prefix -> theirs.
HEAD_PARTS = {"head/masked_lm/": "cls.predictions.", "head/next_sentence/": "cls.seq_relationship."}

# One tensor under two names: the decoder is the token table, and its bias the head's.
TIED = {
    "cls.predictions.decoder.weight": "embeddings.word_embeddings.weight",
    "cls.predictions.decoder.bias": "cls.predictions.bias",
}

# Prefix of the backbone in checkpoints that hold a head too.
PREFIX = "bert."

# Tensors without a place here: index buffers, and the heads of tasks other than the one loaded.
NOT_WEIGHTS = ("embeddings.position_ids",)
HEAD_PREFIXES = ("cls.", "classifier.", "qa_outputs.")

# Names of the first PyTorch port, from before 2019.
OLD_ENDINGS = {"LayerNorm.gamma": "LayerNorm.weight", "LayerNorm.beta": "LayerNorm.bias"}
