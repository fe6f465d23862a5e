"""A classifier's answers as lists of `{"label", "score"}`."""

import numpy as np

from bert_keras.answers.probabilities import sigmoid, softmax

# Name -> function from logits to scores.
FUNCTIONS = {"sigmoid": sigmoid, "softmax": softmax, "none": np.asarray}


def labels_of(answer):
    """Returns a classifier's answer as a list of `{"label", "score"}`, likeliest first."""
    if "probabilities" not in answer:
        scores = answer.get("scores", [answer.get("score")])
        return [{"label": f"LABEL_{i}", "score": score} for i, score in enumerate(scores)]
    return _sorted(answer["probabilities"].items())


def scores_of(served, scores):
    """Returns for each row of scores `(num_texts, num_classes)` what `labels_of` returns."""
    names = served.setting("label_names") or range(scores.shape[-1])
    return [_sorted(zip(names, row, strict=True)) for row in scores.tolist()]


def _sorted(pairs):
    pairs = sorted(pairs, key=lambda pair: -pair[1])
    return [{"label": _name(label), "score": score} for label, score in pairs]


def _name(label):
    return label if isinstance(label, str) else f"LABEL_{label}"
