"""Decoding with a chain, against every sequence of tags and against the Keras layer."""

import itertools

import numpy as np
import pytest
from checks import to_numpy

from bert_keras.answers import viterbi
from bert_keras.answers.probabilities import softmax
from bert_keras.layers.crf import LinearChainCRF

TAGS = 3
LENGTHS = (4, 0, 1, 5, 2, 5)


@pytest.fixture
def case():
    rng = np.random.default_rng(0)
    shapes = (TAGS,), (TAGS,), (TAGS, TAGS)
    chain = tuple(rng.normal(0, 2, shape).astype("float32") for shape in shapes)
    return [rng.normal(0, 2, (length, TAGS)).astype("float32") for length in LENGTHS], chain


def every_sequence(emissions, chain):
    """Returns all sequences of tags, and their probabilities."""
    start, end, transitions = chain
    sequences = np.array(list(itertools.product(range(TAGS), repeat=len(emissions))))
    scores = start[sequences[:, 0]] + end[sequences[:, -1]]
    scores = scores + emissions[np.arange(len(emissions)), sequences].sum(axis=1)
    scores = scores + transitions[sequences[:, :-1], sequences[:, 1:]].sum(axis=1)
    return sequences, np.exp(scores) / np.exp(scores).sum()


@pytest.mark.parametrize("at_once", [2**22, 2 * TAGS**2])
def test_tags_and_probabilities_are_those_of_all_sequences_enumerated(case, at_once, monkeypatch):
    monkeypatch.setattr(viterbi, "_SCORES_AT_ONCE", at_once)
    logits, chain = case
    best, shares = viterbi.best_tags(logits, chain), viterbi.tag_probabilities(logits, chain)
    for emissions, tags, probabilities in zip(logits, best, shares, strict=True):
        assert tags.shape == (len(emissions),) and probabilities.shape == emissions.shape
        if len(emissions):
            sequences, of_sequences = every_sequence(emissions, chain)
            assert tags.tolist() == sequences[of_sequences.argmax()].tolist()
            expected = of_sequences @ np.eye(TAGS)[sequences].transpose(1, 0, 2)
            np.testing.assert_allclose(probabilities, expected, atol=1e-6)


def test_the_layer_decodes_to_the_same(case):
    logits, chain = case
    crf = LinearChainCRF(TAGS)
    crf.build()
    for weight, value in zip((crf.start, crf.end, crf.transitions), chain, strict=True):
        weight.assign(value)
    mask = np.arange(max(LENGTHS)) < np.array(LENGTHS)[:, None]
    emissions = np.zeros((*mask.shape, TAGS), "float32")
    emissions[mask] = np.concatenate(logits)
    tags, probabilities = (to_numpy(f(emissions, mask)) for f in (crf.decode, crf.marginals))
    found = viterbi.best_tags(logits, chain), viterbi.tag_probabilities(logits, chain)
    np.testing.assert_array_equal(np.concatenate(found[0]), tags[mask])
    np.testing.assert_allclose(np.concatenate(found[1]), probabilities[mask], atol=1e-6)


def test_without_a_chain_each_word_stands_by_itself(case):
    logits, _ = case
    found = viterbi.best_tags(logits), viterbi.tag_probabilities(logits)
    for rows, tags, probabilities in zip(logits, *found, strict=True):
        assert tags.tolist() == rows.argmax(-1).tolist()
        np.testing.assert_array_equal(probabilities, softmax(rows))


def test_no_sentences_have_no_tags(case):
    assert viterbi.best_tags([], case[1]) == viterbi.tag_probabilities([], case[1]) == []
