"""Probabilities of logits, in NumPy."""

from typing import Any

import numpy as np
from numpy.typing import NDArray


def log_sum_exp(values: NDArray[Any]) -> NDArray[Any]:
    """Returns `log(sum(exp(values)))` over the last axis, which is kept with the size 1."""
    highest = values.max(axis=-1, keepdims=True)
    return highest + np.log(np.exp(values - highest).sum(axis=-1, keepdims=True))


def log_softmax(logits: NDArray[Any]) -> NDArray[Any]:
    """Returns the logarithms of `softmax(logits)`."""
    return logits - log_sum_exp(logits)


def softmax(logits: NDArray[Any]) -> NDArray[Any]:
    """Returns probabilities that sum to 1 over the last axis, in the dtype of the logits."""
    return np.exp(logits - log_sum_exp(logits))


def sigmoid(logits: NDArray[Any]) -> NDArray[Any]:
    """Returns the probability of each logit on its own, in the dtype of the logits."""
    return 0.5 * (1 + np.tanh(0.5 * logits))


# Activation -> its function, from logits to scores.
SCORES = {"sigmoid": sigmoid, "linear": np.asarray, "tanh": np.tanh}
