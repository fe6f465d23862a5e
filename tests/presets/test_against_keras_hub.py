"""Presets that KerasHub wrote give the numbers that KerasHub computes."""

import numpy as np
import pytest
from checks import to_numpy
from foreign import IS_TOKEN, KERAS_HUB_CONFIG, inputs
from tiny import VOCABULARY

import bert_keras

keras_hub = pytest.importorskip("keras_hub", reason="the extra `nlp` is not installed")
pytestmark = pytest.mark.filterwarnings("error::UserWarning")
SENTENCES = ["a b c d", "h a g g", "b" * 9, "[CLS] é A"]


@pytest.fixture(scope="module")
def theirs():
    """A classifier of KerasHub's in which no weight is 0 or 1."""
    models = keras_hub.models
    tokenizer = models.BertTokenizer(VOCABULARY, lowercase=True)
    preprocessor = models.BertTextClassifierPreprocessor(tokenizer, sequence_length=12)
    classifier = models.BertTextClassifier(
        models.BertBackbone(**KERAS_HUB_CONFIG), num_classes=3, preprocessor=preprocessor
    )
    rng = np.random.default_rng(0)
    for variable in classifier.weights:
        variable.assign(variable + rng.normal(0, 0.2, variable.shape))
    return classifier


@pytest.mark.parametrize("sharded", [False, True])
def test_a_backbone_gives_the_same_outputs(theirs, tmp_path, sharded):
    theirs.backbone.save_to_preset(tmp_path, **({"max_shard_size": 1e-5} if sharded else {}))
    assert (tmp_path / "model.weights.json").is_file() == sharded
    expected = theirs.backbone.predict(inputs(), verbose=0)
    actual = bert_keras.BertBackbone.from_preset(tmp_path).predict(inputs(), verbose=0)
    for outputs in (actual, expected):
        outputs["sequence_output"] = outputs["sequence_output"][IS_TOKEN]
    for name, array in actual.items():
        np.testing.assert_allclose(array, expected[name], atol=1e-5)


def test_a_classifier_gives_the_same_logits_for_raw_text(theirs, tmp_path):
    theirs.save_to_preset(tmp_path)
    ours = bert_keras.TextClassifier.from_preset(tmp_path)
    assert (ours.num_classes, ours.preprocessor.max_length) == (3, 12)
    expected = theirs.predict(SENTENCES, verbose=0)
    np.testing.assert_allclose(ours.predict(SENTENCES, verbose=0), expected, atol=1e-5)
    expected = to_numpy(theirs.preprocessor(SENTENCES)["token_ids"])
    found = ours.preprocessor(SENTENCES, length=12)["token_ids"]
    np.testing.assert_array_equal(found, expected)
