"""Masking for language models: which tokens are predicted, and what replaces them."""

from typing import Any, Literal, NamedTuple, Self, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bert_keras.checks import check_choice, check_int, check_number, raise_at_first
from bert_keras.preprocessing.ragged import positions_of
from bert_keras.tokenizers.tokenizer import Tokenizer
from bert_keras.types import Array

_Strategy: TypeAlias = Literal["pieces", "whole_words", "spans", "n_grams"]

STRATEGIES = ("pieces", "whole_words", "spans", "n_grams")


class MaskedTokens(NamedTuple):
    """A batch of masked rows.

    Attributes:
        token_ids: int32 `(batch, seq_len)`, with the chosen tokens masked.
        mask_positions: int32 `(batch, num_predictions)`, columns of the chosen tokens, increasing;
            0 after the last one.
        labels: int32 `(batch, num_predictions)`, the original ids; 0 after the last one.
        weights: float32 `(batch, num_predictions)`, 1 for chosen tokens, 0 after the last one.
    """

    token_ids: np.ndarray
    mask_positions: np.ndarray
    labels: np.ndarray
    weights: np.ndarray


class TokenKinds(NamedTuple):
    """What masking needs to know about a vocabulary.

    Attributes:
        mask_id: int, the id of `[MASK]`.
        is_special: bool `(vocabulary_size,)`, tokens that are never chosen and never replace one.
        continues_word: bool `(vocabulary_size,)`, pieces that continue a word, such as those with
            `##`; None if the vocabulary does not mark them.
    """

    mask_id: int
    is_special: np.ndarray
    continues_word: np.ndarray | None

    @classmethod
    def from_tokenizer(cls, tokenizer: Tokenizer) -> Self:
        """Returns the kinds of a `Tokenizer`'s tokens.

        Raises:
            ValueError: the vocabulary has no mask token, or only special tokens.
        """
        mask_id, is_special = tokenizer.mask_token_id, np.zeros(tokenizer.vocabulary_size, bool)
        is_special[tokenizer.special_token_ids] = True
        if is_special.all():
            raise ValueError(
                f"The vocabulary must hold more than special tokens. Received: {len(is_special)} "
                "special tokens. Masking needs ordinary ones."
            )
        return cls(mask_id, is_special, tokenizer.continues_word)

    def word_starts(self, token_ids: Array) -> NDArray[np.bool_]:
        """Returns whether a word begins at each token: bool, the shape of `token_ids`.

        Raises:
            ValueError: the vocabulary does not mark the pieces that continue a word.
        """
        if self.continues_word is None:
            raise ValueError(
                "Whole words and spans need `word_starts` if the vocabulary does not mark where "
                "words begin. Received: none. Pass those of `TextPreprocessor.tokenize`, or "
                "choose strategy='pieces'."
            )
        return ~self.continues_word[token_ids]


