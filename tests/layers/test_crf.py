"""The conditional random field against the enumeration of all sequences."""

import itertools

import keras
import numpy as np
import pytest
from checks import assert_close, to_numpy
from keras import ops

from bert_keras.layers.crf import LinearChainCRF

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
    tags = rng.integers(0, TAGS, (BATCH, SEQ_LEN))
    return crf, emissions, tags


def score(crf, emissions, tags):
    """The score of one sequence, as the docstring defines it."""
    transitions, start, end = (to_numpy(w.value) for w in (crf.transitions, crf.start, crf.end))
    total = start[tags[0]] + end[tags[-1]] + sum(emissions[t, tag] for t, tag in enumerate(tags))
    return total + sum(transitions[pair] for pair in itertools.pairwise(tags))


def every_sequence(crf, emissions):
    """Returns all sequences of tags and their probabilities."""
    sequences = list(itertools.product(range(TAGS), repeat=len(emissions)))
    scores = np.array([score(crf, emissions, tags) for tags in sequences], "float64")
    return np.array(sequences), np.exp(scores) / np.exp(scores).sum()


def test_the_log_likelihood_is_that_of_all_sequences_enumerated(case):
    crf, emissions, tags = case
    actual = to_numpy(crf.log_likelihood(emissions, tags, MASK))
    for row, mask in enumerate(MASK.astype(bool)):
        if not mask.any():
            assert actual[row] == 0
            continue
        sequences, probabilities = every_sequence(crf, emissions[row, mask])
        index = np.flatnonzero((sequences == tags[row, mask]).all(-1))[0]
        np.testing.assert_allclose(actual[row], np.log(probabilities[index]), atol=1e-5)


def test_viterbi_finds_the_best_of_all_sequences(case):
    crf, emissions, _ = case
    actual = to_numpy(crf(emissions, MASK))
    assert actual.shape == (BATCH, SEQ_LEN)
    assert (actual[MASK == 0] == 0).all()
    for row, mask in enumerate(MASK.astype(bool)):
        if mask.any():
            sequences, probabilities = every_sequence(crf, emissions[row, mask])
            assert actual[row, mask].tolist() == sequences[probabilities.argmax()].tolist()


def test_marginals_sum_the_probabilities_of_all_sequences(case):
    crf, emissions, _ = case
    actual = to_numpy(crf.marginals(emissions, MASK))
    assert (actual[MASK == 0] == 0).all()
    for row, mask in enumerate(MASK.astype(bool)):
        if mask.any():
            sequences, probabilities = every_sequence(crf, emissions[row, mask])
            shares = [
                [probabilities[sequences[:, t] == tag].sum() for tag in range(TAGS)]
                for t in range(mask.sum())
            ]
            np.testing.assert_allclose(actual[row, mask], shares, atol=1e-5)


def test_without_a_mask_every_position_counts(case):
    crf, emissions, tags = case
    everything = np.ones_like(MASK)
    assert_close(
        crf.log_likelihood(emissions, tags), crf.log_likelihood(emissions, tags, everything)
    )
    assert_close(crf(emissions), crf(emissions, everything))


def test_with_weights_at_0_it_is_a_softmax_per_position():
    rng = np.random.default_rng(0)
    crf = LinearChainCRF(TAGS)
    crf.build()
    emissions = rng.normal(size=(BATCH, SEQ_LEN, TAGS)).astype("float32")
    tags = rng.integers(0, TAGS, (BATCH, SEQ_LEN))
    crossentropy = keras.losses.sparse_categorical_crossentropy(tags, emissions, from_logits=True)
    assert_close(
        crf.log_likelihood(emissions, tags, MASK), -ops.sum(crossentropy * MASK, axis=1), 1e-5
    )
    assert_close(crf.marginals(emissions), ops.softmax(emissions), 1e-6)
    assert (to_numpy(crf(emissions)) == emissions.argmax(-1)).all()


