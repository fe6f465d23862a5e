"""Logits to probabilities, in NumPy."""

import numpy as np


def log_softmax(logits):
    """Returns the logarithms of `softmax(logits)` over the last axis."""
    shifted = logits - logits.max(axis=-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))


def softmax(logits):
    """Returns probabilities that sum to 1 over the last axis, in the dtype of the logits."""
    exponentials = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return exponentials / exponentials.sum(axis=-1, keepdims=True)


def sigmoid(logits):
    """Returns the probability of each logit by itself, in the dtype of the logits."""
    return 0.5 * (1 + np.tanh(0.5 * logits))
