"""Logits of single tokens as answers: what a mask hides, and which tokens were replaced."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .probabilities import sigmoid, softmax


def likeliest_tokens(
    logits: NDArray[Any], top_k: int, vocabulary_size: int, readable: Callable[[int], str]
) -> list[tuple[str, float]]:
    """Returns the likeliest tokens of one position with their probabilities, the best first.

    Args:
        logits: float `(num_rows,)`; an embedding table may have more rows than there are tokens.
        top_k: int, how many tokens.
        vocabulary_size: int.
        readable: function of an id that returns its token.
    """
    probabilities = softmax(logits)[:vocabulary_size]
    best = np.argsort(-probabilities, kind="stable")[:top_k].tolist()
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