def test_positions_outside_the_mask_change_nothing(case):
    crf, emissions, tags = case
    other = np.where(MASK[..., None] == 1, emissions, 50.0).astype("float32")
    other_tags = np.where(MASK == 1, tags, 0)
    assert_close(
        crf.log_likelihood(emissions, tags, MASK), crf.log_likelihood(other, other_tags, MASK)
    )
    assert_close(crf(emissions, MASK), crf(other, MASK))


@pytest.mark.once
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
    np.testing.assert_allclose(likelihood, expected, atol=2e-2)  # of sums around 10,000


def test_gradients_are_observed_minus_expected_counts(case):
    """One step of plain descent moves each weight by its gradient."""
    crf, emissions, tags = case
    pairs, first, last = np.zeros((TAGS, TAGS)), np.zeros(TAGS), np.zeros(TAGS)

    def count(sequence, share):
        first[sequence[0]] += share
        last[sequence[-1]] += share
        for pair in itertools.pairwise(sequence):
            pairs[pair] += share

    for row, mask in enumerate(MASK.astype(bool)):
        if mask.any():
            count(tags[row, mask], 1)
            sequences, probabilities = every_sequence(crf, emissions[row, mask])
            for sequence, probability in zip(sequences, probabilities, strict=True):
                count(sequence, -probability)
    before = [to_numpy(weight.value) for weight in (crf.transitions, crf.start, crf.end)]
    after = train_one_step(crf, emissions, tags)
    for new, old, gradient in zip(after, before, (pairs, first, last), strict=True):
        np.testing.assert_allclose(new - old, gradient, atol=1e-5)


def test_gradients_reach_the_emissions(case):
    """A bias added to all emissions of a tag has the summed gradient of those emissions."""
    crf, emissions, tags = case
    marginals = to_numpy(crf.marginals(emissions, MASK))
    true = np.eye(TAGS)[tags] * MASK[..., None]
    expected = (true - marginals).sum((0, 1))
    bias = train_one_step(crf, emissions, tags, with_bias=True)[-1]
    np.testing.assert_allclose(bias, expected, atol=1e-5)


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


def train_one_step(crf, emissions, tags, with_bias=False):
    model = Chain(crf)
    model.compile(keras.optimizers.SGD(1.0))
    model.fit({"emissions": emissions, "mask": MASK}, tags, batch_size=BATCH, verbose=0)
    weights = [crf.transitions, crf.start, crf.end] + [model.bias] * with_bias
    return [to_numpy(weight.value) for weight in weights]


def test_it_compiles_for_sequences_of_any_length(case):
    """XLA compiles the loss although lengths differ between batches."""
    crf, _, _ = case
    rng = np.random.default_rng(1)

    class Batches(keras.utils.PyDataset):
        def __len__(self):
            return 3

        def __getitem__(self, index):
            length = (4, 7, 9)[index]
            emissions = rng.normal(size=(2, length, TAGS)).astype("float32")
            inputs = {"emissions": emissions, "mask": np.ones((2, length), "float32")}
            return inputs, rng.integers(0, TAGS, (2, length))

    model = Chain(crf)
    model.compile("sgd", jit_compile=keras.backend.backend() != "torch")
    history = model.fit(Batches(), verbose=0)
    assert np.isfinite(history.history["loss"]).all()


def test_it_computes_in_float32_under_any_policy():
    crf = LinearChainCRF(TAGS, dtype="mixed_bfloat16")
    crf.build()
    emissions = ops.ones((1, 4, TAGS), dtype="bfloat16")
    likelihood = crf.log_likelihood(emissions, np.zeros((1, 4), int))
    assert keras.backend.standardize_dtype(likelihood.dtype) == "float32"
    np.testing.assert_allclose(to_numpy(likelihood), 4 * np.log(1 / TAGS), rtol=1e-6)


def test_config_survives_the_round_trip():
    config = LinearChainCRF(TAGS, name="crf").get_config()
    assert LinearChainCRF.from_config(config).get_config() == config
