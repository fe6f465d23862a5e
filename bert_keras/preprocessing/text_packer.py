"""Texts, or pairs of texts, as token ids, and token ids as the inputs of a model."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..checks import as_texts, check_choice, check_int, check_pairs, refuse_first
from ..inputs import TOKEN_IDS
from ..tokenizers.text_encoder import TextEncoder
from ..types import Texts
from . import packing
from .ragged import Ragged


class TextPacker:
    """Tokenizes texts, cuts them to a length and packs them, see `TextPreprocessor`.

    Args:
        tokenizer: a `TextEncoder`.
        max_length: int, the longest sequence, special tokens included.
        truncation: one of `bert_keras.preprocessing.packing.STRATEGIES`.
        input_names: tuple of str, the inputs to make.
    """

    def __init__(
        self,
        tokenizer: TextEncoder,
        max_length: int,
        truncation: str = "longest_first",
        input_names: tuple[str, ...] = packing.INPUT_NAMES,
    ) -> None:
        self.tokenizer, self.max_length = tokenizer, max_length
        self.truncation, self.input_names = truncation, input_names

    def room(self, is_pair: bool = False) -> int:
        """Returns how many tokens fit beside the special tokens of a text, or of a pair."""
        return self.max_length - self.tokenizer.layout.num_special(is_pair)

    def check_all_fit(self, ids: Ragged, pair_ids: Ragged | None = None) -> None:
        """Raises `ValueError` if a text would be cut; `ids` and `pair_ids` as of `tokenize`."""
        room = self.room(is_pair=pair_ids is not None)
        lengths = ids.lengths if pair_ids is None else ids.lengths + pair_ids.lengths
        rule = f"Texts to score must fit whole: at most {room} tokens"
        refuse_first(lengths > room, lengths, rule, "Split the text into sentences.")

    def tokenize(
        self, texts: str | Texts, pairs: str | Texts | None = None
    ) -> tuple[Ragged, Ragged | None]:
        """Returns the token ids of the first and of the second texts, without special tokens.

        Args:
            texts: as for a call.
            pairs: as for a call.

        Returns:
            Two `Ragged` of int32; the second is None for single texts.
        """
        firsts, seconds = split_pairs(texts, pairs)
        ids = Ragged.from_flat(*self.tokenizer.flat_ids(firsts))
        if seconds is None:
            return ids, None
        return ids, Ragged.from_flat(*self.tokenizer.flat_ids(seconds))

    def word_starts(
        self, texts: str | Texts, pairs: str | Texts | None = None
    ) -> tuple[Ragged, Ragged | None]:
        """Returns, for each token of `tokenize`, whether a word begins there.

        Args:
            texts: as for a call.
            pairs: as for a call.

        Returns:
            Two `Ragged` of bool; the second is None for single texts.
        """
        word_starts = []
        for column in split_pairs(texts, pairs):
            _, lengths, starts = self.tokenizer.flat_ids(column or [], word_starts=True)
            word_starts.append(None if column is None else Ragged.from_flat(starts, lengths))
        return tuple(word_starts)

    def pack(
        self, ids: Ragged, pair_ids: Ragged | None = None, length: int | None = None
    ) -> dict[str, NDArray[np.int32]]:
        """Packs the result of `tokenize`; `length` as for a call."""
        return packing.pack(
            ids,
            pair_ids,
            layout=self.tokenizer.layout,
            pad_id=self.tokenizer.pad_token_id,
            input_names=self.input_names,
            **self._lengths(length),
        )

    def pack_word_starts(
        self, starts: Ragged, pair_starts: Ragged | None = None, length: int | None = None
    ) -> NDArray[np.bool_]:
        """Packs the result of `word_starts` in the way `pack` packs tokens.

        Returns:
            Bool `(batch, length)`, True at special tokens and padding.
        """
        return self._pack_values(1, starts, pair_starts, length).astype(bool)

    def _pack_values(self, fill, values, pair_values, length):
        """Packs a value for each token as `pack` packs tokens, and `fill` for all others."""
        options = {"layout": self.tokenizer.layout.of(fill), "pad_id": fill}
        options |= {"input_names": (TOKEN_IDS,), **self._lengths(length)}
        return packing.pack(values, pair_values, **options)[TOKEN_IDS]

    def _lengths(self, length):
        max_length = self.max_length if length is None else length
        check_int("length", max_length, 0, self.max_length, "Raise the preprocessor's max_length.")
        return {"max_length": max_length, "length": length, "truncation": self.truncation}

    def packed_lengths(self, ids: Ragged, pair_ids: Ragged | None = None) -> NDArray[np.int64]:
        """Returns the packed length of each row of `tokenize`'s result: int64 `(num_texts,)`."""
        # Raises before the first batch is made if the strategy cannot make a text fit.
        if pair_ids is None:
            choices = packing.SINGLE_STRATEGIES
            check_choice("truncation", self.truncation, choices, "Pairs have others.")
        else:
            packing.truncated_lengths(
                ids.lengths, pair_ids.lengths, self.room(True), self.truncation
            )
        layout = self.tokenizer.layout
        return packing.packed_lengths(ids, pair_ids, layout=layout, max_length=self.max_length)


def split_pairs(
    texts: str | Texts, pairs: str | Texts | None = None
) -> tuple[list[str], list[str] | None]:
    """Returns the columns of first and second texts, after checking them.

    Args:
        texts: a str or a column of str, or a tuple of two columns if `pairs` is None.
        pairs: the second texts, or None.

    Returns:
        A list of str, and another of the same length or None.
    """
    if pairs is None and isinstance(texts, tuple) and len(texts) == 2:
        if all(isinstance(text, str) for text in texts):
            raise ValueError(
                "A tuple of two str could mean two texts or a pair. Received: "
                f"{tuple(text[:40] for text in texts)}. For two texts, pass a list; for a pair, "
                "`([first], [second])`, or the second text as `pairs`."
            )
        texts, pairs = texts
    texts = [texts] if isinstance(texts, str) else as_texts(texts)
    if pairs is None:
        return texts, None
    pairs = [pairs] if isinstance(pairs, str) else as_texts(pairs, "pairs")
    check_pairs(texts, pairs)
    return texts, pairs
