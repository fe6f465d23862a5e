"""The conditional random field against the enumeration of all sequences."""

import itertools

import keras
import numpy as np
import pytest
from checks import assert_close, compute, made_again, to_numpy
from keras import ops
from tiny import Batches

from bert_keras.layers.crf import LinearChainCRF

pytestmark = pytest.mark.once

BATCH, SEQ_LEN, TAGS = 6, 5, 3
# Full rows, padding at the end, gaps, a masked beginning, one position, none.
MASK = np.array(
    [
        [1, 1, 1, 1, 1],
        [1, 1, 1, 0, 0],
        [1, 0, 0, 1, 1],
        [0, 1, 0, 1, 0],
        [0, 0, 1, 0, 0],
        [0, 0, 0, 0, 0],
    ]
)


@pytest.fixture
def case():
    rng = np.random.default_rng(0)
    crf = LinearChainCRF(TAGS)
    crf.build()
    for weight in crf.weights:
        weight.assign(rng.normal(size=weight.shape))
    emissions = rng.normal(size=(BATCH, SEQ_LEN, TAGS)).astype("float32")
    return crf, emissions, rng.integers(0, TAGS, (BATCH, SEQ_LEN))


def every_sequence(crf, emissions):
    """Returns all sequences of tags and their probabilities, as the docstring defines them."""
    transitions, start, end = map(to_numpy, (crf.transitions, crf.start, crf.end))
    tags = np.array(list(itertools.product(range(TAGS), repeat=len(emissions))))
    scores = start[tags[:, 0]] + end[tags[:, -1]] + transitions[tags[:, :-1], tags[:, 1:]].sum(1)
    scores = scores + emissions[np.arange(len(emissions)), tags].sum(1, dtype="float64")
    return tags, np.exp(scores) / np.exp(scores).sum()


def rows_of(crf, emissions):
    """Yields each row that has positions: its number, its mask, all sequences, probabilities."""
    for row, mask in enumerate(MASK.astype(bool)):
        if mask.any():
            yield row, mask, *every_sequence(crf, emissions[row, mask])


@pytest.mark.each_backend
def test_likelihoods_and_tags_are_those_of_all_sequences_enumerated(case):
    crf, emissions, tags = case
    likelihoods = to_numpy(compute(crf.log_likelihood, emissions, tags, MASK))
    decoded = to_numpy(compute(crf, emissions, MASK))
    assert decoded.shape == (BATCH, SEQ_LEN)
    assert not decoded[MASK == 0].any()
    assert (likelihoods[~MASK.any(1)] == 0).all()
    for row, mask, sequences, probabilities in rows_of(crf, emissions):
        (index,) = np.flatnonzero((sequences == tags[row, mask]).all(-1))
        np.testing.assert_allclose(likelihoods[row], np.log(probabilities[index]), atol=1e-5)
        assert decoded[row, mask].tolist() == sequences[probabilities.argmax()].tolist()


def test_without_a_mask_every_position_counts(case):
    crf, emissions, tags = case
    everything = np.ones_like(MASK)
    whole = crf.log_likelihood(emissions, tags, everything)
    assert_close(crf.log_likelihood(emissions, tags), whole)
    assert_close(crf(emissions), crf(emissions, everything))


def test_a_long_sequence_keeps_its_precision():
    rng = np.random.default_rng(0)
    crf = LinearChainCRF(TAGS)
    crf.build()
    crf.transitions.assign(rng.normal(size=(TAGS, TAGS)) * 5)
    emissions = (rng.normal(size=(1, 500, TAGS)) * 20).astype("float32")
    best = crf(emissions)
    likelihood = to_numpy(crf.log_likelihood(emissions, best))[0]
    transitions = to_numpy(crf.transitions.value)
    sums, best_sums = emissions[0, 0].astype("float64"), emissions[0, 0].astype("float64")
    for row in emissions[0, 1:].astype("float64"):
        paths = sums[:, None] + transitions
        sums = np.logaddexp.reduce(paths, axis=0) + row
        best_sums = (best_sums[:, None] + transitions).max(axis=0) + row
    expected = best_sums.max() - np.logaddexp.reduce(sums)
    np.testing.assert_allclose(
        likelihood, expected, atol=8e-2
    )  # Of sums around 10,000, where float32 has steps of 0.001.


class Chain(keras.Model):
    """Adds a bias to emissions and trains by the field's likelihood."""

    def __init__(self, crf):
        super().__init__()
        self.crf = crf
        self.bias = self.add_weight(shape=(TAGS,), initializer="zeros", name="bias")
        self.built = True

    def call(self, x):
        return x["emissions"] + self.bias

    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
        return -ops.sum(self.crf.log_likelihood(y_pred, y, x["mask"]))


@pytest.mark.each_backend
def test_gradients_are_observed_minus_expected_counts(case):
    """One step of plain descent moves each weight by its gradient; a bias, by the emissions'."""
    crf, emissions, tags = case
    counts = [np.zeros((TAGS, TAGS)), *np.zeros((3, TAGS))]
    pairs, first, last, each = counts
    for row, mask, sequences, probabilities in rows_of(crf, emissions):
        sequences = np.stack([tags[row, mask], *sequences])
        for sequence, share in zip(sequences, [1.0, *-probabilities], strict=True):
            first[sequence[0]] += share
            last[sequence[-1]] += share
            np.add.at(each, sequence, share)
            np.add.at(pairs, (sequence[:-1], sequence[1:]), share)
    model = Chain(crf)
    weights = [crf.transitions, crf.start, crf.end, model.bias]
    before = [to_numpy(weight.value).copy() for weight in weights]
    model.compile(keras.optimizers.SGD(1.0))
    model.fit({"emissions": emissions, "mask": MASK}, tags, batch_size=BATCH, verbose=0)
    for weight, old, gradient in zip(weights, before, counts, strict=True):
        assert_close(weight.value, old + gradient, 1e-5)


@pytest.mark.each_backend
def test_it_compiles_for_sequences_of_any_length(case):
    """XLA compiles the loss although lengths differ between batches."""
    crf, emissions, tags = case
    lengths = [{"emissions": emissions[:, :n], "mask": MASK[:, :n]} for n in (3, 4, 5)]
    batches = [(inputs, tags[:, : inputs["mask"].shape[1]]) for inputs in lengths]
    model = Chain(crf)
    model.compile("sgd", jit_compile=keras.backend.backend() != "torch")
    history = model.fit(Batches(batches), verbose=0)
    assert np.isfinite(history.history["loss"]).all()


def test_it_computes_in_float32_under_any_policy_and_is_made_again_from_its_config():
    crf = made_again(LinearChainCRF(TAGS, dtype="mixed_bfloat16", name="crf"))
    crf.build()
    emissions = ops.ones((1, 4, TAGS), dtype="bfloat16")
    likelihood = crf.log_likelihood(emissions, np.zeros((1, 4), int))
    assert keras.backend.standardize_dtype(likelihood.dtype) == "float32"
    np.testing.assert_allclose(to_numpy(likelihood), 4 * np.log(1 / TAGS), rtol=1e-6)
