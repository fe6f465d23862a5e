"""Logits of single tokens as answers: what a mask hides, and which tokens were replaced."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

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
