"""Logits of single tokens as answers: what a mask hides, and which tokens were replaced."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..checks import check_int, raise_at_first
from ..inputs import MASK_POSITIONS, PADDING_MASK, TOKEN_IDS
from ..preprocessing.collate import Rows, TextPacker, TextRows
from ..preprocessing.ragged import Ragged
from ..types import Array
from .answerer import Answerer, Option
from .classes import sigmoid, softmax


class MaskRows(Rows):
    """Packed texts with the positions of their `[MASK]` tokens.

    Args:
        packer: a `TextPacker`.
        inputs: dict of int32 arrays `(num_rows, length)`, see `TextPacker.pack`.
        positions: `Ragged` of int32, one row per text.
    """

    def __init__(self, packer: TextPacker, inputs: dict[str, Array], positions: Ragged) -> None:
        super().__init__(inputs[PADDING_MASK].sum(axis=1), packer.max_length)
        self.packed, self.positions = inputs, positions
        self.padding = {TOKEN_IDS: packer.tokenizer.pad_token_id}
        self.width = max(1, int(positions.lengths.max(initial=0)))

    @classmethod
    def of_texts(cls, packer: TextPacker, texts: Any) -> MaskRows:
        """Returns texts, or pairs, with the positions of their `[MASK]` tokens.

        Args:
            packer: a `TextPacker`.
            texts: texts or pairs.

        Raises:
            ValueError: a `[MASK]` lies beyond the end of what is read.
        """
        ids, pair_ids = packer.tokenize(texts)
        mask_id = packer.tokenizer.mask_token_id
        longest = int(packer.packed_lengths(ids, pair_ids).max(initial=1))
        packed = packer.pack(ids, pair_ids, length=longest)
        rows, columns = np.nonzero(packed[TOKEN_IDS] == mask_id)
        counts = np.bincount(rows, minlength=len(ids))
        parts = [part for part in (ids, pair_ids) if part is not None]
        num_all = sum(np.array([np.sum(x == mask_id) for x in part], int) for part in parts)
        rule = (
            f"No {packer.tokenizer.mask_token} may fall off the end of a text, "
            f"max_length={packer.max_length}"
        )
        num_lost = num_all - counts
        raise_at_first(num_lost > 0, num_lost, rule, "Shorten the text around it.")
        return cls(packer, packed, Ragged.from_flat(columns.astype("int32"), counts))

    def inputs(self, indices, length):
        inputs = {}
        for name, array in self.packed.items():
            inputs[name] = np.full((len(indices), length), self.padding.get(name, 0), array.dtype)
            inputs[name][:, : array.shape[1]] = array[indices, :length]
        return {**inputs, MASK_POSITIONS: self.positions.take(indices).to_dense(self.width)}


class TokenRows(TextRows):
    """Texts whose tokens each have an output."""

    def collect(self, batches):
        """Returns for each text an array `(num_tokens, ...)`, special tokens included."""
        return self.each(batches, lambda row, outputs: outputs[: self.lengths[row]])


class MaskAnswerer(Answerer):
    """The likeliest tokens for each `[MASK]` of texts."""

    method = "fill_mask"
    options = (
        Option("top_k", int, 5, "Number of tokens for each mask.", 1),
        Option("targets", list, None, "The only tokens to return.", is_checked=False),
    )
    about = "Fill each [MASK] with the likeliest tokens."
    example = '"She opened the [MASK]." --top_k 3'
    tag, does = "fill-mask", "predicts masked tokens"
    call = "fill_mask({mask!r})"

    def __init__(self, settings, packer, **options):
        super().__init__(settings, packer, **options)
        size = self.tokenizer.vocabulary_size
        check_int("top_k", self.top_k, 1, size)
        # The ids that may be returned.
        self.ids = np.arange(size) if self.targets is None else self._ids_of(self.targets)

    def _ids_of(self, targets):
        """Returns the ids of targets, each a token, or a text that is one token."""
        if isinstance(targets, str) or not len(targets):
            raise ValueError(f"`targets` must be a list of tokens. Received: {targets!r:.60}.")
        find, ids = self.tokenizer.find, []
        for target in targets:
            is_text = isinstance(target, str)
            id = find(target) if is_text else None
            found = self.tokenizer(target) if is_text and id is None else [id]
            if len(found) != 1 or found[0] in (None, find(self.tokenizer.unknown_token)):
                raise ValueError(
                    "`targets` must be tokens of the vocabulary, since a mask hides a single "
                    f"token. Received: {target!r:.60}."
                )
            ids += found
        return np.array(list(dict.fromkeys(ids)))

    @classmethod
    def sample(cls, packer, text):
        return (f"{packer.tokenizer.mask_token} {text}",), {}

    @property
    def values_per_token(self):
        """The size of the vocabulary: each token has a logit for each."""
        return self.tokenizer.vocabulary_size

    def encode(self, texts):
        return MaskRows.of_texts(self.packer, texts)

    def answer(self, rows, batches, texts):
        rule = f"Each text needs a {self.tokenizer.mask_token} to fill"
        counts = rows.positions.lengths
        raise_at_first(counts == 0, texts, rule)
        batches = ((x, y["masked_lm"] if isinstance(y, dict) else y) for x, y in batches)
        return rows.each(batches, lambda row, x: list(map(self._likeliest, x[: counts[row]])))

    def _likeliest(self, logits):
        """Returns the likeliest tokens of one position with their probabilities."""
        # An embedding table may have more rows than there are tokens.
        probabilities = softmax(logits)[self.ids]
        best = np.argsort(-probabilities, kind="stable")[: self.top_k]
        found = map(self.named, self.ids[best].tolist())
        return list(zip(found, probabilities[best].tolist(), strict=True))

    def named(self, id):
        """Returns what an answer has for a token: its readable form."""
        return self.tokenizer.readable(id)


class MaskIdsAnswerer(MaskAnswerer):
    """The ids of these tokens: tokens with and without a space before them read alike."""

    method, about = "mask_ids", ""

    def named(self, id):
        return id


class ReplacedTokenAnswerer(Answerer):
    """How likely each token of texts was replaced."""

    method = "is_replaced"
    about = "Say for each token whether it seems out of place."
    example = '"She drank the door."'
    tag, does = "token-classification", "finds tokens that were replaced"
    call = "is_replaced('A text.')"

    def encode(self, texts):
        return TokenRows(self.packer, *self.packer.tokenize(texts))

    def answer(self, rows, batches, texts):
        self.packer.check_all_fit(rows.ids)
        first, judged = len(self.tokenizer.layout.before), []
        encodings = self.tokenizer.encode(texts, special_tokens=False)
        for logits, (ids, _, offsets, *_) in zip(rows.collect(batches), encodings, strict=True):
            probabilities = sigmoid(logits[first : first + len(ids)]).tolist()
            columns = map(self.tokenizer.readable, ids), offsets, probabilities
            judged.append(
                [
                    {"token": token, "start": start, "end": end, "probability": probability}
                    for token, (start, end), probability in zip(*columns, strict=True)
                ]
            )
        return judged
