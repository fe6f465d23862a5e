import warnings

import numpy as np
import pytest
import sklearn.metrics as sk

from bert_keras.metrics import classification

pytestmark = pytest.mark.filterwarnings("ignore")
AVERAGES = ["micro", "macro", "weighted", None]
NAMES = ("precision", "recall", "f1")


def random_classes(rng, max_classes=6):
    """Small sets: absent classes, constants and ties are common."""
    num_classes, size = rng.integers(1, max_classes + 1), rng.integers(1, 20)
    return rng.integers(0, num_classes, size), rng.integers(0, num_classes, size)


def random_indicators(rng):
    shape = rng.integers(1, 12), rng.integers(2, 6)
    share = rng.choice([0.0, 0.2, 0.5, 1.0])
    return (rng.random(shape) < share).astype(int), (rng.random(shape) < 0.4).astype(int)


def seed_of(zero_division):
    return int(zero_division == 0), int(zero_division == 1)


def assert_scores(scores, reference):
    for name, expected in zip(NAMES, reference, strict=False):
        np.testing.assert_allclose(scores[name], expected, rtol=1e-12, atol=0, err_msg=name)


def test_accuracy_equals_sklearn():
    rng = np.random.default_rng(0)
    for case in range(1000):
        pair = random_indicators(rng) if case % 2 else random_classes(rng)
        weights = rng.random(len(pair[0])) + 0.1 if case % 3 else None
        expected = sk.accuracy_score(*pair, sample_weight=weights)
        assert classification.accuracy(*pair, weights) == pytest.approx(expected, rel=1e-12)


def test_confusion_matrix_equals_sklearn():
    rng = np.random.default_rng(1)
    for case in range(1000):
        true, predicted = random_classes(rng)
        weights = rng.random(len(true)) if case % 2 else None
        expected = sk.confusion_matrix(true, predicted, labels=np.arange(8), sample_weight=weights)
        found = classification.confusion_matrix(true, predicted, 8, weights)
        np.testing.assert_allclose(found, expected, rtol=1e-12)
        assert found.dtype == expected.dtype


@pytest.mark.parametrize("zero_division", [0.0, 1.0, np.nan])
@pytest.mark.parametrize("average", AVERAGES)
def test_precision_recall_f1_of_classes_equal_sklearn(average, zero_division):
    rng = np.random.default_rng([2, AVERAGES.index(average), *seed_of(zero_division)])
    for case in range(1000):
        true, predicted = random_classes(rng)
        labels = None
        if case % 2:
            # Classes that occur nowhere, and fewer than occur, in any order. sklearn refuses
            # labels of which none is true.
            labels = rng.permutation(9)[: rng.integers(1, 10)]
            labels = np.append(labels[labels != true[0]], true[0])
        options = {"average": average, "labels": labels, "zero_division": zero_division}
        assert_scores(
            classification.precision_recall_f1(true, predicted, **options),
            sk.precision_recall_fscore_support(true, predicted, **options),
        )


@pytest.mark.parametrize("zero_division", [0.0, 1.0, np.nan])
@pytest.mark.parametrize("average", AVERAGES)
def test_precision_recall_f1_of_indicators_equal_sklearn(average, zero_division):
    rng = np.random.default_rng([3, AVERAGES.index(average), *seed_of(zero_division)])
    for case in range(1000):
        true, predicted = random_indicators(rng)
        labels = rng.permutation(true.shape[1])[: rng.integers(1, 3)] if case % 2 else None
        options = {"average": average, "labels": labels, "zero_division": zero_division}
        assert_scores(
            classification.precision_recall_f1(true, predicted, **options),
            sk.precision_recall_fscore_support(true, predicted, **options),
        )


@pytest.mark.parametrize("zero_division", [0.0, 1.0])
def test_binary_precision_recall_f1_equal_sklearn(zero_division):
    rng = np.random.default_rng([4, int(zero_division)])
    for case in range(1000):
        true, predicted = random_classes(rng, max_classes=2)
        positive = case % 2 if len(np.union1d(true, predicted)) == 2 else 1
        assert_scores(
            classification.precision_recall_f1(
                true, predicted, positive=positive, zero_division=zero_division
            ),
            sk.precision_recall_fscore_support(
                true, predicted, average="binary", pos_label=positive, zero_division=zero_division
            ),
        )


