"""Metrics that are updated batch by batch, against scikit-learn and SciPy."""

import keras
import numpy as np
import pytest
import sklearn.metrics as sk
from checks import made_again, perplexity

from bert_keras.metrics import streaming
from bert_keras.metrics.label_kinds import LabelKind

NUM_CLASSES = 3


def one_hot(ids, num_classes=NUM_CLASSES):
    return np.eye(num_classes, dtype="float32")[ids]


def updated(metric, *batches):
    for batch in batches:
        metric.update_state(*batch)
    return float(metric.result())


def matthews(true, logits, weights=None):
    return sk.matthews_corrcoef(true, logits.argmax(-1), sample_weight=weights)


METRICS = {
    "matthews": (streaming.MatthewsCorrelation(NUM_CLASSES), matthews),
    "perplexity": (streaming.MaskedPerplexity(), perplexity),
}


@pytest.mark.once
@pytest.mark.parametrize("name", METRICS)
def test_scores_equal_those_of_all_batches_at_once(name):
    """Batches have unequal lengths, and a weight for each position, each sequence, or none."""
    metric, reference = METRICS[name]
    rng = np.random.default_rng(0)
    for case in range(42):
        batches, flat = [], []
        for shape in [(2, 3), (4, 9), (1, 30)][: 1 + case % 3]:
            # Some arrays are constant, so that 0/0 occurs.
            true = rng.integers(0, NUM_CLASSES, shape) * (case % 7 > 0)
            logits = rng.normal(size=(*shape, NUM_CLASSES)) * 3
            logits = logits + 15 * one_hot(0) * (case % 7 < 2)
            weights = rng.integers(0, 3, [shape, shape[:1]][case % 2])
            weights.flat[0] = 1
            batches.append((true, logits, *([weights] if case % 5 else [])))
            weights = weights if case % 5 else np.ones(shape)
            weights = np.broadcast_to(weights.reshape(len(weights), -1), shape)
            flat.append((true.ravel(), logits.reshape(-1, NUM_CLASSES), weights.ravel()))
        metric.reset_state()
        expected = reference(*map(np.concatenate, zip(*flat, strict=True)))
        assert updated(metric, *batches) == pytest.approx(expected, abs=1e-6, rel=1e-5)


def test_matthews_correlation_of_a_rare_class_keeps_its_digits():
    true, predicted = np.zeros((2, 1_000_000), int)
    true[:10] = predicted[4:15] = 1
    logits = one_hot(predicted, 2)
    found = updated(streaming.MatthewsCorrelation(2), (true, logits))
    assert found == pytest.approx(matthews(true, logits), rel=1e-6)


def test_labels_of_weight_0_or_out_of_range_are_ignored():
    true = np.array([[0, 1, 2, -100, 1], [2, 2, 1, 3, 0]])
    logits = one_hot([[0, 1, 1, 2, 0], [2, 1, 1, 0, 1]])
    weights = np.array([[1, 1, 1, 1, 0], [1, 1, 1, 1, 0]])
    kept = (weights == 1) & (true >= 0) & (true < NUM_CLASSES)
    found = updated(streaming.MatthewsCorrelation(NUM_CLASSES), (true, logits, weights))
    assert found == pytest.approx(matthews(true[kept], logits[kept]))


@pytest.mark.parametrize("shape", [(4,), (4, 1)])
def test_weights_may_be_one_per_example(shape):
    true, logits, weights = np.array([0, 1, 2, 2]), one_hot([0, 1, 1, 2]), np.array([1.0, 0, 1, 1])
    batch = (true, logits, weights.reshape(shape))
    found = updated(streaming.MatthewsCorrelation(NUM_CLASSES), batch)
    assert found == pytest.approx(matthews(true, logits, weights))


def test_a_weight_per_sequence_applies_to_each_of_its_positions():
    true, predicted = np.array([[0, 1, 2], [2, 2, 1]]), np.array([[0, 0, 0], [0, 2, 1]])
    batch = (true, one_hot(predicted), np.array([0.0, 1.0]))
    found = updated(streaming.MatthewsCorrelation(NUM_CLASSES), batch)
    assert found == pytest.approx(sk.matthews_corrcoef(true[1], predicted[1]))


def test_perplexity_ignores_the_label_of_a_position_of_weight_0():
    metric = streaming.MaskedPerplexity()
    batch = (np.array([[1, -100, 99]]), np.zeros((1, 3, 4)), np.array([[1.0, 0.0, 0.0]]))
    assert updated(metric, batch) == pytest.approx(4.0)


def test_every_text_of_a_reranker_counts_once_whatever_the_batch_is_padded_to():
    narrow = np.array([[1.0, 0.0]]), np.array([[2.0, -1.0]])
    wide = np.array([[1.0, 0.0, 0.0, -np.inf]]), np.array([[-1.0, 1.0, -1.0, 3.0]])
    metric = LabelKind("several", per_token=True).adapt("accuracy")
    assert updated(metric, narrow, wide) == pytest.approx(3 / 5)
    metric.reset_state()
    weighed = [(*batch, np.array([weight])) for batch, weight in ((narrow, 1.0), (wide, 2.0))]
    assert updated(metric, *weighed) == pytest.approx((2 + 2) / (2 + 6))


def test_perplexity_without_a_masked_position_is_nan():
    assert np.isnan(updated(streaming.MaskedPerplexity()))


@pytest.mark.parametrize(
    "metric",
    [
        streaming.MatthewsCorrelation(4, name="other"),
        streaming.MaskedPerplexity(),
    ],
)
def test_a_metric_is_made_again_from_its_config(metric):
    made_again(metric)


def test_metrics_work_inside_evaluate():
    rng = np.random.default_rng(3)
    inputs, labels = rng.normal(size=(10, 6, 4)).astype("float32"), rng.integers(0, 3, (10, 6))
    weights = rng.integers(0, 2, (10, 6)).astype("float32")
    model = keras.Sequential([keras.Input((6, 4)), keras.layers.Dense(NUM_CLASSES)])
    metrics = [
        streaming.MatthewsCorrelation(NUM_CLASSES),
        streaming.MaskedPerplexity(),
    ]
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(loss=loss, weighted_metrics=metrics)
    options = {"sample_weight": weights, "batch_size": 4, "verbose": 0}
    found = model.evaluate(inputs, labels, return_dict=True, **options)
    logits = model.predict(inputs, verbose=0)
    counted = labels[weights == 1], logits[weights == 1]
    assert found["matthews"] == pytest.approx(matthews(*counted), abs=1e-6)
    expected = perplexity(labels, logits, weights)
    assert found["perplexity"] == pytest.approx(expected, rel=1e-5)