class Masking:
    """How tokens are masked; the defaults are BERT's.

    In a row of `n` tokens, special ones included, `max(1, round(rate * n))` are chosen, at most
    `max_predictions`. A chosen token becomes `[MASK]` with probability `mask_share`, a random token
    that is not special with probability `random_share`, and is otherwise kept. Special tokens
    (`[CLS]`, `[SEP]`, `[PAD]`, `[MASK]`, `[UNK]`) are never chosen.

    - `"pieces"` chooses tokens one by one.
    - `"whole_words"` chooses words with all their pieces, in random order. A word that exceeds the
      remaining number of tokens is skipped, as in google-research/bert. A word is a piece with the
      `##` pieces that follow it, or a word of the segmenter that made the data (Chinese).
    - `"spans"` chooses runs of whole words within a segment. Their lengths in words are geometric,
      cut at `max_span_length`: `P(l) ~ p (1 - p)^(l - 1)` with `p = span_probability`, 3.8 words on
      average for 0.2 and 10. A span is replaced as a whole: all `[MASK]`, all random or all kept.
      (SpanBERT's code may cut the last word to reach the rate exactly; here a span ends before a
      word that does not fit, so fewer tokens may be chosen.)
    - `"n_grams"` chooses runs in the same way, by default of at most 3 words, with short ones more
      frequent: `P(l) ~ 1 / l`, 1.64 words on average. Each token is replaced independently.
      (ALBERT's code skips a run that meets a chosen word; here the run ends before it.)

    Args:
        rate: float, the fraction of tokens that are predicted.
        mask_share: float, the fraction of these that become `[MASK]`.
        random_share: float, the fraction of these that become a random token.
        strategy: `"pieces"`, `"whole_words"`, `"spans"` or `"n_grams"`.
        max_predictions: int or None, the most predictions in a row, and the width of the outputs.
            None for `ceil(rate * seq_len)`: 20 for 128, 77 for 512.
        span_probability: float, see above.
        max_span_length: int, the most words in a span; None for 3 with n-grams, otherwise 10.

    Example:

    >>> masking = Masking(strategy="whole_words")
    >>> masking.get_config()["rate"], masking.num_predictions(512)
    (0.15, 77)

    Raises:
        ValueError: an argument is out of range.

    Reference: Devlin et al. 2019, https://arxiv.org/abs/1810.04805, section 3.1 and appendix A.1;
    Joshi et al. 2020, https://arxiv.org/abs/1907.10529, section 3.1; Lan et al. 2020,
    https://arxiv.org/abs/1909.11942, section 4.1, and `create_masked_lm_predictions` in
    google-research/albert, `create_pretraining_data.py`.
    """

    def __init__(
        self,
        rate: float = 0.15,
        mask_share: float = 0.8,
        random_share: float = 0.1,
        strategy: _Strategy = "pieces",
        max_predictions: int | None = None,
        span_probability: float = 0.2,
        max_span_length: int | None = None,
    ) -> None:
        self.rate = check_number("rate", rate, below=1.0, above=0.0)
        self.mask_share = check_number("mask_share", mask_share)
        self.random_share = check_number("random_share", random_share)
        check_number("mask_share + random_share", mask_share + random_share, below=1 + 1e-9)
        self.strategy = check_choice("strategy", strategy, STRATEGIES)
        if max_predictions is not None:
            check_int("max_predictions", max_predictions)
        self.max_predictions = max_predictions
        self.span_probability = check_number("span_probability", span_probability, 0, 1, 0)
        if max_span_length is None:
            max_span_length = 3 if strategy == "n_grams" else 10
        self.max_span_length = check_int("max_span_length", max_span_length)

    def num_predictions(self, sequence_length: int) -> int:
        """Returns the width of the outputs for rows of this length."""
        if self.max_predictions is not None:
            return self.max_predictions
        return max(1, int(np.ceil(self.rate * sequence_length - 1e-9)))

    def span_lengths(self) -> NDArray[np.float64]:
        """Returns the probabilities of spans of 1 to `max_span_length` words."""
        lengths = np.arange(1, self.max_span_length + 1)
        p = self.span_probability
        weights = 1 / lengths if self.strategy == "n_grams" else p * (1 - p) ** (lengths - 1)
        return weights / weights.sum()

    def __call__(
        self,
        token_ids: Array,
        kinds: TokenKinds,
        generator: np.random.Generator,
        padding_mask: Array,
        word_starts: Array | None = None,
    ) -> MaskedTokens:
        """Masks a batch of rows.

        Args:
            token_ids: int `(batch, seq_len)`, with special tokens and padding.
            kinds: `TokenKinds` of the vocabulary.
            generator: `np.random.Generator`; the same state gives the same masks.
            padding_mask: int or bool `(batch, seq_len)`, 1 for real tokens.
            word_starts: bool `(batch, seq_len)`, whether a word begins at this token; None to use
                the vocabulary.

        Returns:
            `MaskedTokens`. A row with no token to choose has no predictions.

        Raises:
            ValueError: an id is outside the vocabulary.

        Example:

        >>> kinds = TokenKinds(4, np.arange(30) < 5, np.zeros(30, bool))
        >>> rows = np.array([[2, 10, 11, 12, 13, 3, 0, 0]])
        >>> masked = Masking()(rows, kinds, np.random.default_rng(0), rows != 0)
        >>> masked.mask_positions.shape, int(masked.weights.sum())
        ((1, 2), 1)
        """
        token_ids = np.asarray(token_ids)
        vocabulary_size = len(kinds.is_special)
        raise_at_first(
            (token_ids < 0) | (token_ids >= vocabulary_size),
            token_ids,
            f"Token ids must be from 0 to {vocabulary_size - 1}, the last of the vocabulary",
            "Tokenize the text with the same vocabulary.",
        )
        padding_mask = np.asarray(padding_mask).astype(bool)
        is_candidate = ~kinds.is_special[token_ids] & padding_mask
        num_tokens = padding_mask.sum(axis=1)
        width = self.num_predictions(token_ids.shape[1])
        budgets = np.clip(np.rint(num_tokens * self.rate).astype(np.int64), 1, width)
        if self.strategy == "pieces":
            is_chosen, groups = _choose_pieces(is_candidate, budgets, generator), None
        else:
            if word_starts is None:
                word_starts = kinds.word_starts(token_ids)
            words = _Words(is_candidate, np.asarray(word_starts).astype(bool))
            choose = words.choose if self.strategy == "whole_words" else words.choose_spans
            is_chosen, groups = choose(budgets, generator, self)
        return _replace(token_ids, is_chosen, groups, width, kinds, generator, self)

    def rows_alike(
        self,
        token_ids: Array,
        kinds: TokenKinds,
        row_numbers: ArrayLike,
        padding_mask: Array,
        word_starts: Array | None = None,
    ) -> MaskedTokens:
        """Masks a batch for evaluation, where each row always gets the same masks.

        Each row is masked on its own, without its padding and with its own random numbers, so its
        masks depend only on its number: not on a seed, nor on the size and padding of batches.

        Args:
            token_ids: int `(batch, seq_len)`.
            kinds: `TokenKinds` of the vocabulary.
            row_numbers: int `(batch,)`, the number of each row in its data.
            padding_mask: int or bool `(batch, seq_len)`, 1 for real tokens, which come first.
            word_starts: bool `(batch, seq_len)`, see `__call__`.

        Returns:
            `MaskedTokens`.

        Raises:
            ValueError: an id is outside the vocabulary.
        """
        shape = (len(token_ids), self.num_predictions(token_ids.shape[1]))
        zeros = (np.zeros(shape, dtype) for dtype in (np.int32, np.int32, np.float32))
        masked = MaskedTokens(token_ids.astype(np.int32), *zeros)
        lengths = np.sum(padding_mask, axis=1, dtype=np.int64).tolist()
        for place, (number, length) in enumerate(zip(row_numbers.tolist(), lengths, strict=True)):
            row = (slice(place, place + 1), slice(length))
            generator = np.random.default_rng([0, 0, number])
            starts = None if word_starts is None else word_starts[row]
            masked_row = self(token_ids[row], kinds, generator, padding_mask[row], starts)
            for batch_values, values in zip(masked, masked_row, strict=True):
                batch_values[place, : values.shape[1]] = values[0]
        return masked

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments, ready for JSON."""
        return dict(vars(self))


def _choose_pieces(is_candidate, budgets, generator):
    """Chooses `budgets` tokens of each row, all sets equally likely: bool `(batch, seq_len)`."""
    num_columns = is_candidate.shape[1]
    # Random keys, all different because the column is part of them.
    keys = generator.integers(0, 1 << 46, is_candidate.shape) << 16 | np.arange(num_columns)
    keys[~is_candidate] = np.iinfo(np.int64).max
    last = np.minimum(budgets, num_columns)[:, None] - 1
    return is_candidate & (keys <= np.take_along_axis(np.sort(keys, axis=1), last, axis=1))


class _Words:
    """The words of a batch: runs of candidates, split wherever a word begins.

    Attributes:
        word_of_token: int `(batch, seq_len)`, the token's word, numbered in its row, -1 for none.
        lengths: int `(batch, max_words)`, tokens of each word, 0 after the last.
        follows: bool `(batch, max_words)`, whether the word directly follows the previous one.
    """

    def __init__(self, is_candidate, word_starts):
        before = np.pad(is_candidate, ((0, 0), (1, 0)))[:, :-1]
        begins = is_candidate & (word_starts | ~before)
        numbers = np.cumsum(begins, axis=1) - 1
        self.word_of_token = np.where(is_candidate, numbers, -1)
        max_words = max(1, int(numbers.max(initial=0)) + 1)
        rows, columns = np.nonzero(is_candidate)
        self.lengths = np.zeros((len(is_candidate), max_words), np.int64)
        np.add.at(self.lengths, (rows, numbers[rows, columns]), 1)
        self.follows = np.zeros((len(is_candidate), max_words), bool)
        rows, columns = np.nonzero(begins & before)
        self.follows[rows, numbers[rows, columns]] = True

    def choose(self, budgets, generator, masking):
        """Chooses words in random order, and skips those that no longer fit.

        Returns:
            is_chosen: bool `(batch, seq_len)`.
            groups: None, each token is replaced independently.
        """
        keys = np.where(self.lengths > 0, generator.random(self.lengths.shape, np.float32), 2.0)
        order = np.argsort(keys, axis=1)
        lengths = np.take_along_axis(self.lengths, order, axis=1)
        remaining, is_taken = budgets.copy(), np.zeros(lengths.shape, bool)
        for column in range(lengths.shape[1]):
            fits = (lengths[:, column] > 0) & (lengths[:, column] <= remaining)
            is_taken[:, column] = fits
            remaining -= np.where(fits, lengths[:, column], 0)
            if not remaining.any():
                break
        is_chosen = np.zeros_like(is_taken)
        np.put_along_axis(is_chosen, order, is_taken, axis=1)
        return self._spread_to_tokens(is_chosen, False), None

    def choose_spans(self, budgets, generator, masking):
        """Chooses spans of words until no word fits any more.

        Returns:
            is_chosen: bool `(batch, seq_len)`.
            groups: int `(batch, seq_len)`, the number of the token's span in its row, -1 for none;
                or None if each token is replaced independently.
        """
        spans = np.full(self.lengths.shape, -1)
        remaining, number = budgets.copy(), 0
        probabilities = masking.span_lengths()
        while True:
            may_begin = (self.lengths > 0) & (self.lengths <= remaining[:, None]) & (spans < 0)
            active = np.flatnonzero(may_begin.any(axis=1))
            if not len(active):
                break
            draws = np.where(may_begin[active], generator.random(may_begin[active].shape), -1)
            begins = draws.argmax(axis=1)
            num_words = generator.choice(len(probabilities), len(active), p=probabilities) + 1
            is_taken = self._span(active, begins, num_words, remaining[active], spans[active] < 0)
            spans[active] = np.where(is_taken, number, spans[active])
            remaining[active] -= np.sum(self.lengths[active] * is_taken, axis=1)
            number += 1
        groups = self._spread_to_tokens(spans, -1)
        return groups >= 0, None if masking.strategy == "n_grams" else groups

    def _span(self, rows, begins, num_words, remaining, is_free):
        """Returns the words of one span in each of these rows: bool `(len(rows), max_words)`."""
        places = np.arange(self.lengths.shape[1])
        has_begun = places >= begins[:, None]
        lengths = self.lengths[rows] * has_begun
        fits = (np.cumsum(lengths, axis=1) <= remaining[:, None]) & (lengths > 0) & is_free
        joins = self.follows[rows] | (places == begins[:, None])
        may_join = fits & joins & (places < (begins + num_words)[:, None])
        # From the first word up to the first that cannot join.
        return has_begun & (np.cumsum(has_begun & ~may_join, axis=1) == 0)

    def _spread_to_tokens(self, word_values, default):
        """Returns the value of each token's word, `default` for tokens of no word."""
        values = np.take_along_axis(word_values, np.maximum(self.word_of_token, 0), axis=1)
        return np.where(self.word_of_token < 0, default, values)


def _replace(token_ids, is_chosen, groups, width, kinds, generator, masking):
    rows, columns = np.nonzero(is_chosen)
    _, places = positions_of(is_chosen.sum(axis=1))
    shape = (len(token_ids), width)
    positions, labels = np.zeros(shape, np.int32), np.zeros(shape, np.int32)
    weights = np.zeros(shape, np.float32)
    positions[rows, places] = columns
    labels[rows, places] = token_ids[rows, columns]
    weights[rows, places] = 1
    draws = generator.random(len(rows) if groups is None else shape)
    draws = draws if groups is None else draws[rows, groups[rows, columns]]
    ordinary = np.flatnonzero(~kinds.is_special)
    random_ids = ordinary[generator.integers(len(ordinary), size=len(rows))]
    is_random = draws < masking.mask_share + masking.random_share
    unmasked = np.where(is_random, random_ids, labels[rows, places])
    masked = token_ids.astype(np.int32)
    masked[rows, columns] = np.where(draws < masking.mask_share, kinds.mask_id, unmasked)
    return MaskedTokens(masked, positions, labels, weights)
