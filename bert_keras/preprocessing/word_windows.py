"""Sentences of words as rows of windows; each word counts at its first piece, in one window."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..tokenizers.text_encoder import TEXTS_AT_ONCE
from .collate import TextPacker, TextRows
from .ragged import Ragged
from .windows import cut_windows, max_context, positions_of


class WordRows(TextRows):
    """Windows over sentences, one row each; a sentence that fits has a single window.

    Words are numbered across sentences: the second continues where the first ends. A given word
    without tokens (empty, or only control characters) becomes the unknown token, so that every word
    has a piece, a label and a prediction.

    Args:
        packer: a `TextPacker`; its `max_length` is that of a window.
        sentences: list of texts, which keep their own pieces and words, or of lists of words.
        stride: int, pieces between the starts of two windows; `None` for half a window.
        are_pieces: bool, whether each piece counts as a word; sentences are then texts, whose
            pieces are those of `Tokenizer.encode`.

    Attributes:
        words: `Ragged` int64, one row per window with an entry for each of its tokens, special
            tokens included: the number of the word that has its label and prediction there, or -1.
            Each word occurs once: at its first piece, in the window where that piece has the most
            context.
        sentences: int64 `(num_windows,)`, the index of the sentence.
        num_words: list of int, the number of words of each sentence.
    """

    def __init__(
        self,
        packer: TextPacker,
        sentences: Sequence[Any],
        stride: int | None = None,
        are_pieces: bool = False,
    ) -> None:
        tokenizer, room = packer.tokenizer, packer.room()
        chunks = (sentences[i : i + TEXTS_AT_ONCE] for i in range(0, len(sentences), TEXTS_AT_ONCE))
        encode = tokenizer.encode_sentences
        if are_pieces:
            encode = functools.partial(tokenizer.encode, special_tokens=False)
        encodings = (encoding for chunk in chunks for encoding in encode(chunk))
        ids, words, lengths, num_words = pieces_of_words(encodings, sentences)
        if (ids < 0).any():
            ids[ids < 0] = tokenizer.unknown_token_id
        if are_pieces:
            words, num_words = np.arange(len(ids)), lengths.tolist()
        num_special = tokenizer.layout.num_special()
        windows = cut_windows(lengths, room, stride or max(1, room // 2))
        window, place = positions_of(windows.lengths)
        packed = np.full(len(window) + num_special * len(windows.lengths), -1, np.int64)
        places = np.arange(len(window)) + num_special * window + len(tokenizer.layout.before)
        # Each word counts once: at its first piece, in the window where that has the most context.
        is_first = np.diff(words, prepend=-1) != 0
        starts = (np.cumsum(lengths) - lengths)[windows.documents] + windows.starts
        piece = starts[window] + place
        packed[places] = np.where(is_first[piece] & max_context(windows), words[piece], -1)
        self.words = Ragged.from_flat(packed, windows.lengths + num_special)
        self.sentences, self.num_words = windows.documents, num_words
        super().__init__(packer, Ragged.from_flat(ids, lengths).windows(windows))

    def collect(self, batches):
        """Returns a list with an array for each sentence, float32 `(num_words, num_tags)`."""
        logits = None
        for rows, outputs in batches:
            if logits is None:
                logits = np.zeros((sum(self.num_words), outputs.shape[-1]), "float32")
            words = self.words.take(rows).to_dense(outputs.shape[1], padding=-1)
            logits[words[words >= 0]] = outputs[words >= 0]
        return [] if logits is None else np.split(logits, np.cumsum(self.num_words)[:-1])


def pieces_of_words(
    encodings: Iterable[Any], sentences: Sequence[str | Sequence[str]]
) -> tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.int64], list[int]]:
    """Returns the pieces of sentences, texts or lists of words, and which word each is part of.

    Every given word has a piece: where the tokenizer leaves nothing of it (it is empty, or control
    characters alone), a piece with the id -1.

    Args:
        encodings: for each sentence an object with `ids` and `word_ids`, without special tokens.
        sentences: list of str or of lists of str.

    Returns:
        ids: int32 `(num_pieces,)`, the ids of all sentences' pieces.
        words: int64 `(num_pieces,)`, the number of each piece's word. Words are numbered through
            all sentences: those of the second continue where the first ends.
        lengths: int64 `(num_sentences,)`, the number of pieces of each sentence.
        num_words: list of int, the number of words of each sentence.
    """
    ids, words, num_words, first_word = [], [], [], 0
    for encoding, sentence in zip(encodings, sentences, strict=True):
        ids.extend(encoding.ids)
        words.extend(first_word + word for word in encoding.word_ids)
        is_text = isinstance(sentence, str)
        num_words.append(max(encoding.word_ids, default=-1) + 1 if is_text else len(sentence))
        first_word += num_words[-1]
    ids, words = np.array(ids, np.int32), np.array(words, np.int64)
    lost = np.setdiff1d(np.arange(first_word), words)
    if len(lost):
        places = np.searchsorted(words, lost)
        ids = np.insert(ids, places, -1)
        words = np.insert(words, places, lost)
    sentence_of_word = np.repeat(np.arange(len(num_words)), num_words)
    lengths = np.bincount(sentence_of_word[words], minlength=len(num_words))
    return ids, words, lengths, num_words
