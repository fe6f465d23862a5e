"""Tags of words: each word's best on its own, or a sentence's best under a chain's transitions.

The chain is a linear-chain conditional random field, see `bert_keras.layers.LinearChainCRF`.
Sentences are computed together, one position after the other.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .classes import log_sum_exp, softmax

# Scores of pairs of tags computed at once, which bounds the memory: 16 MB.
_SCORES_AT_ONCE = 2**22

# `start` and `end`, float `(num_tags,)`, and `transitions`, float `(num_tags, num_tags)`.
Chain = tuple[NDArray[Any], NDArray[Any], NDArray[Any]]


def best_tags(
    logits: Sequence[NDArray[Any]], chain: Chain | None = None
) -> list[NDArray[np.int64]]:
    """Returns the numbers of each sentence's best tags.

    With a chain this is the Viterbi algorithm. With `e` the logits, the best sequence of tags that
    ends with tag `k` at word `t` has the score

    ```
    score[t, k] = max over j of (score[t - 1, j] + transitions[j, k]) + e[t, k]
    ```

    and going back from the best `score[n, k] + end[k]` to where each maximum came from gives the
    tags.

    Args:
        logits: list of float `(num_words, num_tags)`, one array per sentence.
        chain: see `Chain`; `None` takes each word's highest logit.

    Returns:
        List of int64 `(num_words,)`.
    """
    if chain is None or not logits:
        return [rows.argmax(axis=-1) for rows in logits]
    start, end, transitions = chain
    scores = np.concatenate(logits, dtype="float64")  # They add up over all words.
    firsts, lasts, steps = _places(logits)
    scores[firsts] += start
    came_from = np.zeros(scores.shape, np.int64)
    for words in steps:
        paths = scores[words - 1, :, None] + transitions
        came_from[words] = paths.argmax(axis=1)
        scores[words] += paths.max(axis=1)
    tags = np.zeros(len(scores), np.int64)
    tags[lasts] = (scores[lasts] + end).argmax(axis=-1)
    for words in reversed(steps):
        tags[words - 1] = came_from[words, tags[words]]
    return _split(tags, logits)


def tag_probabilities(
    logits: Sequence[NDArray[Any]], chain: Chain | None = None
) -> list[NDArray[Any]]:
    """Returns the probability of each tag at each word, whatever the other words' tags are.

    With a chain this is the forward-backward algorithm.

    Args:
        logits: list of float `(num_words, num_tags)`, one array per sentence.
        chain: see `Chain`; `None` takes the softmax of each word's logits.

    Returns:
        List of float `(num_words, num_tags)`.
    """
    if chain is None or not logits:
        return [softmax(rows) for rows in logits]
    start, end, transitions = chain
    emissions = np.concatenate(logits, dtype="float64")
    firsts, lasts, steps = _places(logits)
    before, after = emissions.copy(), np.zeros_like(emissions)
    before[firsts] += start
    for words in steps:
        paths = before[words - 1, None, :] + transitions.T
        before[words] += log_sum_exp(paths)[..., 0]
    after[lasts] = end
    for words in reversed(steps):
        paths = transitions + (emissions[words] + after[words])[:, None, :]
        after[words - 1] = log_sum_exp(paths)[..., 0]
    return _split(softmax(before + after), logits)


def _places(logits):
    """Returns the positions of sentences in an array of all their words, one after the other.

    Args:
        logits: list of float `(num_words, num_tags)`.

    Returns:
        The indices of first words, those of last words, and a list of index arrays of the words in
        between and of the last: all second words come first, then all third words, and so on.
    """
    lengths = np.array([len(rows) for rows in logits])
    firsts = (np.cumsum(lengths) - lengths)[lengths > 0]
    lengths = lengths[lengths > 0]
    at_once = max(1, _SCORES_AT_ONCE // logits[0].shape[1] ** 2)
    steps = []
    for position in range(1, lengths.max(initial=0)):
        words = firsts[lengths > position] + position
        steps += [words[begin : begin + at_once] for begin in range(0, len(words), at_once)]
    return firsts, firsts + lengths - 1, steps


def _split(values, logits):
    """Returns an array of all sentences' words as a list of one array per sentence."""
    return np.split(values, np.cumsum([len(rows) for rows in logits])[:-1])
