"""Attention pooling: one learned query over the vectors that exist."""

import numpy as np
import pytest
import scipy.special
from checks import assert_close, to_numpy

from bert_keras.layers.attention_pooling import AttentionPooling

pytestmark = pytest.mark.once

VECTORS = np.random.default_rng(0).normal(size=(3, 4, 8)).astype("float32")
EXISTS = np.array([[1, 1, 1, 1], [1, 0, 1, 0], [0, 0, 0, 0]], bool)


def layer(initializer_range=0.5, **options):
    made = AttentionPooling(8, initializer_range, **options)
    made.build()
    made.dense.bias.assign(np.linspace(-1, 1, 8))
    return made


@pytest.mark.each_backend
def test_vectors_are_weighted_by_the_softmax_of_their_scores():
    pooling = layer()
    kernel, bias, query = pooling.get_weights()
    scores = np.where(EXISTS, np.squeeze(np.tanh(VECTORS @ kernel + bias) @ query), -1e9)
    expected = np.einsum("bn,bnd->bd", scipy.special.softmax(scores, axis=1), VECTORS)
    assert_close(pooling(VECTORS, EXISTS), expected, 1e-5)


def test_vectors_that_do_not_exist_change_nothing():
    pooling = layer()
    changed = np.where(EXISTS[..., None], VECTORS, 99).astype("float32")
    assert_close(pooling(changed[:2], EXISTS[:2]), pooling(VECTORS[:2], EXISTS[:2]))
    assert_close(pooling(VECTORS[1:2, [0, 2]]), pooling(VECTORS[1:2], EXISTS[1:2]), 1e-6)


def test_small_weights_give_the_mean():
    assert_close(layer(1e-6)(VECTORS), VECTORS.mean(1), 1e-5)
    assert_close(layer()(VECTORS, EXISTS)[2], VECTORS[2].mean(0), 1e-5)


def test_half_precision_masks_too():
    whole, half = layer(), layer(dtype="float16")
    half.set_weights(whole.get_weights())
    halves = to_numpy(half(VECTORS, EXISTS))
    assert halves.dtype == "float16"
    assert_close(halves.astype("float32"), whole(VECTORS, EXISTS), 1e-2)
