"""Scores of a masked language model at its masked positions: accuracy and perplexity.

For both while a model trains, see `streaming`.
"""

import numpy as np


def _check(labels, predicted, weights):
    labels = np.asarray(labels)
    weights = np.ones(labels.shape) if weights is None else np.asarray(weights, dtype=np.float64)
    if predicted.shape[: labels.ndim] != labels.shape or weights.shape != labels.shape:
        raise ValueError(
            "Labels, predictions and weights must agree in shape, but for the vocabulary axis. "
            f"Received: labels {labels.shape}, predictions {predicted.shape}, weights "
            f"{weights.shape}."
        )
    if weights.sum() == 0:
        raise ValueError(
            "At least one position must have a weight above 0. Received: none. Check that the "
            "masking selected any token."
        )
    return labels, weights


def masked_accuracy(labels, predicted, weights=None):
    """Share of masked positions whose token is predicted right.

    Args:
        labels: integer array `(batch, num_predictions)`, or any shape.
        predicted: integer array of the same shape, `logits.argmax(-1)`.
        weights: optional array of the same shape; 0 where a position only pads.

    Returns:
        A float from 0 to 1.

    Raises:
        ValueError: on unequal shapes, or no position of weight above 0.

    Example:
        >>> masked_accuracy([[7, 9, 0]], [[7, 8, 0]], weights=[[1, 1, 0]])
        0.5
    """
    predicted = np.asarray(predicted)
    labels, weights = _check(labels, predicted, weights)
    if predicted.shape != labels.shape:
        raise ValueError(
            "Predictions must be ids of the labels' shape. "
            f"Received: {predicted.shape} for labels {labels.shape}. Use `logits.argmax(-1)`."
        )
    return float((weights * (labels == predicted)).sum() / weights.sum())


def masked_perplexity(labels, logits, weights=None):
    """Perplexity at masked positions: exp of the mean negative log-probability of the labels.

    A model that guesses evenly among `n` tokens has perplexity `n`. Over masked positions it is
    not comparable with the perplexity of a left-to-right model.

    Args:
        labels: integer array `(batch, num_predictions)`, or any shape.
        logits: float array `(batch, num_predictions, vocabulary_size)`.
        weights: optional array of the labels' shape; 0 where a position only pads, and there the
            label may be anything.

    Returns:
        A float of 1 or more.

    Raises:
        ValueError: on unequal shapes, no position of weight above 0, or labels outside the
            vocabulary.

    Example:
        >>> masked_perplexity([[1]], [[[0.0, 0.0, 0.0, 0.0]]])
        4.0
    """
    logits = np.asarray(logits, dtype=np.float64)
    labels, weights = _check(labels, logits, weights)
    if logits.ndim != labels.ndim + 1:
        raise ValueError(
            "Logits must have one axis more than labels, the vocabulary. "
            f"Received: {logits.shape} for labels {labels.shape}."
        )
    labels, logits, weights = labels[weights != 0], logits[weights != 0], weights[weights != 0]
    if labels.min() < 0 or labels.max() >= logits.shape[-1]:
        raise ValueError(
            f"Labels must lie between 0 and {logits.shape[-1] - 1}, the vocabulary. "
            f"Received: {labels.min()} to {labels.max()}. Give ignored positions weight 0."
        )
    highest = logits.max(-1)
    log_total = highest + np.log(np.exp(logits - highest[:, None]).sum(-1))
    losses = log_total - logits[np.arange(len(labels)), labels]
    return float(np.exp((weights * losses).sum() / weights.sum()))
