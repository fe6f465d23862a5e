import ml_dtypes
import numpy as np
import pytest
import sklearn.metrics
from scipy.stats import rankdata
from sklearn.metrics.pairwise import cosine_similarity

from bert_keras.metrics import retrieval


def random_search(rng, case):
    shape = rng.integers(1, 6), rng.integers(2, 8)
    similarities = rng.random(shape) if case % 2 else rng.integers(0, 3, shape) / 2
    return similarities, rng.integers(0, shape[1], shape[0])


def test_cosines_equal_sklearn():
    rng = np.random.default_rng(0)
    for case in range(1000):
        width = rng.integers(1, 5)
        vectors = [rng.integers(-2, 3, (rng.integers(1, 5), width)) for _ in range(2)]
        if case % 2:
            vectors = [array * rng.random(array.shape) * 1e3 for array in vectors]
        found = retrieval.cosine_similarity_matrix(*vectors)
        np.testing.assert_allclose(found, cosine_similarity(*vectors), atol=1e-12)


def test_cosines_keep_float32_and_raise_float16():
    for given, kept in (("float16", "float32"), ("float32", "float32"), ("float64", "float64")):
        vectors = np.ones((2, 3), given)
        assert retrieval.cosine_similarity_matrix(vectors, vectors).dtype == kept


def test_reciprocal_rank_of_one_relevant_document_equals_sklearn_and_scipy():
    rng = np.random.default_rng(1)
    for case in range(1000):
        similarities, relevant = random_search(rng, case)
        found = retrieval.mean_reciprocal_rank(similarities, relevant)
        indicators = np.eye(similarities.shape[1], dtype=int)[relevant]
        expected = sklearn.metrics.label_ranking_average_precision_score(indicators, similarities)
        assert found == pytest.approx(expected)
        assert retrieval.mean_reciprocal_rank(similarities, indicators) == found
        ranks = rankdata(-similarities, method="max", axis=1)
        assert found == pytest.approx((1 / ranks[np.arange(len(ranks)), relevant]).mean())


def test_recall_of_one_relevant_document_equals_ranks_by_scipy():
    rng = np.random.default_rng(2)
    for case in range(1000):
        similarities, relevant = random_search(rng, case)
        ranks = rankdata(-similarities, method="max", axis=1)[np.arange(len(relevant)), relevant]
        for k in (1, 2, 5, 100):
            found = retrieval.recall_at_k(similarities, relevant, k)
            assert found == pytest.approx((ranks <= k).mean())


def reference_ranking(similarities, relevant):
    """Documents from best to worst, relevant ones last among equals."""
    return sorted(range(len(relevant)), key=lambda i: (-similarities[i], relevant[i]))


def test_several_relevant_documents_equal_a_plain_ranking():
    rng = np.random.default_rng(3)
    for case in range(1000):
        similarities, first = random_search(rng, case)
        relevant = rng.integers(0, 2, similarities.shape)
        relevant[np.arange(len(first)), first] = 1
        rankings = [reference_ranking(*row) for row in zip(similarities, relevant, strict=True)]
        hits = [[row[i] for i in rank] for row, rank in zip(relevant, rankings, strict=True)]
        expected = np.mean([1 / (1 + row.index(1)) for row in hits])
        assert retrieval.mean_reciprocal_rank(similarities, relevant) == pytest.approx(expected)
        k = int(rng.integers(1, 5))
        expected = np.mean([sum(row[:k]) / sum(row) for row in hits])
        assert retrieval.recall_at_k(similarities, relevant, k) == pytest.approx(expected)


def test_a_model_that_cannot_tell_documents_apart_ranks_the_right_one_last():
    assert retrieval.mean_reciprocal_rank(np.zeros((3, 4)), [0, 1, 2]) == 0.25
    assert retrieval.recall_at_k(np.zeros((3, 4)), [0, 1, 2], k=3) == 0.0


@pytest.mark.parametrize("dtype", ["uint8", "bool", "int8", ml_dtypes.bfloat16])
def test_whole_numbers_are_ranked_like_floats(dtype):
    similarities = np.array([[0, 1, 1], [1, 0, 0]], dtype)
    assert retrieval.recall_at_k(similarities, [0, 0], 1) == 0.5
    assert retrieval.mean_reciprocal_rank(similarities, [0, 0]) == pytest.approx(2 / 3)


def test_bad_arrays_are_refused():
    for function in (
        retrieval.mean_reciprocal_rank,
        lambda similarities, relevant: retrieval.recall_at_k(similarities, relevant, 1),
    ):
        with pytest.raises(ValueError, match="not empty"):
            function(np.zeros((0, 3)), [])
        with pytest.raises(ValueError, match=r"must be numbers\. Received: dtype"):
            function([["a", "b"]], [0])
        with pytest.raises(ValueError, match="NaN"):
            function([[np.nan, 1.0]], [0])
        with pytest.raises(ValueError, match="from 0 to 1"):
            function([[0.5, 1.0]], [2])
        with pytest.raises(ValueError, match="one document number"):
            function([[0.5, 1.0]], [0, 1, 0])
        with pytest.raises(ValueError, match="query 1"):
            function([[0.5, 1.0], [0.5, 1.0]], [[1, 0], [0, 0]])
    with pytest.raises(ValueError, match="an int from 1"):
        retrieval.recall_at_k([[0.5, 1.0]], [0], 0)
    with pytest.raises(ValueError, match="same number of columns"):
        retrieval.cosine_similarity_matrix([[1.0, 2.0]], [[1.0]])
