"""Metrics that are updated batch by batch, against scikit-learn and SciPy."""

import keras
import numpy as np
import pytest
import sklearn.metrics
from checks import perplexity

from bert_keras.metrics import streaming

NUM_CLASSES = 3
matthews = sklearn.metrics.matthews_corrcoef


def one_hot(ids, num_classes=NUM_CLASSES):
    return np.eye(num_classes, dtype="float32")[ids]


def updated(metric, *batches):
    for batch in batches:
        metric.update_state(*batch)
    return float(metric.result())


def f1_of(true, predicted, average):
    options = {"labels": range(NUM_CLASSES), "zero_division": 0.0}
    return sklearn.metrics.f1_score(true, predicted, average=average, **options)


@pytest.mark.once
def test_scores_equal_sklearn_over_all_batches():
    rng = np.random.default_rng(0)
    metrics = [
        (streaming.MatthewsCorrelation(NUM_CLASSES), matthews),
        (streaming.SparseF1Score(NUM_CLASSES, average="micro"), lambda *x: f1_of(*x, "micro")),
        (streaming.SparseF1Score(NUM_CLASSES, average="macro"), lambda *x: f1_of(*x, "macro")),
        (streaming.SparseF1Score(NUM_CLASSES, positive=2), lambda *x: f1_of(*x, None)[2]),
    ]
    for case in range(1000):
        # Some arrays are constant, so that 0/0 occurs.
        true = rng.integers(0, NUM_CLASSES, (2, 4)) * (case % 6 > 0)
        predicted = rng.integers(0, NUM_CLASSES, (2, 4)) * (case % 6 > 1)
        flat = true.ravel(), predicted.ravel()
        metric, expected = metrics[case % 4]
        metric.reset_state()
        batches = [(true, one_hot(predicted))]
        if case % 10 == 0:
            batches = [(row, one_hot(ids)) for row, ids in zip(true, predicted, strict=True)]
        assert updated(metric, *batches) == pytest.approx(expected(*flat), abs=1e-6)


def test_matthews_correlation_of_a_rare_class_keeps_its_digits():
    true = np.zeros(1_000_000, int)
    true[:10] = 1
    predicted = np.zeros(1_000_000, int)
    predicted[4:15] = 1
    expected = matthews(true, predicted)
    found = updated(streaming.MatthewsCorrelation(2), (true, one_hot(predicted, 2)))
    assert found == pytest.approx(expected, rel=1e-6)


def test_labels_of_weight_0_or_out_of_range_are_ignored():
    true = np.array([[0, 1, 2, -100, 1], [2, 2, 1, 3, 0]])
    predicted = np.array([[0, 1, 1, 2, 0], [2, 1, 1, 0, 1]])
    weights = np.array([[1, 1, 1, 1, 0], [1, 1, 1, 1, 0]])
    metric = streaming.MatthewsCorrelation(NUM_CLASSES)
    kept = (weights == 1) & (true >= 0) & (true < NUM_CLASSES)
    expected = matthews(true[kept], predicted[kept])
    assert updated(metric, (true, one_hot(predicted), weights)) == pytest.approx(expected)


@pytest.mark.parametrize("shape", [(4,), (4, 1)])
def test_weights_may_be_one_per_example(shape):
    true, predicted = np.array([0, 1, 2, 2]), np.array([0, 1, 1, 2])
    weights = np.array([1.0, 0.0, 1.0, 1.0])
    metric = streaming.MatthewsCorrelation(NUM_CLASSES)
    kept = weights == 1
    expected = matthews(true[kept], predicted[kept])
    batch = (true, one_hot(predicted), weights.reshape(shape))
    assert updated(metric, batch) == pytest.approx(expected)


def test_a_weight_per_sequence_applies_to_each_of_its_positions():
    true, predicted = np.array([[0, 1], [2, 2]]), np.array([[0, 0], [0, 2]])
    metric = streaming.SparseF1Score(NUM_CLASSES, average="micro")
    assert updated(metric, (true, one_hot(predicted), np.array([0.0, 1.0]))) == 0.5


