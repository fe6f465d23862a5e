"""Models small enough for a test of a second."""

import importlib.util
import pathlib
import sys

import keras
import numpy as np

import bert_keras
from bert_keras.tasks.user_columns import normalize_columns

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


def tiny_preprocessor(max_length=16, vocabulary=VOCABULARY, **options):
    tokenizer = bert_keras.WordPieceTokenizer(vocabulary)
    return bert_keras.TextPreprocessor(tokenizer, max_length=max_length, **options)


def tiny_classifier(backbone=None, **options):
    return bert_keras.TextClassifier(
        backbone or tiny_backbone(), **{"preprocessor": tiny_preprocessor(), **options}
    )


def tiny_task(name, backbone=None, vocabulary=VOCABULARY, **options):
    """Returns a task by the name of its class, with weights that make outputs differ."""
    if backbone is None:
        backbone = tiny_backbone(vocabulary_size=len(vocabulary), initializer_range=0.3)
    options = {"preprocessor": tiny_preprocessor(vocabulary=vocabulary), **options}
    return getattr(bert_keras, name)(backbone, **options)


def ready_inputs(*shape, least=1, num_predictions=0, seed=0):
    """Returns rows of random ids, segments and lengths, and positions where asked for.

    Args:
        *shape: ints, `(batch, seq_len)` or `(batch, num_choices, seq_len)`.
        least: int, the least number of tokens of a row.
        num_predictions: int, the number of `mask_positions` of a row.
        seed: int.
    """
    rng = np.random.default_rng(seed)
    lengths = rng.integers(least, shape[-1] + 1, (*shape[:-1], 1))
    mask = np.arange(shape[-1]) < lengths
    inputs = {
        "token_ids": np.where(mask, rng.integers(5, 10, shape), 0),
        "segment_ids": np.where(mask, rng.integers(0, 2, shape), 0),
        "padding_mask": mask.astype(int),
    }
    if num_predictions:
        inputs["mask_positions"] = rng.integers(0, least, (shape[0], num_predictions))
    return inputs


def batches_of(task, x, y=None, sample_weight=None, training=None, **options):
    """Returns the batches that `fit` reads, or without labels those of the same rows."""
    training = y is not None if training is None else training
    return task.make_batches(rows_of(task, x, y, sample_weight, training), **options)


def rows_of(task, x, y=None, sample_weight=None, training=True):
    """Returns raw examples or ready inputs as the rows that `fit` trains on."""
    return task.encode_columns(normalize_columns(task, x, y, sample_weight), training)


class Batches(keras.utils.PyDataset):
    """A dataset of the given batches."""

    def __init__(self, batches, **options):
        super().__init__(**options)
        self.batches = batches

    def __len__(self):
        return len(self.batches)

    def __getitem__(self, index):
        return self.batches[index]


def as_tensorflow(arrays, batch_size):
    """Returns a `tf.data` of the rows of an array, or of a tuple or dict of arrays."""
    import tensorflow as tf

    return tf.data.Dataset.from_tensor_slices(arrays).batch(batch_size)


def as_data_loader(rows, batch_size):
    """Returns PyTorch's loader of a list of rows."""
    import torch

    return torch.utils.data.DataLoader(rows, batch_size=batch_size)


def guide_to_tasks():
    """Returns the module of docs/guides/a_task_of_your_own.py, imported once."""
    path = pathlib.Path(__file__).parents[2] / "docs" / "guides" / "a_task_of_your_own.py"
    if path.stem not in sys.modules:
        spec = importlib.util.spec_from_file_location(path.stem, path)
        sys.modules[path.stem] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[path.stem])
    return sys.modules[path.stem]
