import warnings

import numpy as np
import pytest
import scipy.stats

from bert_keras.metrics import correlation


def random_scores(rng, case):
    size = rng.integers(3, 30)
    if case % 2:
        return rng.integers(0, 4, size) / 2, rng.integers(0, 4, size) / 2
    return rng.normal(size=size), rng.normal(size=size) * 10.0 ** rng.integers(-6, 7)


@pytest.mark.filterwarnings("ignore")
def test_pearson_and_spearman_equal_scipy_with_ties_and_constants():
    rng = np.random.default_rng(0)
    for case in range(1000):
        pair = random_scores(rng, case)
        for function, reference in (
            (correlation.pearson, scipy.stats.pearsonr),
            (correlation.spearman, scipy.stats.spearmanr),
        ):
            np.testing.assert_allclose(function(*pair), reference(*pair)[0], rtol=0, atol=1e-12)


def test_average_ranks_equal_scipy():
    rng = np.random.default_rng(1)
    for _ in range(1000):
        values = rng.integers(0, 6, rng.integers(0, 15))
        np.testing.assert_array_equal(
            correlation.average_ranks(values), scipy.stats.rankdata(values)
        )


def test_constants_and_nan_give_nan_without_a_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for function in (correlation.pearson, correlation.spearman):
            assert np.isnan(function([1.0, 1.0, 1.0], [1.0, 2.0, 3.0]))
            assert np.isnan(function([1.0, 2.0], [0.1, 0.1]))
            assert np.isnan(function([1.0, np.nan, 2.0], [1.0, 2.0, 3.0]))


def test_extreme_scores_neither_overflow_nor_vanish():
    line = np.array([1.0, 2.0, 3.0])
    for scale in (1e-200, 1e200):
        assert correlation.pearson(line, line * scale) == pytest.approx(1.0)


def test_spearman_ignores_the_scale_and_pearson_does_not():
    rng = np.random.default_rng(2)
    true, predicted = rng.normal(size=50), rng.normal(size=50)
    assert correlation.spearman(true, np.exp(predicted)) == correlation.spearman(true, predicted)
    assert correlation.pearson(true, np.exp(predicted)) != correlation.pearson(true, predicted)


def test_bad_arrays_are_refused():
    for function in (correlation.pearson, correlation.spearman):
        with pytest.raises(ValueError, match="same length"):
            function([1.0, 2.0], [1.0])
        with pytest.raises(ValueError, match="1-D"):
            function([[1.0], [2.0]], [[1.0], [2.0]])
        with pytest.raises(ValueError, match="at least two"):
            function([1.0], [1.0])
        with pytest.raises(ValueError, match="at least two"):
            function([], [])
