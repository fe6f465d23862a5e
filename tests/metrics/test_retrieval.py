"""Rankings by cosine, against scikit-learn."""

import numpy as np
from sklearn.metrics.pairwise import cosine_similarity

from bert_keras.metrics import retrieval


def test_cosines_equal_sklearn():
    rng = np.random.default_rng(0)
    for case in range(300):
        width = rng.integers(1, 5)
        vectors = [rng.integers(-2, 3, (rng.integers(1, 5), width)) for _ in range(2)]
        if case % 2:
            vectors = [array * rng.random(array.shape) * 1e3 for array in vectors]
        found = retrieval.cosine_similarity_matrix(*vectors)
        np.testing.assert_allclose(found, cosine_similarity(*vectors), atol=1e-12)


def test_cosines_keep_float32_and_raise_float16():
    for dtype, kept in (("float16", "float32"), ("float32", "float32"), ("float64", "float64")):
        vectors = np.ones((2, 3), dtype)
        assert retrieval.cosine_similarity_matrix(vectors, vectors).dtype == kept
