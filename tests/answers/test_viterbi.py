"""Decoding in NumPy against the Keras layer and against every sequence of tags."""

import itertools

import numpy as np
import pytest
from checks import to_numpy

from bert_keras.answers import viterbi
from bert_keras.answers.classes import softmax
from bert_keras.layers.crf import LinearChainCRF

TAGS = 3
LENGTHS = np.array([4, 0, 1, 5, 2, 5])


@pytest.fixture
def logits():
    rng = np.random.default_rng(0)
    return [rng.normal(0, 2, (length, TAGS)).astype("float32") for length in LENGTHS]


def marginals(logits, start, end, transitions):
    """Returns the probability of each tag at each word, summed over all sequences of tags."""
    found = np.zeros(logits.shape)
    for tags in map(
        list, itertools.product(range(TAGS), repeat=len(logits)) if len(logits) else ()
    ):
        words = np.arange(len(tags))
        score = start[tags[0]] + end[tags[-1]] + logits[words, tags].sum(dtype="float64")
        found[words, tags] += np.exp(score + transitions[tags[:-1], tags[1:]].sum())
    return found / found.sum(-1, keepdims=True)


def test_a_chain_s_tags_are_the_layer_s_and_its_probabilities_those_of_all_sequences(logits):
    crf, rng = LinearChainCRF(TAGS), np.random.default_rng(1)
    crf.build()
    for weight in crf.weights:
        weight.assign(rng.normal(0, 2, weight.shape))
    mask = np.arange(max(LENGTHS)) < LENGTHS[:, None]
    emissions = np.zeros((*mask.shape, TAGS), "float32")
    emissions[mask] = np.concatenate(logits)
    tags = to_numpy(crf.decode(emissions, mask))
    chain = tuple(to_numpy(weight.value) for weight in (crf.start, crf.end, crf.transitions))
    found = viterbi.best_tags(logits, chain), viterbi.tag_probabilities(logits, chain)
    assert [list(map(len, rows)) for rows in found] == [LENGTHS.tolist()] * 2
    np.testing.assert_array_equal(np.concatenate(found[0]), tags[mask])
    for rows, probabilities in zip(logits, found[1], strict=True):
        np.testing.assert_allclose(probabilities, marginals(rows, *chain), atol=1e-5)
    assert viterbi.best_tags([], chain) == viterbi.tag_probabilities([], chain) == []


def test_the_sums_over_a_long_text_are_exact():
    rows, zeros = (
        np.random.default_rng(0).normal(0, 9, (5000, TAGS)).astype("float32"),
        np.zeros(TAGS),
    )
    chain = zeros, zeros, np.zeros((TAGS, TAGS))  # Words do not depend on each other.
    [found] = viterbi.tag_probabilities([rows], tuple(x.astype("float32") for x in chain))
    np.testing.assert_allclose(found, softmax(rows.astype("float64")), atol=1e-9)
