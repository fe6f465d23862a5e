"""Calibration: hand-computed errors, SciPy's minimum, and a classifier that keeps its labels."""

import numpy as np
import pytest
import scipy.optimize
from checks import refusals
from tiny import tiny_backbone, tiny_classifier

from bert_keras.answers.classes import class_probabilities
from bert_keras.metrics import best_temperature, expected_calibration_error

pytestmark = pytest.mark.once


def test_the_error_weighs_the_gap_of_each_bin():
    probabilities = [[0.9, 0.1], [0.95, 0.05], [0.4, 0.6]]
    expected = 2 / 3 * abs(0.5 - 0.925) + 1 / 3 * abs(1 - 0.6)
    assert expected_calibration_error(probabilities, [0, 1, 1], 5) == pytest.approx(expected)
    assert expected_calibration_error([[0.25, 1.0]], [[1, 1]]) == pytest.approx(0.75 / 2)


@pytest.mark.parametrize("problem_type", ["single_label", "multi_label"])
def test_the_temperature_is_scipys_minimum_of_cross_entropy(problem_type):
    rng = np.random.default_rng(0)
    logits = rng.normal(scale=3, size=(10_000, 4))
    true = class_probabilities(logits / 2.5, problem_type)
    if problem_type == "single_label":
        labels = (true[:, :3].cumsum(axis=1) < rng.random((len(true), 1))).sum(axis=1)
        wanted = np.eye(4)[labels]
    else:
        labels = wanted = (rng.random(true.shape) < true).astype(int)

    def cross_entropy(temperature):
        found = class_probabilities(logits / temperature, problem_type)
        if problem_type == "single_label":
            return -np.log((found * wanted).sum(axis=1)).mean()
        return -np.log(np.where(wanted, found, 1 - found)).mean()

    best = scipy.optimize.minimize_scalar(cross_entropy, bounds=(0.05, 20), method="bounded").x
    assert best_temperature(logits, labels) == pytest.approx(best, rel=1e-4)
    assert best == pytest.approx(2.5, rel=0.2)


def regression(**options):
    return tiny_classifier(num_classes=1, problem_type="regression", **options)


test_what_has_no_probabilities_is_refused = refusals(
    (lambda: expected_calibration_error([[1.5, 0.0]], [0]), "from 0 to 1"),
    (lambda: expected_calibration_error(np.zeros((0, 2)), []), "at least one example"),
    (lambda: best_temperature([[np.nan, 0.0]], [0]), "finite"),
    (lambda: best_temperature([[1.0, 0.0]], [2]), "from 0 to 1"),
    (lambda: best_temperature([[1.0, 0.0]], [0, 1]), "shape"),
    (lambda: best_temperature([1.0, 0.0], [0, 1]), "shape"),
    (lambda: regression().calibrate(["a"], [1.0]), "scores, no probabilities"),
    (lambda: regression(temperature=2.0), "`temperature` is for probabilities"),
    (lambda: tiny_classifier(temperature=0.0), "`temperature` must be a finite number above 0"),
)


@pytest.mark.parametrize("sign, words", [(1, r"limit, 0\.05\..*right"), (-1, r"20\..*chance")])
def test_a_temperature_at_its_limit_is_reported(sign, words, monkeypatch):
    classifier, labels = tiny_classifier(tiny_backbone()), [0, 1, 1]
    logits = sign * (2.0 * np.eye(2)[labels] - 1)
    monkeypatch.setattr(classifier, "predict", lambda *args, **kwargs: logits)
    with pytest.warns(UserWarning, match=words):
        classifier.calibrate(["a", "b", "c"], labels)


@pytest.mark.parametrize("problem_type", ["single_label", "multi_label"])
def test_calibration_changes_probabilities_and_keeps_labels(problem_type, reloaded):
    options = {"problem_type": problem_type, "label_names": ["x", "y"]}
    classifier = tiny_classifier(tiny_backbone(), **options)
    texts = ["a b c", "d e", "h a", "g g g", "b", "a a"]
    labels = ["x", "y"] * 3 if problem_type == "single_label" else [["x"], [], ["y"]] * 2
    before, logits = classifier.classify(texts), classifier.predict(texts, verbose=0)
    found = classifier.calibrate(texts, labels)
    assert found["temperature"] == classifier.temperature != 1
    after = classifier.classify(texts)
    key = "label" if problem_type == "single_label" else "labels"
    assert [answer[key] for answer in after] == [answer[key] for answer in before]
    probabilities = classifier.probabilities(texts)
    named = [list(answer["probabilities"].values()) for answer in after]
    np.testing.assert_allclose(named, probabilities, rtol=1e-6)
    encoded = classifier.encode_labels(labels)
    assert found["after"] == pytest.approx(expected_calibration_error(probabilities, encoded))
    raw = class_probabilities(logits, problem_type)
    assert found["before"] == pytest.approx(expected_calibration_error(raw, encoded))
    np.testing.assert_array_equal(classifier.predict(texts, verbose=0), logits)
    assert reloaded(classifier).classify(texts) == after
    assert classifier.calibrate(texts, labels)["before"] == pytest.approx(found["after"])
