"""Tags of words: each word's best on its own, or a sentence's best under a chain's transitions.

The chain is a linear-chain conditional random field, see `bert_keras.layers.LinearChainCRF`.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .classes import log_sum_exp, softmax

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
    if chain is None:
        return [rows.argmax(axis=-1) for rows in logits]
    return [_best_path(rows, *chain) for rows in logits]


def _best_path(logits, start, end, transitions):
    """Returns the numbers of one sentence's best tags."""
    if not len(logits):
        return np.zeros(0, np.int64)
    first, *others = logits.astype("float64")  # They add up over all words.
    scores, came_from = start + first, []
    for row in others:
        paths = scores[:, None] + transitions
        came_from.append(paths.argmax(axis=0))
        scores = paths.max(axis=0) + row
    tags = [(scores + end).argmax()]
    for tag_before in reversed(came_from):
        tags.append(tag_before[tags[-1]])
    return np.array(tags[::-1])


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
    if chain is None:
        return [softmax(rows) for rows in logits]
    return [_marginals(rows.astype("float64"), *chain) for rows in logits]


def _marginals(logits, start, end, transitions):
    """Returns the probabilities of one sentence's tags."""
    before, after = logits.copy(), np.zeros_like(logits)
    before[:1] += start
    after[-1:] = end
    for word in range(1, len(logits)):
        before[word] += log_sum_exp(before[word - 1] + transitions.T)[:, 0]
    for word in reversed(range(1, len(logits))):
        after[word - 1] = log_sum_exp(transitions + logits[word] + after[word])[:, 0]
    return softmax(before + after)
