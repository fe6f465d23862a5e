"""Thresholds of several labels, against an exhaustive search."""

import numpy as np
import pytest
import sklearn.metrics as sk

from bert_keras.metrics import tune_thresholds


def f1(true, chosen):
    return 2 * (true & chosen).sum() / max(1, true.sum() + chosen.sum())


def test_tuned_thresholds_reach_the_best_f1_of_an_exhaustive_search():
    rng = np.random.default_rng(7)
    num_empty = num_ties = 0
    for case in range(400):
        size = rng.integers(1, 12)
        true = rng.random(size) < rng.choice([0.0, 0.3, 0.8])
        scores = rng.random(size) if case % 2 else rng.integers(0, 5, size) / 4
        (threshold,) = tune_thresholds(true[:, None], scores[:, None])
        num_empty += not true.any()
        num_ties += len(np.unique(scores)) < size
        found = f1(true, scores >= threshold)
        assert found == pytest.approx(max(f1(true, scores >= x) for x in scores), abs=1e-9)
        if f1(true, scores >= 0.5) == found:
            assert threshold == 0.5
    assert num_empty > 40 and num_ties > 40


def test_each_label_has_a_threshold_of_its_own():
    rng = np.random.default_rng(9)
    true, scores = rng.integers(0, 2, (40, 28)), rng.random((40, 28))
    thresholds = tune_thresholds(true, scores)
    for label in range(28):
        alone = tune_thresholds(true[:, [label]], scores[:, [label]])
        assert alone == thresholds[label]
    tuned = sk.f1_score(true, scores >= thresholds, average="macro")
    columns = zip(true.T, (scores >= thresholds).T, strict=True)
    assert tuned == pytest.approx(np.mean([f1(*column) for column in columns]))
    assert tuned > sk.f1_score(true, scores >= 0.5, average="macro")


def test_of_equal_thresholds_the_one_nearest_to_the_default_is_chosen_then_the_lower():
    # Right above 0.25 or above 0.75: F1 is 2/3 either way.
    true = [[1], [0], [0], [1]]
    scores = [[1.0], [0.5], [0.5], [0.0]]
    assert tune_thresholds(true, scores).tolist() == [0.75]
    assert tune_thresholds(true, scores, default=0.0).tolist() == [0.0]
