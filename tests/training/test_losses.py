"""The losses against values by hand and those of torch."""

import keras
import numpy as np
import pytest
import torch
from checks import cases, compute, made_again, to_numpy
from torch.nn import functional

from bert_keras.training.losses import SigmoidCrossentropy, SpanCrossentropy, SparseCrossentropy

pytestmark = pytest.mark.once

LOGITS = np.log(np.array([[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.25, 0.25, 0.5]], "float32"))
LABELS = np.array([0, 1, 0])


def assert_value(loss, expected, rtol=1e-6, atol=0):
    np.testing.assert_allclose(to_numpy(loss), to_numpy(expected), rtol=rtol, atol=atol)


def random_case(shape=(4, 6), num_classes=5, seed=0):
    rng = np.random.default_rng(seed)
    logits = rng.normal(size=(*shape, num_classes), scale=3).astype("float32")
    return logits, rng.integers(num_classes, size=shape)


@pytest.mark.each_backend
def test_positions_of_weight_zero_count_neither_in_the_sum_nor_in_its_divisor():
    loss = SparseCrossentropy()
    weights = np.array([1.0, 0.0, 3.0])
    expected = -(np.log(0.7) + 3 * np.log(0.25)) / 4
    found = compute(loss, LABELS, LOGITS, weights)
    assert_value(found, expected)
    assert_value(compute(loss, LABELS, LOGITS), -np.mean(np.log([0.7, 0.8, 0.25])))
    changed = LOGITS.copy()
    changed[1] = [30.0, -30.0, 0.0]
    assert_value(compute(loss, LABELS, changed, weights), found, rtol=0)
    assert_value(compute(loss, LABELS, LOGITS, np.zeros(3)), 0)


@cases(0.0, pytest.param(0.1, marks=pytest.mark.each_backend))
def test_sigmoid_crossentropy_by_hand(label_smoothing):
    logits = np.log(np.array([[4.0, 0.25], [9.0, 1.0]], "float32"))  # 0.8 and 0.2, 0.9 and 0.5
    labels, weights = np.array([[1, 0], [0, 1]]), np.array([[1.0, 0.0], [3.0, 1.0]])
    ones = labels * (1 - label_smoothing) + label_smoothing / 2
    chances = np.array([[0.8, 0.2], [0.9, 0.5]])
    losses = -ones * np.log(chances) - (1 - ones) * np.log(1 - chances)
    loss = SigmoidCrossentropy(label_smoothing)
    found = compute(made_again(loss), labels, logits, weights)
    assert_value(found, np.average(losses, weights=weights), rtol=1e-5)


@cases(0.0, pytest.param(0.1, marks=pytest.mark.each_backend))
def test_equal_to_torch(label_smoothing):
    logits, labels = random_case()
    weights = np.array(labels > 0, "float32")
    expected = functional.cross_entropy(
        torch.tensor(logits).reshape(-1, 5),
        torch.tensor(np.where(weights, labels, -100)).reshape(-1),
        label_smoothing=label_smoothing,
    )
    loss = made_again(SparseCrossentropy(label_smoothing, name="a"))
    found = compute(loss, labels, logits, weights)
    assert_value(found, expected, rtol=1e-5)


@pytest.mark.each_backend
def test_span_loss_is_the_mean_of_both_ends():
    starts = keras.Input((2,))
    model = keras.Model(starts, {"start_logits": starts, "end_logits": 2.0 * starts})
    model.compile(loss=made_again(SpanCrossentropy(name="b")))
    x = np.array([[1.0, 2.0], [0.5, -1.0]], "float32")
    labels = {"start_logits": np.array([0, 1]), "end_logits": np.array([1, 1])}
    logits = model.predict(x, verbose=0)
    ends = [(torch.tensor(logits[end]), torch.tensor(labels[end])) for end in labels]
    expected = np.mean([functional.cross_entropy(*end) for end in ends])
    results = model.evaluate(x, labels, verbose=0, return_dict=True)
    assert_value(results["loss"], expected, rtol=1e-5)


def test_a_span_outside_the_window_adds_nothing():
    logits = np.log(np.array([[0.5, 0.5], [0.9, 0.1], [0.9, 0.1]], "float32"))
    loss = SpanCrossentropy(reduction="none")(np.array([0, 2, -1]), logits)
    assert_value(loss, [0.5 * np.log(2), 0, 0])


def test_impossible_settings_are_refused():
    with pytest.raises(ValueError, match="label_smoothing"):
        SparseCrossentropy(label_smoothing=1.0)
