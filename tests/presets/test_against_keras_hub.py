"""Presets that KerasHub wrote give the numbers that KerasHub computes."""

import warnings

import keras
import numpy as np
import pytest
from tiny import VOCABULARY

import bert_keras

keras_hub = pytest.importorskip("keras_hub", reason="the extra `nlp` is not installed")

SENTENCES = ["a b c d", "h a g g", "b" * 9, "[CLS] é A"]


@pytest.fixture(scope="module")
def theirs():
    """A classifier of KerasHub's with weights that are not those of a fresh start."""
    backbone = keras_hub.models.BertBackbone(
        vocabulary_size=len(VOCABULARY),
        num_layers=2,
        num_heads=2,
        hidden_dim=16,
        intermediate_dim=24,
        max_sequence_length=16,
        dropout=0.2,
    )
    tokenizer = keras_hub.models.BertTokenizer(VOCABULARY, lowercase=True)
    classifier = keras_hub.models.BertTextClassifier(
        backbone,
        num_classes=3,
        preprocessor=keras_hub.models.BertTextClassifierPreprocessor(tokenizer, sequence_length=12),
    )
    rng = np.random.default_rng(0)
    for variable in classifier.weights:
        variable.assign(variable + rng.normal(0, 0.2, variable.shape))
    return classifier


def inputs():
    rng = np.random.default_rng(0)
    padding_mask = np.ones((3, 12), "int32")
    padding_mask[1, 5:] = 0
    padding_mask[2, 9:] = 0
    return {
        "token_ids": rng.integers(0, len(VOCABULARY), (3, 12)).astype("int32"),
        "segment_ids": rng.integers(0, 2, (3, 12)).astype("int32"),
        "padding_mask": padding_mask,
    }


def loaded(cls, folder):
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        return cls.from_preset(folder)


@pytest.mark.parametrize("sharded", [False, True])
def test_a_backbone(theirs, tmp_path, sharded):
    theirs.backbone.save_to_preset(tmp_path, **({"max_shard_size": 1e-5} if sharded else {}))
    assert (tmp_path / "model.weights.json").is_file() == sharded
    arrays = inputs()
    expected = theirs.backbone.predict(arrays, verbose=0)
    actual = loaded(bert_keras.BertBackbone, tmp_path).predict(arrays, verbose=0)
    real = arrays["padding_mask"].astype(bool)
    np.testing.assert_allclose(
        actual["sequence_output"][real], expected["sequence_output"][real], atol=1e-5
    )
    np.testing.assert_allclose(actual["pooled_output"], expected["pooled_output"], atol=1e-5)


def test_a_classifier_from_raw_text(theirs, tmp_path):
    theirs.save_to_preset(tmp_path)
    ours = loaded(bert_keras.TextClassifier, tmp_path)
    assert (ours.num_classes, ours.preprocessor.max_length) == (3, 12)
    expected = theirs.predict(SENTENCES, verbose=0)
    np.testing.assert_allclose(ours.predict(SENTENCES, verbose=0), expected, atol=1e-5)
    expected_ids = keras.ops.convert_to_numpy(theirs.preprocessor(SENTENCES)["token_ids"])
    np.testing.assert_array_equal(
        ours.preprocessor(SENTENCES, length=12)["token_ids"], expected_ids
    )
