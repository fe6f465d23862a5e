"""Similarities of vectors, against scikit-learn."""

import numpy as np
import pytest
from sklearn.metrics import pairwise

from bert_keras.answers.similarity import similarity_matrix

SIMILARITIES = {
    "cosine": pairwise.cosine_similarity,
    "dot": pairwise.linear_kernel,
    "euclidean": lambda x, y: -pairwise.euclidean_distances(x, y),
    "manhattan": lambda x, y: -pairwise.manhattan_distances(x, y),
}


@pytest.mark.parametrize("similarity", SIMILARITIES)
def test_similarities_equal_sklearn(similarity):
    rng = np.random.default_rng(0)
    for case in range(100):
        width = rng.integers(1, 5)
        vectors = [rng.integers(-2, 3, (rng.integers(1, 5), width)) for _ in range(2)]
        if case % 2:
            vectors = [array * rng.random(array.shape) * 1e3 for array in vectors]
        found = similarity_matrix(*vectors, similarity)
        np.testing.assert_allclose(found, SIMILARITIES[similarity](*vectors), atol=1e-4)


def test_cosines_keep_float32_and_raise_float16():
    for dtype, kept in (("float16", "float32"), ("float32", "float32"), ("float64", "float64")):
        vectors = np.ones((2, 3), dtype)
        assert similarity_matrix(vectors, vectors).dtype == kept
