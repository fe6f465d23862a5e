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


async def classified(ask, served, rows, function=None, **options):
    """Returns for each row what `labels_of` returns.

    Args:
        ask: function of a method, rows and options, see `Server.ask`.
        served: `Served`, a classifier.
        rows: list of tuples of one or two str.
        function: a key of `FUNCTIONS` for the logits, or `None` for the classifier's own.
        **options: options of `ask`.
    """
    if function is None:
        return [labels_of(answer) for answer in await ask("classify", rows, **options)]
    scores = FUNCTIONS[function](np.array(await ask("logits", rows, **options)))
    names = served.setting("label_names") or range(scores.shape[-1])
    return [_sorted(zip(names, row, strict=True)) for row in scores.tolist()]


def _sorted(pairs):
    pairs = sorted(pairs, key=lambda pair: -pair[1])
    return [{"label": _name(label), "score": score} for label, score in pairs]


def _name(label):
    return label if isinstance(label, str) else f"LABEL_{label}"