def test_scores_of_label_names_equal_sklearn():
    rng = np.random.default_rng(5)
    names = np.array(["yes", "no", "maybe"])
    for _ in range(1000):
        true, predicted = names[rng.integers(0, 3, 7)], names[rng.integers(0, 3, 7)]
        assert_scores(
            classification.precision_recall_f1(true, predicted, average="macro"),
            sk.precision_recall_fscore_support(true, predicted, average="macro", zero_division=0),
        )
        assert classification.matthews_correlation(true, predicted) == pytest.approx(
            sk.matthews_corrcoef(true, predicted), abs=1e-12
        )


def test_an_absent_label_name_longer_than_the_others_is_not_cut():
    scores = classification.precision_recall_f1(
        ["a", "b"], ["a", "b"], average=None, labels=["a", "bb"]
    )
    assert scores["f1"].tolist() == [1.0, 0.0]


def test_matthews_correlation_equals_sklearn():
    rng = np.random.default_rng(6)
    for _ in range(1000):
        true, predicted = random_classes(rng)
        expected = sk.matthews_corrcoef(true, predicted)
        assert classification.matthews_correlation(true, predicted) == pytest.approx(
            expected, abs=1e-12
        )


def test_matthews_correlation_does_not_overflow():
    true = np.tile([0, 0, 1, 1], 250_000)
    predicted = np.tile([0, 0, 1, 0], 250_000)
    assert classification.matthews_correlation(true, predicted) == pytest.approx(3**-0.5)


def test_matthews_correlation_is_zero_for_constant_predictions():
    assert classification.matthews_correlation([0, 1, 1], [1, 1, 1]) == 0.0
    assert classification.matthews_correlation([1, 1], [1, 1]) == 0.0


def best_f1_by_sklearn(true, scores):
    """The best F1 of all cuts between scores, and of predicting nothing."""
    if not true.any():
        return 0.0
    precision, recall, _ = sk.precision_recall_curve(true, scores)
    return (2 * precision * recall / np.maximum(precision + recall, 1e-12)).max()


def test_tuned_thresholds_reach_the_best_f1_of_an_exhaustive_search_by_sklearn():
    rng = np.random.default_rng(7)
    num_empty = num_ties = 0
    for case in range(1000):
        size = rng.integers(1, 12)
        true = rng.random(size) < rng.choice([0.0, 0.3, 0.8])
        scores = rng.random(size) if case % 2 else rng.integers(0, 5, size) / 4
        (threshold,) = classification.tune_thresholds(true[:, None], scores[:, None])
        num_empty += not true.any()
        num_ties += len(np.unique(scores)) < size
        best = best_f1_by_sklearn(true, scores)
        found = sk.f1_score(true, scores >= threshold, zero_division=0.0)
        assert found == pytest.approx(best, abs=1e-9)
        if sk.f1_score(true, scores >= 0.5, zero_division=0.0) == found:
            assert threshold == 0.5
    assert num_empty > 100 and num_ties > 100


def test_tuned_thresholds_are_found_label_by_label():
    rng = np.random.default_rng(9)
    true, scores = rng.integers(0, 2, (40, 28)), rng.random((40, 28))
    thresholds = classification.tune_thresholds(true, scores)
    for label in range(28):
        alone = classification.tune_thresholds(true[:, [label]], scores[:, [label]])
        assert alone == thresholds[label]
    tuned = sk.f1_score(true, scores >= thresholds, average="macro")
    assert tuned > sk.f1_score(true, scores >= 0.5, average="macro")


def test_tuning_prefers_the_threshold_nearest_to_the_default_then_the_lower():
    # Right above 0.25 or above 0.75: F1 is 2/3 either way.
    true = [[1], [0], [0], [1]]
    scores = [[1.0], [0.5], [0.5], [0.0]]
    assert classification.tune_thresholds(true, scores).tolist() == [0.75]
    assert classification.tune_thresholds(true, scores, default=0.0).tolist() == [0.0]


