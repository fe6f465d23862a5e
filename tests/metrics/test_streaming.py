"""Metrics that are updated batch by batch, against SciPy."""

import numpy as np
import pytest
from checks import made_again, perplexity

from bert_keras.metrics import streaming
from bert_keras.metrics.label_kinds import LabelKind

NUM_CLASSES = 3


def updated(metric, *batches):
    for batch in batches:
        metric.update_state(*batch)
    return float(metric.result())


@pytest.mark.once
def test_perplexity_equals_that_of_all_batches_at_once():
    """Batches have unequal lengths, and a weight for each position, each sequence, or none."""
    metric = made_again(streaming.MaskedPerplexity(name="other"))
    rng = np.random.default_rng(0)
    for case in range(42):
        batches, flat = [], []
        for shape in [(2, 3), (4, 9), (1, 30)][: 1 + case % 3]:
            # Some arrays are constant, so that 0/0 occurs.
            true = rng.integers(0, NUM_CLASSES, shape) * (case % 7 > 0)
            logits = rng.normal(size=(*shape, NUM_CLASSES)) * 3
            logits = logits + 15 * np.eye(NUM_CLASSES)[0] * (case % 7 < 2)
            weights = rng.integers(0, 3, [shape, shape[:1]][case % 2])
            weights.flat[0] = 1
            batches.append((true, logits, *([weights] if case % 5 else [])))
            weights = weights if case % 5 else np.ones(shape)
            weights = np.broadcast_to(weights.reshape(len(weights), -1), shape)
            flat.append((true.ravel(), logits.reshape(-1, NUM_CLASSES), weights.ravel()))
        metric.reset_state()
        expected = perplexity(*map(np.concatenate, zip(*flat, strict=True)))
        assert updated(metric, *batches) == pytest.approx(expected, abs=1e-6, rel=1e-5)


def test_perplexity_ignores_labels_of_weight_0_and_is_nan_without_others():
    metric = streaming.MaskedPerplexity()
    batch = (np.array([[1, -100, 99]]), np.zeros((1, 3, 4)), np.array([[1.0, 0.0, 0.0]]))
    assert updated(metric, batch) == pytest.approx(4.0)
    assert np.isnan(updated(streaming.MaskedPerplexity()))


def test_every_text_of_a_reranker_counts_once_whatever_the_batch_is_padded_to():
    narrow = np.array([[1.0, 0.0]]), np.array([[2.0, -1.0]])
    wide = np.array([[1.0, 0.0, 0.0, -np.inf]]), np.array([[-1.0, 1.0, -1.0, 3.0]])
    metric = LabelKind("several", per_token=True).adapt("accuracy")
    assert updated(metric, narrow, wide) == pytest.approx(3 / 5)
    metric.reset_state()
    weighed = [(*batch, np.array([weight])) for batch, weight in ((narrow, 1.0), (wide, 2.0))]
    assert updated(metric, *weighed) == pytest.approx((2 + 2) / (2 + 6))
