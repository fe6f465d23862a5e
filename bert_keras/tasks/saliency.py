"""Which tokens a classifier relies on: integrated gradients of a logit, a score for each token."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import keras
import numpy as np

from bert_keras.checks import as_str, check_int, check_same_length, raise_at_first
from bert_keras.inputs import PADDING_MASK, TOKEN_IDS
from bert_keras.preprocessing.batching import bucket_lengths, length_buckets
from bert_keras.tasks.long_text_classifier import LongTextClassifier
from bert_keras.tasks.text_classifier import TextClassifier
from bert_keras.types import OneText, Texts


class Saliency(NamedTuple):
    """The scores of one text.

    Attributes:
        tokens: list of str, the tokens that the model read, special tokens included.
        scores: float32 `(num_tokens,)`; positive for tokens that raise the target's logit. `[CLS]`
            and `[SEP]` are the same in the baseline, so their scores are 0.
        target: str or int, the class, label or score that is explained.
        logit: float, the classifier's output for the target.
        baseline_logit: float, its output for the baseline.
    """

    tokens: list[str]
    scores: np.ndarray
    target: object
    logit: float
    baseline_logit: float

    @property
    def error(self) -> float:
        """The sum of the scores minus `logit - baseline_logit`; 0 with infinitely many steps."""
        return float(self.scores.sum() - (self.logit - self.baseline_logit))


def integrated_gradients(
    classifier: TextClassifier,
    texts: OneText | Texts,
    target: str | int | Sequence[str | int] | None = None,
    *,
    steps: int = 32,
    batch_size: int = 64,
) -> Any:
    """Scores each token of a text by how much it changes a class's logit.

    With `x` the rows of the token table for a text, `(seq_len, hidden_dim)`, `x'` the rows for a
    baseline without meaning, and `F` the logit, the score of token `i` is

    `sum over d of (x_id - x'_id) * integral from 0 to 1 of dF/dx_id (x' + a (x - x')) da`.

    The scores of a text sum to `F(x) - F(x')`, the method's axiom of completeness, up to the error
    of the integral. The paper sums over equal steps; Gauss-Legendre points reach the same error
    with fewer points, see `Saliency.error`.

    Positions, segments, `[CLS]` and `[SEP]` are the same in text and baseline. Every other token of
    the baseline is `[MASK]`, which stands for "some token" since pre-training; `[PAD]` where the
    tokenizer has no `[MASK]`.

    Args:
        classifier: a `TextClassifier` with a preprocessor.
        texts: a str, a column of str, or a tuple of two columns for pairs.
        target: the class by name or number, one for all texts or a list with one for each; for a
            regression the index of the score. `None` takes the likeliest class of each text, or the
            first score.
        steps: int, points of the integral; each costs a forward and a backward pass.
        batch_size: int, points that are computed at once.

    Returns:
        For a str, or a pair of str, one `Saliency`; for columns, a list.

    Raises:
        TypeError: `classifier` is not a classifier, or reads windows.
        ValueError: an argument is out of range, or a target is not a class.

    Example:
    ```python
    found = bert_keras.integrated_gradients(classifier, "Not bad at all.", "positive")
    for token, score in zip(found.tokens, found.scores):
        print(f"{score:+.2f} {token}")
    ```

    Reference:
        [Sundararajan et al., 2017](https://arxiv.org/abs/1703.01365).
    """
    if not has_saliency(classifier):
        raise TypeError(
            "Integrated gradients are for a `TextClassifier`. Received: "
            f"{type(classifier).__name__}."
        )
    check_int("steps", steps)
    check_int("batch_size", batch_size)
    answerer = classifier.answerer("classify")
    columns, is_one = answerer.columns(as_str(texts))
    texts = answerer.texts(*columns)
    targets = _targets(classifier, texts, len(columns[0]), target)
    saliencies = [
        _saliency(classifier, row, number, steps, batch_size)
        for row, number in zip(_rows(classifier, texts), targets, strict=True)
    ]
    return saliencies[0] if is_one else saliencies


def has_saliency(task: object) -> bool:
    """Whether `integrated_gradients` can explain a task's answers."""
    return isinstance(task, TextClassifier) and not isinstance(task, LongTextClassifier)


def _targets(classifier, texts, count, target):
    """Returns the number of the explained output for each text."""
    if target is None:
        if classifier.problem_type == "regression":
            return [0] * count
        return classifier.predict(texts, verbose=0).argmax(-1).tolist()
    targets = [target] * count if np.ndim(target) == 0 else list(target)
    rule = "`target` must be one for all texts, or one for each"
    check_same_length(rule, targets=targets, texts=range(count))
    names = list(classifier.label_names or ())
    numbers = {name: number for number, name in enumerate(names)}
    numbers |= {number: number for number in range(classifier.num_classes)}
    rule = f"`target` must be one of {names} or an int from 0 to {classifier.num_classes - 1}"
    raise_at_first([value not in numbers for value in targets], targets, rule)
    return [numbers[value] for value in targets]


def _rows(classifier, texts):
    """Yields the inputs of each text, `(1, length)`, with few different lengths."""
    rows = classifier.encode_texts(texts)
    lengths = bucket_lengths(rows.lengths, length_buckets(classifier.preprocessor.max_length))
    for row, length in enumerate(lengths):
        yield rows.inputs(np.array([row]), int(length))


def _saliency(classifier, row, target, steps, batch_size):
    ends = _vectors(classifier, row)
    # The two ends of the path have weight 0: only their logits are needed.
    points, weights = np.polynomial.legendre.leggauss(steps)
    points = np.concatenate([[0, 1], (points + 1) / 2])
    weights = np.concatenate([[0, 0], weights / 2])
    logits, mean = np.zeros(len(points)), 0
    for start in range(0, len(points), batch_size):
        part = slice(start, start + batch_size)
        fractions = points[part, None, None].astype("float32")
        vectors = ends[0] + fractions * (ends[1] - ends[0])
        repeated = {name: np.repeat(array, len(fractions), axis=0) for name, array in row.items()}
        vectors = vectors.astype("float32")
        logits[part], gradient = _gradients(classifier, repeated, vectors, target)
        mean = mean + np.einsum("s,sld->ld", weights[part], gradient)
    length = int(row[PADDING_MASK].sum())
    scores = ((ends[1] - ends[0]) * mean).sum(axis=-1)[:length]
    tokenizer = classifier.preprocessor.tokenizer
    return Saliency(
        [tokenizer.id_to_token(int(i)) for i in row[TOKEN_IDS][0, :length]],
        scores.astype("float32"),
        classifier.label_names[target] if classifier.label_names else target,
        logit=float(logits[1]),
        baseline_logit=float(logits[0]),
    )


def _vectors(classifier, row):
    """Returns the rows of the token table for the baseline and for the text, `(length, dim)`."""
    tokenizer = classifier.preprocessor.tokenizer
    ids = row[TOKEN_IDS][0]
    vectors = _table_rows(classifier, ids)
    layout = tokenizer.layout
    fixed_ids = (*layout.before, *layout.between, *layout.after, tokenizer.pad_token_id)
    is_fixed = np.isin(ids, fixed_ids)[:, None]
    mask_id = tokenizer.find(tokenizer.mask_token)
    baseline_id = tokenizer.pad_token_id if mask_id is None else mask_id
    return np.where(is_fixed, vectors, _table_rows(classifier, np.array([baseline_id]))), vectors


def _table_rows(classifier, ids):
    vectors = classifier.backbone.token_embedding(ids[None].astype("int32"))
    return keras.ops.convert_to_numpy(keras.ops.cast(vectors, "float32"))[0]


def _gradients(classifier, inputs, vectors, target):
    """Returns a class's logits, and their gradient with respect to token vectors, as arrays.

    Keras has no API for gradients, so each backend's is called here.

    Args:
        classifier: a `TextClassifier`.
        inputs: dict of int arrays `(batch, seq_len)`.
        vectors: float32 `(batch, seq_len, hidden_dim)`.
        target: int, the number of the class.

    Returns:
        Float arrays `(batch,)` and `(batch, seq_len, hidden_dim)`.
    """

    def logits_of(vectors):
        return classifier(inputs, token_vectors=vectors, training=False)[:, target]

    backend = keras.backend.backend()
    if backend == "jax":
        return _jax_gradients(classifier, inputs, vectors, target)
    vectors = keras.ops.convert_to_tensor(vectors)
    if backend == "tensorflow":
        import tensorflow as tf

        with tf.GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(vectors)
            logits = logits_of(vectors)
        gradient = tape.gradient(logits, vectors)
    else:
        import torch

        with torch.enable_grad():
            logits = logits_of(vectors.requires_grad_())
            (gradient,) = torch.autograd.grad(logits.sum(), vectors)
    return keras.ops.convert_to_numpy(logits), keras.ops.convert_to_numpy(gradient)


def _jax_gradients(classifier, inputs, vectors, target):
    """See `_gradients`. The compiled function is kept until the classifier's variables change."""
    import jax

    variables = classifier.variables
    ids, (compiled_for, function) = [*map(id, variables)], classifier._gradients

    def summed(vectors, weights, inputs, target):
        with keras.StatelessScope(zip(variables, weights, strict=True)):
            logits = classifier(inputs, token_vectors=vectors, training=False)[:, target]
        return logits.sum(), logits

    if ids != compiled_for:
        function = jax.jit(jax.value_and_grad(summed, has_aux=True))
        classifier._gradients = ids, function
    weights = [variable.value for variable in variables]
    (_, logits), gradient = function(vectors, weights, inputs, target)
    return np.asarray(logits), np.asarray(gradient)