def test_tuning_does_not_depend_on_the_order_of_examples():
    rng = np.random.default_rng(8)
    true, scores = rng.integers(0, 2, (50, 3)), rng.integers(0, 10, (50, 3)) / 9
    order = rng.permutation(50)
    np.testing.assert_array_equal(
        classification.tune_thresholds(true, scores),
        classification.tune_thresholds(true[order], scores[order]),
    )


def test_undefined_fractions_do_not_warn():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        scores = classification.precision_recall_f1([0, 0], [0, 0])
    assert scores == {"precision": 0.0, "recall": 0.0, "f1": 0.0}


@pytest.mark.parametrize(
    "function",
    [
        classification.accuracy,
        classification.confusion_matrix,
        classification.precision_recall_f1,
        classification.matthews_correlation,
    ],
)
def test_bad_labels_are_refused(function):
    with pytest.raises(ValueError, match="at least one label"):
        function([], [])
    with pytest.raises(ValueError, match="same shape"):
        function([0, 1], [0])
    with pytest.raises(ValueError, match="whole numbers"):
        function([0, 1], [0.2, 0.8])
    with pytest.raises(ValueError, match="whole numbers"):
        function([0.0, np.nan], [0, 1])
    with pytest.raises(ValueError, match="indicators"):
        function([[0, 2]], [[0, 1]])
    with pytest.raises(ValueError, match="1-D"):
        function(1, 1)
    with pytest.raises(ValueError, match="of one kind"):
        function(["0", "1"], [0, 1])
    for odd in (None, np.nan):
        for true in (["a", odd], np.array(["a", odd], dtype=object)):
            with pytest.raises(ValueError, match=r"needs a true label\..* at the index 1"):
                function(true, ["a", "b"])
    with pytest.raises(ValueError, match=r"all strings or all numbers\. Received 3 at the index 1"):
        function(["a", "b"], ["a", 3])
    with pytest.raises(ValueError, match="needs a predicted label"):
        function([0, 1], [0, None])


def test_one_column_is_one_label():
    rng = np.random.default_rng(10)
    for _ in range(1000):
        true, predicted = rng.integers(0, 2, (2, rng.integers(1, 9), 1))
        for average in ("micro", "macro", "weighted"):
            found = classification.precision_recall_f1(true, predicted, average)
            reference = sk.precision_recall_fscore_support(
                true[:, 0], predicted[:, 0], labels=[1], average=average, zero_division=0.0
            )
            assert tuple(found.values()) == pytest.approx(reference[:3])
        assert classification.accuracy(true, predicted) == sk.accuracy_score(true, predicted)


def test_columns_of_objects_are_read_as_what_they_hold():
    true, predicted = np.array([*"abba"], dtype=object), ["a", "b", "a", "a"]
    assert classification.accuracy(true, predicted) == 0.75
    assert classification.accuracy(np.array([0, 1], dtype=object), [0, 0]) == 0.5


def test_options_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="average"):
        classification.precision_recall_f1([0, 1], [0, 1], average="mean")
    with pytest.raises(ValueError, match="two classes"):
        classification.precision_recall_f1([0, 1, 2], [0, 1, 2])
    with pytest.raises(ValueError, match="positive"):
        classification.precision_recall_f1([0, 2], [0, 2])
    with pytest.raises(ValueError, match="binary"):
        classification.precision_recall_f1([[0, 1]], [[0, 1]])
    with pytest.raises(ValueError, match="between 0 and 1"):
        classification.confusion_matrix([0, 2], [0, 1], num_classes=2)
    with pytest.raises(ValueError, match="between 0 and 1"):
        classification.confusion_matrix([0, -100], [0, 1])
    with pytest.raises(ValueError, match="one number per example"):
        classification.accuracy([0, 1], [0, 1], weights=[1.0])
    with pytest.raises(ValueError, match="sum to 0"):
        classification.accuracy([0, 1], [0, 1], weights=[0.0, 0.0])
    with pytest.raises(ValueError, match="finite"):
        classification.tune_thresholds([[0], [1]], [[0.1], [np.nan]])
    with pytest.raises(ValueError, match="only 0 and 1"):
        classification.tune_thresholds([[0], [2]], [[0.1], [0.2]])
    with pytest.raises(ValueError, match="num_examples, num_labels"):
        classification.tune_thresholds([0, 1], [0.1, 0.2])