def test_perplexity_equals_scipy_over_batches_of_unequal_weight():
    rng = np.random.default_rng(1)
    metric = streaming.MaskedPerplexity()
    for case in range(1000):
        labels, logits = rng.integers(0, 7, (2, 2, 3)), rng.normal(size=(2, 2, 3, 7)) * 3
        logits = logits * (case % 5 > 0)
        weights = rng.integers(0, 2, (2, 2, 3)) if case % 2 else rng.random((2, 2, 3))
        weights[0, 0, 0] = 1
        metric.reset_state()
        expected = perplexity(labels, logits, weights)
        batches = [(labels, logits, weights)]
        if case % 10 == 0:
            batches = zip(labels, logits, weights, strict=True)
        found = updated(metric, *batches)
        assert found == pytest.approx(expected, rel=1e-5)


def test_perplexity_ignores_the_label_of_a_position_of_weight_0():
    metric = streaming.MaskedPerplexity()
    batch = (np.array([[1, -100, 99]]), np.zeros((1, 3, 4)), np.array([[1.0, 0.0, 0.0]]))
    assert updated(metric, batch) == pytest.approx(4.0)


def test_perplexity_without_a_masked_position_is_nan():
    assert np.isnan(updated(streaming.MaskedPerplexity()))


def test_tokens_of_short_and_long_batches_count_the_same():
    rng = np.random.default_rng(2)
    accuracy, rate = streaming.TokenAccuracy(), streaming.TokenRate()
    right, marked, weights = [], [], []
    for shape in [(2, 3), (4, 9), (1, 30)]:
        labels, predicted = rng.integers(0, 3, shape), rng.integers(0, 3, shape)
        weights.append(rng.integers(0, 3, shape))
        right.append(labels == predicted)
        marked.append(labels == 1)
        accuracy.update_state(labels, one_hot(predicted, 3), weights[-1])
        rate.update_state(labels == 1, one_hot(predicted, 3), weights[-1])
    for metric, values in ((accuracy, right), (rate, marked)):
        values, total = (np.concatenate([x.ravel() for x in xs]) for xs in (values, weights))
        assert float(metric.result()) == pytest.approx(np.average(values, weights=total))


@pytest.mark.parametrize(
    "metric",
    [
        streaming.SparseF1Score(4, average="binary", positive=2, name="other"),
        streaming.MatthewsCorrelation(4),
        streaming.MaskedPerplexity(),
        streaming.TokenAccuracy(name="right"),
    ],
)
def test_a_config_restores_the_metric(metric):
    copy = keras.metrics.deserialize(keras.metrics.serialize(metric))
    assert type(copy) is type(metric)
    assert copy.get_config() == metric.get_config()
    assert keras.saving.get_registered_name(type(metric)).startswith("bert_keras>")


def test_metrics_work_inside_evaluate():
    rng = np.random.default_rng(3)
    inputs, labels = rng.normal(size=(10, 6, 4)).astype("float32"), rng.integers(0, 3, (10, 6))
    weights = rng.integers(0, 2, (10, 6)).astype("float32")
    model = keras.Sequential([keras.Input((6, 4)), keras.layers.Dense(NUM_CLASSES)])
    metrics = [
        streaming.MatthewsCorrelation(NUM_CLASSES),
        streaming.SparseF1Score(NUM_CLASSES, average="macro"),
        streaming.MaskedPerplexity(),
    ]
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(loss=loss, weighted_metrics=metrics)
    options = {"sample_weight": weights, "batch_size": 4, "verbose": 0}
    found = model.evaluate(inputs, labels, return_dict=True, **options)
    logits = model.predict(inputs, verbose=0)
    true, predicted = labels[weights == 1], logits.argmax(-1)[weights == 1]
    assert found["matthews"] == pytest.approx(matthews(true, predicted), abs=1e-6)
    assert found["f1"] == pytest.approx(f1_of(true, predicted, "macro"), abs=1e-6)
    expected = perplexity(labels, logits, weights)
    assert found["perplexity"] == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: streaming.MatthewsCorrelation(1), "int from 2"),
        (lambda: streaming.SparseF1Score(3, average="weighted"), "average"),
        (lambda: streaming.SparseF1Score(3, positive=3), "positive"),
        (lambda: streaming.MatthewsCorrelation(3).update_state([0], [[0.1, 0.9]]), "3 classes"),
    ],
)
def test_impossible_arguments_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
