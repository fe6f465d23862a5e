"""On TensorFlow no thread tunes the batches that Keras's loops read; elsewhere data stays as is."""

import keras
import numpy as np
import pytest
from tiny import tiny_classifier

from bert_keras.engine import tensorflow_data

pytestmark = pytest.mark.eager  # It is about the data, not about the steps.

ON_TENSORFLOW = keras.backend.backend() == "tensorflow"
TEXTS = ["a b", "c", "d e f g h", "a", "b c d"]
LABELS = np.arange(len(TEXTS)) % 2


@pytest.fixture
def adapters(noted):
    """The adapters that take the place of data, a list that grows."""
    return noted(tensorflow_data, "_untune")


def is_tuned(adapter):
    return adapter.get_tf_dataset().options().autotune.enabled is not False


@pytest.fixture
def classifier():
    classifier = tiny_classifier()
    classifier.compile("sgd")
    return classifier


@pytest.mark.also_on("tensorflow")
def test_fit_evaluate_and_predict_with_callbacks_start_no_tuning(adapters, classifier):
    classifier.fit(TEXTS, LABELS, validation_data=(TEXTS, LABELS), epochs=2, verbose=0)
    classifier.evaluate(TEXTS, LABELS, verbose=0)
    inputs = classifier.preprocessor(TEXTS)
    classifier.predict(inputs, 2, verbose=0, callbacks=[keras.callbacks.Callback()])
    if not ON_TENSORFLOW:
        assert not adapters
        return
    assert len(adapters) == 4
    assert not any(is_tuned(adapter) for adapter in adapters)


def test_prediction_needs_no_pipeline(adapters, classifier):
    classifier.predict(TEXTS, batch_size=2, verbose=0)
    classifier.predict(classifier.preprocessor(TEXTS), verbose=0)
    assert not adapters


@pytest.mark.parametrize("is_pipeline", [False, True] if ON_TENSORFLOW else [True])
def test_arrays_start_no_tuning_and_users_own_pipelines_stay_as_they_are(
    adapters, classifier, is_pipeline
):
    data, options = (classifier.preprocessor(TEXTS), LABELS), {"batch_size": 2, "verbose": 0}
    if is_pipeline:
        tensorflow = pytest.importorskip("tensorflow")
        data, options = (tensorflow.data.Dataset.from_tensor_slices(data).batch(2),), {"verbose": 0}
    one = classifier.evaluate(*data, **options)
    np.testing.assert_allclose(one, classifier.evaluate(TEXTS, LABELS, verbose=0), atol=1e-5)
    if ON_TENSORFLOW:
        assert len(adapters) == (1 if is_pipeline else 2)
    if not is_pipeline:
        classifier.fit(*data, epochs=1, class_weight={0: 1.0, 1: 2.0}, **options)
        assert not any(is_tuned(adapter) for adapter in adapters)
