"""Answers in the forms that clients request: scores by label; vectors cut, scaled or compared."""

import numpy as np

from bert_keras.answers.classes import sigmoid, softmax
from bert_keras.answers.similarity import l2_normalize, similarity_matrix
from bert_keras.serving.rows import check

# Name -> function from logits to scores.
FUNCTIONS = {"sigmoid": sigmoid, "softmax": softmax, "none": np.asarray}


def similarities(served, vectors):
    """Returns the model's similarity of the first vector and each other one, a list of float."""
    vectors = np.array(vectors)
    similarity = served.setting("similarity") or "cosine"
    return similarity_matrix(vectors[:1], vectors[1:], similarity)[0].tolist()


def shortened(vectors, normalize, dimensions=None):
    """Returns the first dimensions of vectors, scaled to length 1 if `normalize`."""
    vectors = np.array(vectors)
    width = vectors.shape[1]
    is_size = dimensions is None or (type(dimensions) is int and 1 <= dimensions <= width)
    check(is_size, f"dimensions: an int from 1 to {width} is needed. Received: {dimensions!r:.60}.")
    vectors = vectors[:, :dimensions]
    return l2_normalize(vectors) if normalize else vectors


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
    return [
        {"label": label if isinstance(label, str) else f"LABEL_{label}", "score": score}
        for label, score in sorted(pairs, key=lambda pair: -pair[1])
    ]
