import numpy as np
import pytest
import scipy.special
import sklearn.metrics

from bert_keras.metrics import masked_lm


def test_accuracy_equals_sklearn():
    rng = np.random.default_rng(0)
    for case in range(1000):
        shape = rng.integers(1, 4), rng.integers(1, 6)
        labels, predicted = rng.integers(0, 3, shape), rng.integers(0, 3, shape)
        weights = rng.integers(0, 2, shape) if case % 2 else rng.random(shape)
        weights[0, 0] = 1
        expected = sklearn.metrics.accuracy_score(
            labels.ravel(), predicted.ravel(), sample_weight=weights.ravel()
        )
        assert masked_lm.masked_accuracy(labels, predicted, weights) == pytest.approx(expected)


def test_perplexity_equals_scipy():
    rng = np.random.default_rng(1)
    for case in range(1000):
        shape = rng.integers(1, 4), rng.integers(1, 6)
        size = rng.integers(1, 9)
        labels = rng.integers(0, size, shape)
        logits = rng.normal(size=(*shape, size)) * 10.0 ** rng.integers(-3, 4)
        if case % 3 == 0:
            logits = np.zeros_like(logits)
        weights = rng.integers(0, 2, shape) if case % 2 else rng.random(shape)
        weights[0, 0] = 1
        chosen = np.take_along_axis(scipy.special.log_softmax(logits, -1), labels[..., None], -1)
        loss = np.average(-chosen[..., 0], weights=weights)
        with np.errstate(over="ignore"):
            expected = np.exp(loss)
            found = masked_lm.masked_perplexity(labels, logits, weights)
        assert found == pytest.approx(expected, rel=1e-9)


def test_an_even_guess_has_the_vocabulary_as_perplexity():
    assert masked_lm.masked_perplexity([3, 4], np.zeros((2, 100))) == pytest.approx(100)


def test_positions_of_weight_0_may_hold_anything():
    logits = np.zeros((1, 3, 4))
    logits[0, 1:] = np.nan
    assert masked_lm.masked_perplexity([[1, -100, 9]], logits, [[1, 0, 0]]) == pytest.approx(4)


def test_padding_changes_nothing():
    rng = np.random.default_rng(2)
    labels, logits = rng.integers(0, 5, (2, 3)), rng.normal(size=(2, 3, 5))
    weights = np.ones((2, 3))
    padded = [np.pad(array, ((0, 0), (0, 4))) for array in (labels, weights)]
    padded_logits = np.pad(logits, ((0, 0), (0, 4), (0, 0)))
    assert masked_lm.masked_perplexity(padded[0], padded_logits, padded[1]) == pytest.approx(
        masked_lm.masked_perplexity(labels, logits)
    )
    assert masked_lm.masked_accuracy(padded[0], padded_logits.argmax(-1), padded[1]) == (
        masked_lm.masked_accuracy(labels, logits.argmax(-1))
    )


def test_bad_arrays_are_refused():
    with pytest.raises(ValueError, match="agree in shape"):
        masked_lm.masked_accuracy([1, 2], [1])
    with pytest.raises(ValueError, match="argmax"):
        masked_lm.masked_accuracy([1, 2], [[1, 2], [3, 4]])
    with pytest.raises(ValueError, match="weight above 0"):
        masked_lm.masked_accuracy([1], [1], [0])
    with pytest.raises(ValueError, match="weight above 0"):
        masked_lm.masked_perplexity(np.zeros((0,), int), np.zeros((0, 4)))
    with pytest.raises(ValueError, match="one axis more"):
        masked_lm.masked_perplexity([1, 2], [1.0, 2.0])
    with pytest.raises(ValueError, match="vocabulary"):
        masked_lm.masked_perplexity([4], np.zeros((1, 4)))
    with pytest.raises(ValueError, match="vocabulary"):
        masked_lm.masked_perplexity([-100], np.zeros((1, 4)))
