"""Scores of texts for a query as a ranking."""

from typing import Any

import numpy as np
from numpy.typing import NDArray


def ranked(scores: NDArray[Any], top_k: int | None = None) -> list[dict[str, Any]]:
    """Returns a dict `{"index", "score"}` for each of the best texts, the best first.

    Args:
        scores: float `(num_texts,)`.
        top_k: int, or `None` for all texts.
    """
    best = np.argsort(-scores, kind="stable")[:top_k]
    return [{"index": int(index), "score": float(scores[index])} for index in best]
