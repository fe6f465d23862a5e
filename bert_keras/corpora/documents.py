"""Documents of sentences in one flat array of ids: what pre-training examples are cut from."""

import itertools
import re
from typing import NamedTuple

import numpy as np

from bert_keras.preprocessing.ragged import Ragged, positions_of

# Different words remembered; a corpus has some hundred thousands, noise has no end of them.
WORDS_REMEMBERED = 500_000
# Signs that are words of their own wherever they stand; a text may be cut around them.
PUNCTUATION = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~‘’“”—–…，。、！？；：（）《》「」『』"
# As a range of a regular expression: where they are set apart, each is a word as well.
CHINESE = "\u4e00-\u9fff"


class Documents(NamedTuple):
    """The sentences of all documents, one after the other, a separator behind each document.

    The separator lets a row that runs on from one document into the next be one slice.

    Fields:
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
        lengths: int `(num_sentences,)`, tokens of each sentence, none 0.
        sentences_per_document: int `(num_documents,)`.
    """
    counts = np.asarray(sentences_per_document, np.int64)
    first_sentences = np.concatenate([[0], np.cumsum(counts)])
    separators_before = np.repeat(np.arange(len(counts)), counts)
    ends = np.cumsum(lengths, dtype=np.int64) + separators_before
    return ends - lengths, ends, first_sentences


def cut_long_sentences(lengths, longest):
    """Cuts sentences that are no sentences, such as a megabyte without a full stop.

    Args:
        lengths: int64 `(num_sentences,)`.
        longest: int, the most tokens that stay together.

    Returns:
        pieces: int64 `(num_pieces,)`, lengths: `longest` or less, in order.
        counts: int64 `(num_sentences,)`, pieces of each sentence, 1 for most, 0 for empty ones.
    """
    counts = -(-lengths // longest)
    owners, position = positions_of(counts)
    return np.minimum(lengths[owners] - position * longest, longest), counts


class CachedTokenizer:
    """Tokenizes texts by tokenizing each different word of them once.

    BERT's tokenizer treats every punctuation sign and Chinese character, and what stands between
    two of them or between spaces, by itself; and a corpus repeats its words. So texts are cut
    there, and each word is looked up among those seen before; new ones go to the tokenizer. The
    ids are those of `Tokenizer.flat_ids`. Tokenizers that do not cut words at these places alone
    are called as they are.

    Args:
        tokenizer: a `Tokenizer`.
    """

    def __init__(self, tokenizer):
        self.tokenizer = tokenizer
        normalizer = tokenizer.settings["normalizer"] or {}
        pre_tokenizer = tokenizer.settings["pre_tokenizer"] or {}
        added = sorted((token["content"] for token in tokenizer.settings["added_tokens"]), key=len)
        # An added token that begins otherwise, or holds a space, could be cut in the middle.
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
        # The line end is the first word: it has no pieces, and tells where a text ends.
        self._numbers = {"\n": 0}
        self._table = Ragged.from_flat(np.empty(0, np.int32), [0])

    def flat_ids(self, texts):
        """Returns the ids of all texts, int32 `(total,)`, and of each how many, int64."""
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
