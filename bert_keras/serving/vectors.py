"""Vectors in the forms that clients request: cut, of length 1, compared, of truncated texts."""

import numpy as np

from bert_keras.answers.similarity import l2_normalize, similarity_matrix
from bert_keras.serving.rows import check


def direction_options(value):
    """Returns the options of `ask` for a truncation direction, `"left"`, `"right"` or `None`."""
    is_known = value is None or (isinstance(value, str) and value.lower() in ("left", "right"))
    check(is_known, f"truncation_direction: `left` or `right` is needed. Received: {value!r:.60}.")
    if value is None:
        return {}
    # Texts that are cut on the left keep their tail.
    truncation = "tail" if value.lower() == "left" else "longest_first"
    return {"changes": (("truncation", truncation),)}


def similarities(served, vectors):
    """Returns the model's similarity of the first vector and each other one, a list of float."""
    vectors = np.array(vectors)
    similarity = served.setting("similarity") or "cosine"
    return similarity_matrix(similarity, vectors[:1], vectors[1:])[0].tolist()


def shortened(vectors, normalize, dimensions=None):
    """Returns the first dimensions of vectors, scaled to length 1 if `normalize`."""
    vectors = np.array(vectors)
    width = vectors.shape[1]
    is_size = dimensions is None or (type(dimensions) is int and 1 <= dimensions <= width)
    check(is_size, f"dimensions: an int from 1 to {width} is needed. Received: {dimensions!r:.60}.")
    vectors = vectors[:, :dimensions]
    return l2_normalize(vectors) if normalize else vectors
