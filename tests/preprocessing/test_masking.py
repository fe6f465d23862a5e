"""Masks have the shares and the shapes that BERT, SpanBERT and ALBERT describe."""

import numpy as np
import pytest

from bert_keras.preprocessing import Masking, masking
from bert_keras.preprocessing.masking import STRATEGIES, TokenKinds
from bert_keras.tokenizers import WordPieceTokenizer

pytestmark = pytest.mark.once

SPECIAL_TOKENS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
PAD, UNK, CLS, SEP, MASK = range(5)
SIZE = 1005
KINDS = TokenKinds(MASK, np.arange(SIZE) < 5, np.arange(SIZE) >= 505)
# Standard deviations that a correct share may be off: one test in two million fails by chance.
BOUND = 5
by_strategy = pytest.mark.parametrize("strategy", STRATEGIES)


def make_rows(num_rows=2000, seed=0, sequence_length=128, continued=0.0):
    """Returns pairs of segments of random tokens, and their padding mask."""
    generator = np.random.default_rng(seed)
    token_ids = generator.integers(5, 505, (num_rows, sequence_length))
    is_continued = generator.random(token_ids.shape) < continued
    token_ids = np.where(is_continued, token_ids + 500, token_ids)
    lengths = generator.integers(sequence_length // 2, sequence_length + 1, num_rows)
    lengths[: num_rows // 2] = sequence_length
    borders = generator.integers(3, lengths - 3)
    rows = np.arange(num_rows)
    token_ids[:, 0] = CLS
    token_ids[rows, borders] = SEP
    token_ids[rows, lengths - 1] = SEP
    padding_mask = np.arange(sequence_length) < lengths[:, None]
    return np.where(padding_mask, token_ids, PAD), padding_mask


def run(settings, continued=0.0, seed=1, **options):
    token_ids, padding_mask = make_rows(continued=continued)
    masked = settings(token_ids, KINDS, np.random.default_rng(seed), padding_mask, **options)
    return token_ids, padding_mask, masked


def is_chosen(token_ids, masked):
    """Returns bool `(batch, seq_len)` from the positions."""
    chosen = np.zeros(token_ids.shape, bool)
    rows, places = np.nonzero(masked.weights)
    chosen[rows, masked.mask_positions[rows, places]] = True
    return chosen


def check_share(successes, trials, expected):
    bound = BOUND * np.sqrt(expected * (1 - expected) / trials)
    assert abs(successes / trials - expected) <= bound, (successes / trials, expected, bound)


@by_strategy
def test_outputs_describe_exactly_what_was_masked(strategy):
    token_ids, padding_mask, masked = run(Masking(strategy=strategy), continued=0.3)
    assert [field.dtype.name for field in masked] == ["int32", "int32", "int32", "float32"]
    assert masked.mask_positions.shape == masked.labels.shape == masked.weights.shape == (2000, 20)
    rows, places = np.nonzero(masked.weights)
    columns = masked.mask_positions[rows, places]
    # Restoring the labels restores the rows; nothing else was changed.
    restored = masked.token_ids.copy()
    restored[rows, columns] = masked.labels[rows, places]
    np.testing.assert_array_equal(restored, token_ids)
    # Positions increase, and padding comes last, all zero.
    is_padding = masked.weights == 0
    assert (np.diff(masked.weights, axis=1) <= 0).all()
    assert (np.diff(masked.mask_positions, axis=1) > 0)[~is_padding[:, 1:]].all()
    assert not masked.mask_positions[is_padding].any() and not masked.labels[is_padding].any()
    assert padding_mask[rows, columns].all()


@by_strategy
def test_as_many_tokens_are_chosen_as_in_googles_code(strategy):
    _, padding_mask, masked = run(Masking(strategy=strategy))
    lengths = padding_mask.sum(axis=1)
    expected = [min(20, max(1, round(length * 0.15))) for length in lengths.tolist()]
    assert masked.weights.sum(axis=1).tolist() == expected
    share = masked.weights.sum() / lengths.sum()
    assert abs(share - 0.15) < 0.002


@by_strategy
def test_special_tokens_are_neither_chosen_nor_inserted(strategy):
    token_ids, padding_mask = make_rows()
    token_ids[:, 5], token_ids[:, 9] = MASK, UNK
    settings = Masking(rate=0.5, mask_share=0.0, random_share=1.0, strategy=strategy)
    masked = settings(token_ids, KINDS, np.random.default_rng(0), padding_mask)
    chosen = is_chosen(token_ids, masked)
    assert not chosen[token_ids < 5].any()
    assert masked.token_ids[chosen].min() >= 5
    # So words and spans end before special tokens.
    np.testing.assert_array_equal(masked.token_ids[token_ids < 5], token_ids[token_ids < 5])


@pytest.mark.parametrize("shares", [(0.8, 0.1), (1.0, 0.0), (0.0, 1.0), (0.0, 0.0), (0.4, 0.5)])
def test_replacements_have_their_shares(shares):
    token_ids, _, masked = run(Masking(mask_share=shares[0], random_share=shares[1]))
    chosen = is_chosen(token_ids, masked)
    after, before = masked.token_ids[chosen], token_ids[chosen]
    count = len(after)
    check_share(np.sum(after == MASK), count, shares[0])
    # A random token is the old one once in a thousand times.
    check_share(np.sum((after != MASK) & (after != before)), count, shares[1] * 0.999)
    if shares == (0.0, 1.0):
        # Each of the 1,000 tokens is as likely: chi-squared, mean 999, five deviations.
        counts = np.bincount(after, minlength=SIZE)[5:]
        statistic = np.sum((counts - count / 1000) ** 2) / (count / 1000)
        assert abs(statistic - 999) < BOUND * np.sqrt(2 * 999)


def rows_of_sevens(num_rows, length):
    token_ids = np.full((num_rows, length), 7)
    token_ids[:, 0], token_ids[:, -1] = CLS, SEP
    return token_ids


def test_every_token_is_equally_likely_to_be_chosen():
    token_ids = rows_of_sevens(20000, 23)
    token_ids[:, 11] = SEP
    masked = Masking()(token_ids, KINDS, np.random.default_rng(2), token_ids != PAD)
    counts = is_chosen(token_ids, masked).sum(axis=0)
    assert counts.sum() == 20000 * 3
    for count in counts[token_ids[0] == 7]:
        check_share(count, 20000, 3 / 20)


def word_numbers(token_ids):
    """Returns a different number for each word, and -1 for special tokens."""
    is_special = token_ids < 5
    begins = is_special | (token_ids < 505)
    begins[:, 1:] |= is_special[:, :-1]
    begins[:, 0] = True
    return np.where(is_special, -1, np.cumsum(begins).reshape(begins.shape))


@pytest.mark.parametrize("strategy", STRATEGIES[1:])
def test_words_are_chosen_whole(strategy):
    token_ids, _, masked = run(Masking(strategy=strategy), continued=0.4)
    chosen, numbers = is_chosen(token_ids, masked), word_numbers(token_ids)
    assert not set(numbers[chosen]) & set(numbers[~chosen & (numbers >= 0)])
    # Words that do not fit are replaced by shorter ones, so little of the rate is lost.
    assert masked.weights.sum() > 0.97 * run(Masking())[2].weights.sum()


def test_a_segmenters_words_override_those_of_the_vocabulary():
    token_ids = np.tile([CLS, *range(10, 18), SEP], (500, 1))
    starts = np.tile([1, 1, 0, 1, 0, 0, 0, 1, 0, 1], (500, 1))
    settings = Masking(rate=0.4, strategy="whole_words", mask_share=1.0, random_share=0.0)
    masked = settings(token_ids, KINDS, np.random.default_rng(0), token_ids != PAD, starts)
    seen = {tuple(np.flatnonzero(row == MASK)) for row in masked.token_ids}
    assert seen == {(1, 2, 7, 8), (3, 4, 5, 6)}


def test_lengths_of_spans_are_geometric_and_those_of_n_grams_inverse():
    lengths = Masking(strategy="spans").span_lengths()
    assert len(lengths) == 10 and np.isclose(lengths.sum(), 1)
    np.testing.assert_allclose(lengths[1:] / lengths[:-1], 0.8)
    # SpanBERT, section 3.1: "a mean span length of 3.8".
    assert round(float(lengths @ np.arange(1, 11)), 1) == 3.8
    for options, shares in (({}, [6, 3, 2]), ({"max_span_length": 4}, [12, 6, 4, 3])):
        lengths = Masking(strategy="n_grams", **options).span_lengths()
        np.testing.assert_allclose(lengths, np.array(shares) / sum(shares))


def test_n_grams_are_runs_of_words_whose_tokens_are_replaced_one_by_one():
    # So few of so many words that runs seldom meet, and the last is seldom cut.
    token_ids = rows_of_sevens(500, 402)
    settings = Masking(rate=0.05, strategy="n_grams", mask_share=0.5, random_share=0.5)
    masked = settings(token_ids, KINDS, np.random.default_rng(4), token_ids != PAD)
    chosen = np.pad(is_chosen(token_ids, masked), ((0, 0), (1, 1)))
    num_runs = np.sum(np.diff(chosen.astype(int), axis=1) == 1)
    assert abs(chosen.sum() / num_runs - 18 / 11) < 0.12
    is_hidden = np.pad(masked.token_ids == MASK, ((0, 0), (1, 1)))
    both = chosen[:, 1:] & chosen[:, :-1]
    alike = (is_hidden[:, 1:] == is_hidden[:, :-1])[both]
    check_share(alike.sum(), len(alike), 0.5)


@pytest.mark.bounded("A share of a sample of 2,700 spans has a standard deviation of up to 0.8 %.")
def test_spans_have_the_lengths_of_their_distribution():
    # So few of so many words that spans seldom meet, and the last is seldom cut.
    token_ids = rows_of_sevens(100, 2002)
    settings = Masking(rate=0.05, strategy="spans", mask_share=1.0, random_share=0.0)
    masked = settings(token_ids, KINDS, np.random.default_rng(4), token_ids != PAD)
    hidden = np.pad(masked.token_ids == MASK, ((0, 0), (1, 1))).astype(int)
    lengths = [np.nonzero(np.diff(hidden, axis=1) == sign)[1] for sign in (1, -1)]
    found = np.bincount(lengths[1] - lengths[0], minlength=12)[1:11] / len(lengths[0])
    np.testing.assert_allclose(found, settings.span_lengths(), atol=0.04)


def test_spans_stay_within_a_segment_and_are_replaced_as_a_whole():
    settings = Masking(strategy="spans", mask_share=0.5, random_share=0.5)
    token_ids, _, masked = run(settings)
    chosen = is_chosen(token_ids, masked)
    kinds = np.where(chosen, np.where(masked.token_ids == MASK, 1, 2), 0)
    alike = (kinds[:, 1:] == kinds[:, :-1])[chosen[:, 1:] & chosen[:, :-1]]
    # If each token were drawn alone, half of the neighbours would be alike.
    assert alike.mean() > 0.9
    assert abs(np.mean(masked.token_ids[chosen] == MASK) - 0.5) < 0.02
    token_ids = np.tile([CLS, 7, 8, SEP, 9, 10, SEP], (500, 1))
    words = masking._Words(token_ids >= 5, np.ones(token_ids.shape, bool))
    _, groups = words.choose_spans(np.full(500, 4), np.random.default_rng(0), settings)
    # There are spans of several words within a segment, and none that crosses [SEP].
    assert np.mean(groups[:, 1] == groups[:, 2]) > 0.2
    assert not (groups[:, 2] == groups[:, 4]).any()


@by_strategy
def test_the_same_generator_gives_the_same_masks(strategy):
    masking = Masking(strategy=strategy)
    first, again, other = (run(masking, continued=0.3, seed=seed)[2] for seed in (5, 5, 6))
    np.testing.assert_equal(first, again)
    assert (first.token_ids != other.token_ids).any()


def test_max_predictions_is_a_limit_and_the_width():
    masked = run(Masking(max_predictions=7))[2]
    assert masked.weights.shape == (2000, 7) and masked.weights.sum(axis=1).max() == 7
    assert Masking().num_predictions(128) == 20 and Masking().num_predictions(512) == 77


@by_strategy
def test_a_short_row_has_one_prediction_and_an_empty_one_none(strategy):
    token_ids = np.array([[CLS, 7, SEP, 0], [CLS, SEP, 0, 0], [0, 0, 0, 0]])
    padding_mask = token_ids != PAD
    masked = Masking(strategy=strategy)(token_ids, KINDS, np.random.default_rng(0), padding_mask)
    assert masked.weights.tolist() == masked.mask_positions.tolist() == [[1], [0], [0]]


def test_a_tokenizer_gives_the_kinds_of_its_tokens():
    kinds = TokenKinds.from_tokenizer(WordPieceTokenizer([*SPECIAL_TOKENS, "a", "##b", "#"]))
    assert kinds.mask_id == MASK
    assert kinds.is_special.tolist() == [True] * 5 + [False] * 3
    assert kinds.continues_word.tolist() == [False] * 6 + [True, False]
