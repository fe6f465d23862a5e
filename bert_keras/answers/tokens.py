"""Logits of single tokens as answers: what a mask hides, and which tokens were replaced."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..checks import check_int, refuse_first
from ..preprocessing.encoded_rows import MaskRows, TokenRows
from .answerer import Answerer, Option, checked_elsewhere
from .probabilities import sigmoid, softmax


def ids_of_targets(
    targets: Sequence[str],
    token_to_id: Callable[[str], int | None],
    encode: Callable[[str], Sequence[int]],
    unknown_id: int | None,
) -> list[int]:
    """Returns the ids of the tokens that may fill a mask.

    Args:
        targets: list of str, each a token, or a text that is one token.
        token_to_id: function of a token that returns its id, or `None`.
        encode: function of a text that returns its ids.
        unknown_id: int, the id of what the vocabulary cannot spell, or `None`.

    Raises:
        ValueError: there are none, or one is not a token of the vocabulary.
    """
    if isinstance(targets, str) or not len(targets):
        raise ValueError(f"`targets` must be a list of tokens. Received: {targets!r:.60}.")
    ids = []
    for target in targets:
        id = token_to_id(target) if isinstance(target, str) else None
        found = [id] if id is not None or not isinstance(target, str) else encode(target)
        if len(found) != 1 or found[0] in (None, unknown_id):
            raise ValueError(
                "`targets` must be tokens of the vocabulary, since a mask hides a single token. "
                f"Received: {target!r:.60}."
            )
        ids += found
    return list(dict.fromkeys(ids))


def likeliest_tokens(
    logits: NDArray[Any],
    top_k: int,
    vocabulary_size: int,
    readable: Callable[[int], str],
    targets: Sequence[int] | None = None,
) -> list[tuple[str, float]]:
    """Returns the likeliest tokens of one position with their probabilities, the best first.

    Args:
        logits: float `(num_rows,)`; an embedding table may have more rows than there are tokens.
        top_k: int, how many tokens.
        vocabulary_size: int.
        readable: function of an id that returns its token.
        targets: the ids that may be returned; `None` for all. Probabilities stay those among all.
    """
    probabilities = softmax(logits)[:vocabulary_size]
    ids = np.arange(vocabulary_size) if targets is None else np.asarray(targets)
    best = ids[np.argsort(-probabilities[ids], kind="stable")][:top_k].tolist()
    return [(readable(id), float(probabilities[id])) for id in best]


def judged_tokens(
    tokens: Sequence[str], offsets: Sequence[tuple[int, int]], logits: NDArray[Any]
) -> list[dict[str, Any]]:
    """Returns for each token of a text how likely it was replaced.

    Args:
        tokens: sequence of str.
        offsets: sequence of `(start, end)`, the characters of each token.
        logits: float `(num_tokens,)`.
    """
    return [
        {"token": token, "start": start, "end": end, "probability": probability}
        for token, (start, end), probability in zip(
            tokens, offsets, sigmoid(logits).tolist(), strict=True
        )
    ]


class MaskAnswerer(Answerer):
    """The likeliest tokens for each `[MASK]` of texts."""

    method = "fill_mask"
    options = (
        Option("top_k", int, 5, "Number of tokens for each mask.", 1),
        Option("targets", list, None, "The only tokens to return.", check=checked_elsewhere),
    )
    about = "Fill each [MASK] with the likeliest tokens."
    example = '"She opened the [MASK]." --top_k 3'
    tag, does = "fill-mask", "predicts masked tokens"
    call = "fill_mask({mask!r})"

    def __init__(self, settings, packer, **options):
        super().__init__(settings, packer, **options)
        tokenizer = self.tokenizer
        if self.targets is not None:
            unknown_id = tokenizer.find(tokenizer.unknown_token)
            self.targets = ids_of_targets(self.targets, tokenizer.find, tokenizer, unknown_id)
        check_int("top_k", self.top_k, 1, tokenizer.vocabulary_size)

    @classmethod
    def sample(cls, tokenizer, text):
        return (f"{tokenizer.mask_token} {text}",), {}

    @property
    def values_per_token(self):
        """The size of the vocabulary: each token has a logit for each."""
        return self.tokenizer.vocabulary_size

    def encode(self, texts):
        return MaskRows.of_texts(self.packer, texts)

    def answer(self, rows, batches, texts):
        rule = f"Each text needs a {self.tokenizer.mask_token} to fill"
        counts, found = rows.positions.lengths, [None] * len(rows)
        refuse_first(counts == 0, texts, rule)
        size, readable = self.tokenizer.vocabulary_size, self.tokenizer.readable
        for indices, outputs in batches:
            logits = outputs["masked_lm"] if isinstance(outputs, dict) else outputs
            for row, of_text in zip(indices, logits, strict=True):
                found[row] = [
                    likeliest_tokens(scores, self.top_k, size, readable, self.targets)
                    for scores in of_text[: counts[row]]
                ]
        return found


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
            tokens = list(map(self.tokenizer.readable, ids))
            judged.append(judged_tokens(tokens, offsets, logits[first : first + len(ids)]))
        return judged
