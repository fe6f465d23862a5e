"""What a frozen encoder says of each text, computed once and kept: `fit(cache_features=True)`."""

import keras
import numpy as np

from bert_keras.inputs import PADDING_MASK
from bert_keras.preprocessing.batching import BucketedBatches

# The key of the cached vectors, which then are a task's only input.
FEATURES = "features"


def has_features(inputs):
    """Whether `inputs` are cached features rather than token ids."""
    return isinstance(inputs, dict) and FEATURES in inputs


def outputs_of(inputs):
    """Returns cached features in the place of a backbone's outputs.

    Args:
        inputs: dict with `FEATURES`: float `(batch, hidden_dim)`, one vector a sequence, or
            `(batch, seq_len, hidden_dim)`, one a token.

    Returns:
        A dict as a backbone returns it. One vector a sequence is its `pooled_output`, and a
        sequence of one token, which `"cls"`, `"mean"` and `"max"` leave as it is.
    """
    features = inputs[FEATURES]
    if len(features.shape) == 3:
        return {"sequence_output": features}
    return {"sequence_output": features[:, None], "pooled_output": features}


def check_can_cache(task, x):
    """Raises unless the encoder says the same in every epoch, and all its inputs are at hand.

    Args:
        task: a `Task`.
        x: what `fit` was given.

    Raises:
        ValueError: the task has no cached features, or its backbone trains.
        TypeError: `x` is a dataset.
    """
    if task.features is None:
        raise ValueError(
            "`cache_features=True` is for `TextClassifier` and `TokenClassifier`. Received: a "
            f"{type(task).__name__}. Leave it out."
        )
    trained = {id(variable) for variable in task.trainable_variables}
    trains = any(id(variable) in trained for variable in task.backbone.variables)
    if task.frozen != "backbone" or trains:
        raise ValueError(
            "`cache_features=True` needs a backbone that does not train, frozen='backbone'. "
            f"Received: frozen={task.frozen!r}"
            f"{', and weights of the backbone that train' if trains else ''}."
        )
    if not (task.is_raw(x) or isinstance(x, dict)):
        raise TypeError(
            "`cache_features=True` takes all examples at once: texts, or a dict of arrays. "
            f"Received: {type(x).__name__}."
        )


def with_features(task, x, batch_size, verbose="auto"):
    """Returns inputs with the encoder's vectors in the place of token ids.

    Args:
        task: a `Task`, see `check_can_cache`.
        x: `BucketedBatches`, whose batches stay the same ones in the same order, or a dict of
            arrays `(num_examples, seq_len)`.
        batch_size: int, examples that are encoded at once, where `x` does not say.
        verbose: see `keras.Model.fit`; a progress bar shows the encoding.

    Returns:
        `x` itself with other inputs, or a dict of one float32 array.
    """
    if isinstance(x, BucketedBatches):
        return _batches_with_features(task, x, verbose)
    starts = range(0, len(next(iter(x.values()))), batch_size)
    parts = ({k: v[start : start + batch_size] for k, v in x.items()} for start in starts)
    found = list(_encoded(task, parts, len(starts), verbose))
    return {FEATURES: np.concatenate([features for _, features in found])}


def _batches_with_features(task, batches, verbose):
    ordered = batches.for_prediction()
    inputs = (ordered[index][0] for index in range(len(ordered)))
    found = [None] * sum(len(rows) for rows, _ in ordered.batches)
    encoded = _encoded(task, inputs, len(ordered), verbose)
    for (rows, _), (packed, features) in zip(ordered.batches, encoded, strict=True):
        lengths = packed[PADDING_MASK].sum(axis=1)
        for place, row in enumerate(rows):
            # Copies, so that no padding stays in memory.
            vectors = features[place] if features.ndim == 2 else features[place, : lengths[place]]
            found[row] = vectors.copy()

    def make_inputs(rows, length):
        if found[0].ndim == 1:
            return {FEATURES: np.stack([found[row] for row in rows])}
        padded = np.zeros((len(rows), length, found[0].shape[-1]), "float32")
        for place, row in enumerate(rows):
            padded[place, : len(found[row])] = found[row]
        return {FEATURES: padded}

    batches.make_inputs = make_inputs
    return batches


def _encoded(task, batches, num_batches, verbose):
    """Yields each batch of inputs with its features, float32."""
    bar = keras.utils.Progbar(
        num_batches, verbose=int(verbose in ("auto", 1)), unit_name="encoded batch"
    )
    encoder = None
    for number, inputs in enumerate(batches, start=1):
        encoder = encoder or _encoder(task, inputs)
        yield inputs, np.asarray(encoder.predict_on_batch(inputs), "float32")
        bar.update(number)


def _encoder(task, names):
    """Returns a model from inputs of these names to what the task's head reads."""
    inputs = {name: keras.Input((None,), dtype="int32", name=name) for name in names}
    return keras.Model(inputs, keras.ops.cast(task.features(inputs), "float32"))
