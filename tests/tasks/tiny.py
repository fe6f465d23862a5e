"""Models small enough for a test of a second."""

import bert_keras

LETTERS = "abcdefgh"
VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *LETTERS, *("##" + x for x in LETTERS)]


def tiny_backbone(**overrides):
    return bert_keras.BertBackbone(
        **{
            "vocabulary_size": len(VOCABULARY),
            "num_layers": 1,
            "num_heads": 2,
            "hidden_dim": 16,
            "intermediate_dim": 32,
            "max_sequence_length": 16,
            **overrides,
        }
    )


def tiny_preprocessor(max_length=16, **options):
    tokenizer = bert_keras.WordPieceTokenizer(VOCABULARY)
    return bert_keras.TextPreprocessor(tokenizer, max_length=max_length, **options)


def tiny_classifier(backbone=None, **options):
    return bert_keras.TextClassifier(
        backbone or tiny_backbone(), **{"preprocessor": tiny_preprocessor(), **options}
    )


def batches_of(task, x, y=None, sample_weight=None, training=None, **options):
    """Returns the batches that `fit` reads, or without labels those of the same rows."""
    training = y is not None if training is None else training
    return task.data.batches(task.data.encode(x, y, sample_weight, training), **options)
