"""Documents of sentences in one flat array of ids: what pre-training examples are cut from."""

from typing import NamedTuple

import numpy as np

from bert_keras.preprocessing.ragged import Ragged

# Different words remembered; a corpus has some hundred thousands, noise has no end of them.
WORDS_REMEMBERED = 500_000


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


def join_documents(documents, separator_id):
    """Makes `Documents` of lists; empty sentences and documents without any token are left out.

    Args:
        documents: iterable of documents, each a list of sentences, each a list or array of ids; or
            each document a `Ragged` of its sentences.
        separator_id: int, the id of `[SEP]`.

    Returns:
        `Documents` with int32 ids.

    Example:

    >>> documents = join_documents([[[7, 8], [], [9]], [[]], [[5]]], separator_id=3)
    >>> documents.token_ids.tolist(), documents.sentence_ends.tolist()
    ([7, 8, 9, 3, 5, 3], [2, 3, 5])
    """
    ids, lengths, counts = [np.empty(0, np.int32)], [np.empty(0, np.int64)], []
    separator = np.array([separator_id], np.int32)
    for document in documents:
        sentences = Ragged.from_rows(document)
        sentences = sentences.take(np.flatnonzero(sentences.lengths))
        if len(sentences):
            ids += [*(sentences[row] for row in range(len(sentences))), separator]
            lengths.append(sentences.lengths)
            counts.append(len(sentences))
    return Documents(np.concatenate(ids), *sentence_borders(np.concatenate(lengths), counts))


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
    owners = np.repeat(np.arange(len(lengths)), counts)
    position = np.arange(len(owners)) - np.repeat(np.cumsum(counts) - counts, counts)
    return np.minimum(lengths[owners] - position * longest, longest), counts


class CachedTokenizer:
    """Tokenizes texts by tokenizing each different word of them once.

    BERT's tokenizer treats what stands between two spaces by itself, and a corpus repeats its
    words: looking their pieces up is several times quicker than cutting each word anew. The ids are
    those of `WordPieceTokenizer.flat_ids`.

    Args:
        tokenizer: a `WordPieceTokenizer`.
    """

    def __init__(self, tokenizer):
        self.tokenizer = tokenizer
        # A token that holds a space would be cut by splitting at spaces.
        self._can_split = not any(" " in token for token in tokenizer.added_tokens)
        self._forget()

    def _forget(self):
        self._numbers = _Numbers()
        self._table = Ragged.from_flat(np.empty(0, np.int32), [])

    def flat_ids(self, texts):
        """Returns the ids of all texts, int32 `(total,)`, and of each how many, int64."""
        if not self._can_split or not texts:
            return self.tokenizer.flat_ids(texts)
        if len(self._numbers) > WORDS_REMEMBERED:
            self._forget()
        words = " ".join(texts).split(" ")
        numbers = np.fromiter(map(self._numbers.__getitem__, words), np.int64, len(words))
        self._learn()
        found = self._table.take(numbers)
        word_counts = np.fromiter((text.count(" ") + 1 for text in texts), np.int64, len(texts))
        ends = np.cumsum(found.lengths)[np.cumsum(word_counts) - 1]
        return flatten(found), np.diff(ends, prepend=0)

    def _learn(self):
        new = self._numbers.take_new()
        if new:
            ids, lengths = self.tokenizer.flat_ids(new)
            self._table = Ragged.from_flat(
                np.concatenate([self._table.values, ids]),
                np.concatenate([self._table.lengths, lengths]),
            )


class _Numbers(dict):
    """Numbers words in the order in which they are first looked up."""

    def __init__(self):
        self._new = []

    def __missing__(self, word):
        self._new.append(word)
        self[word] = number = len(self)
        return number

    def take_new(self):
        """Returns the words numbered since the last call."""
        new, self._new = self._new, []
        return new


def flatten(rows):
    """Returns the values of a `Ragged`'s rows one after the other, as one array."""
    begins = np.cumsum(rows.lengths) - rows.lengths
    position = np.arange(int(rows.lengths.sum()))
    return rows.values[position + np.repeat(rows.starts - begins, rows.lengths)]
