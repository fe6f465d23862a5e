"""Logits of single tokens as answers: what a mask hides, and which tokens were replaced."""

from __future__ import annotations

import numpy as np

from ..checks import check_int, raise_at_first
from ..preprocessing.encoded_rows import MaskRows, TokenRows
from .answerer import Answerer, Option
from .probabilities import sigmoid, softmax


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
        counts, found = rows.positions.lengths, [None] * len(rows)
        raise_at_first(counts == 0, texts, rule)
        for indices, outputs in batches:
            logits = outputs["masked_lm"] if isinstance(outputs, dict) else outputs
            for row, of_text in zip(indices, logits, strict=True):
                found[row] = [self._likeliest(scores) for scores in of_text[: counts[row]]]
        return found

    def _likeliest(self, logits):
        """Returns the likeliest tokens of one position with their probabilities."""
        # An embedding table may have more rows than there are tokens.
        probabilities = softmax(logits)[self.ids]
        best = np.argsort(-probabilities, kind="stable")[: self.top_k]
        tokens = map(self.tokenizer.readable, self.ids[best].tolist())
        return list(zip(tokens, probabilities[best].tolist(), strict=True))


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
