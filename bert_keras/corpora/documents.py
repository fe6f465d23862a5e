"""Documents of sentences in one flat array of ids, from which examples are cut."""

import itertools
import re
from typing import NamedTuple

import numpy as np

from bert_keras.preprocessing.ragged import Ragged, positions_of

# The most words to remember. A corpus has some hundred thousand different ones, a noisy one more.
WORDS_REMEMBERED = 500_000
# Characters that are words of their own in BERT's tokenizers, so that a text may be cut there.
PUNCTUATION = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~‘’“”—–…，。、！？；：（）《》「」『』"
# A range in a regular expression: each character is a word too, if the tokenizer separates them.
CHINESE = "\u4e00-\u9fff"


class Documents(NamedTuple):
    """The sentences of all documents in sequence, with a separator token after each document.

    Thanks to the separators, a row that runs from one document into the next is one slice.

    Attributes:
        token_ids: int `(total,)`, all tokens; may be a memory map.
        sentence_starts: int64 `(num_sentences,)`, where each sentence begins in `token_ids`.
        sentence_ends: int64 `(num_sentences,)`, where it ends. No sentence is empty.
        first_sentences: int64 `(num_documents + 1,)`: document `i` has the sentences from
            `first_sentences[i]` up to `first_sentences[i + 1]`, at least one.
    """

    token_ids: np.ndarray
    sentence_starts: np.ndarray
    sentence_ends: np.ndarray
    first_sentences: np.ndarray

    @property
    def num_documents(self):
        """Number of documents."""
        return len(self.first_sentences) - 1


def sentence_borders(lengths, sentences_per_document):
    """Returns `sentence_starts`, `sentence_ends` and `first_sentences` of `Documents`.

    Args:
        lengths: int `(num_sentences,)`, the tokens of each sentence, at least 1.
        sentences_per_document: int `(num_documents,)`.
    """
    counts = np.asarray(sentences_per_document, np.int64)
    first_sentences = np.concatenate([[0], np.cumsum(counts)])
    separators_before = np.repeat(np.arange(len(counts)), counts)
    ends = np.cumsum(lengths, dtype=np.int64) + separators_before
    return ends - lengths, ends, first_sentences


def cut_long_sentences(lengths, longest):
    """Cuts overlong sentences, such as a megabyte without a full stop.

    Args:
        lengths: int64 `(num_sentences,)`.
        longest: int, the most tokens in a piece.

    Returns:
        pieces: int64 `(num_pieces,)`, their lengths, in order.
        counts: int64 `(num_sentences,)`, the number of pieces of each sentence: 1 for most, 0 for
            empty ones.
    """
    counts = -(-lengths // longest)
    owners, position = positions_of(counts)
    return np.minimum(lengths[owners] - position * longest, longest), counts


class CachedTokenizer:
    """Tokenizes texts by tokenizing each different word once.

    BERT's tokenizer splits text at spaces and at every punctuation mark and Chinese character, and
    tokenizes each part by itself. A corpus repeats its words. So this class splits texts at the
    same places, looks up the words seen before, and tokenizes only new ones. The ids are those of
    `Tokenizer.flat_ids`. A tokenizer that splits text elsewhere gets whole texts.

    Args:
        tokenizer: a `Tokenizer`.
    """

    def __init__(self, tokenizer):
        self.tokenizer = tokenizer
        normalizer = tokenizer.settings["normalizer"] or {}
        pre_tokenizer = tokenizer.settings["pre_tokenizer"] or {}
        added = sorted((token["content"] for token in tokenizer.settings["added_tokens"]), key=len)
        # An added token of letters, or one with a space, could be cut in the middle.
        self._can_cut = (
            normalizer.get("type") == "BertNormalizer"
            and pre_tokenizer.get("type") == "BertPreTokenizer"
            and all(token[0] in PUNCTUATION and not set(token) & set(" \n") for token in added)
        )
        signs = re.escape(PUNCTUATION)
        signs += CHINESE if normalizer.get("handle_chinese_chars") else ""
        wholes = [re.escape(token) for token in reversed(added)]
        self._words = re.compile("|".join([*wholes, f"[^{signs} \n]+", f"[{signs}\n]"])).findall
        self._forget()

    def _forget(self):
        # Word 0 is the line end, which has no pieces and marks the end of a text.
        self._numbers = {"\n": 0}
        self._table = Ragged.from_flat(np.empty(0, np.int32), [0])

    def flat_ids(self, texts):
        """Returns the ids of all texts, int32 `(total,)`, and the number in each text, int64."""
        joined = "\n".join(texts)
        if not self._can_cut or not texts or joined.count("\n") != len(texts) - 1:
            return self.tokenizer.flat_ids(texts)
        if len(self._numbers) > WORDS_REMEMBERED:
            self._forget()
        words = self._words(joined)
        new = list(set(words).difference(self._numbers))
        if new:
            self._numbers |= zip(new, itertools.count(len(self._numbers)), strict=False)
            pieces = Ragged.from_flat(*self.tokenizer.flat_ids(new))
            self._table = Ragged.from_flat(
                np.concatenate([self._table.values, pieces.values]),
                np.concatenate([self._table.lengths, pieces.lengths]),
            )
        numbers = np.fromiter(map(self._numbers.__getitem__, words), np.int32, len(words))
        found = self._table.take(numbers)
        ends = np.concatenate([[0], np.cumsum(found.lengths)])
        borders = np.concatenate([np.flatnonzero(numbers == 0), [len(numbers)]])
        return found.flat(), np.diff(ends[borders], prepend=0)
