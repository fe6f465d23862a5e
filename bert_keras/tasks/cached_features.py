"""What a frozen encoder says of each text, computed once: a head then learns from that alone."""

import dataclasses
from typing import Any

import keras
import numpy as np

from bert_keras.engine.prediction import Prediction
from bert_keras.inputs import PADDING_MASK
from bert_keras.tasks.encoded_examples import Examples
from bert_keras.types import Data, Inputs, Labels, Tensor, Verbose, Weights

# The key of the cached vectors, which then are a task's only input.
FEATURES = "features"


def has_features(inputs: Any) -> bool:
    """Whether `inputs` are cached features rather than token ids."""
    return isinstance(inputs, dict) and FEATURES in inputs


def outputs_of(inputs: Inputs) -> dict[str, Tensor]:
    """Returns cached features in the place of a backbone's outputs.

    Args:
        inputs: dict with `FEATURES`: float `(batch, hidden_dim)`, one vector a sequence, or
            `(batch, seq_len, hidden_dim)`, one a token; or a dict as a backbone returns it.

    Returns:
        A dict as a backbone returns it. One vector a sequence is its `pooled_output`, and a
        sequence of one token, which `"cls"`, `"mean"` and `"max"` leave as it is.
    """
    features = inputs[FEATURES]
    if isinstance(features, dict):
        return features
    if len(features.shape) == 3:
        return {"sequence_output": features}
    return {"sequence_output": features[:, None], "pooled_output": features}


def encode_features(
    task: keras.Model,
    x: Data,
    y: Labels | None = None,
    sample_weight: Weights | None = None,
    batch_size: int = 32,
    verbose: Verbose = "auto",
) -> Examples:
    """Reads texts with a frozen encoder once; the head of the task then trains on what it said.

    Metrics and weights come out as if `fit` had been given the texts, in nearly the time of one
    epoch. The vectors are in memory as float32: 4 bytes x `hidden_dim` for each text, for each
    token with a `TokenClassifier`.

    Args:
        task: a `TextClassifier` or a `TokenClassifier` with `frozen="backbone"`.
        x: texts, or a dict of arrays, see the task.
        y: labels, see the task.
        sample_weight: float `(num_examples,)`, or `None`.
        batch_size: int, examples that are read at once.
        verbose: see `keras.Model.fit`; a progress bar shows the reading.

    Returns:
        `Examples`, which `fit` and `evaluate` take in the place of `x`, `y` and `sample_weight`.

    Raises:
        ValueError: the task's head reads something else, or its backbone trains.
        TypeError: `x` is a dataset.

    Example:
    ```python
    task = bert_keras.TextClassifier.from_preset("minilm_l6_en_uncased", frozen="backbone")
    train, dev = (bert_keras.encode_features(task, *part) for part in (train, dev))
    task.fit(train, validation_data=dev, epochs=50)
    ```

    Reference:
        [Devlin et al., 2019](https://arxiv.org/abs/1810.04805), section 5.3.
    """
    _check(task, x)
    examples = task.examples(x, y, sample_weight)
    batches = dataclasses.replace(examples, labels=None, sample_weight=None).batches(
        batch_size, shuffle=False
    )
    encoder, found = Prediction(task, lambda inputs: _read(task, inputs)), [None] * len(examples)
    bar = keras.utils.Progbar(
        len(batches), verbose=int(verbose in ("auto", 1)), unit_name="encoded batch"
    )
    for number, (rows, _) in enumerate(batches.batches):
        (inputs,) = batches[number]
        (vectors,) = encoder.over([inputs])
        for place, row in enumerate(rows):
            # Copies, so that no padding stays in memory.
            of_row = vectors[place]
            if of_row.ndim == 2 and PADDING_MASK in inputs:
                of_row = of_row[: inputs[PADDING_MASK][place].sum()]
            found[row] = of_row.copy()
        bar.update(number + 1)
    return dataclasses.replace(examples, make_inputs=_packing(found), read_by=_reader(task))


def _packing(found):
    def make_inputs(rows, length):
        if found[0].ndim == 1:
            return {FEATURES: np.stack([found[row] for row in rows])}
        padded = np.zeros((len(rows), length, found[0].shape[-1]), "float32")
        for place, row in enumerate(rows):
            padded[place, : len(found[row])] = found[row]
        return {FEATURES: padded}

    return make_inputs


def _check(task, x):
    """Raises unless the encoder says the same in every epoch, and all its inputs are at hand."""
    if not task.reads_features:
        raise ValueError(
            "`encode_features` is for `TextClassifier` and `TokenClassifier`. Received: a "
            f"{type(task).__name__}. Give its `fit` the texts."
        )
    _check_is_frozen(task)
    if not (isinstance(x, dict) or task.is_raw(x)):
        raise TypeError(
            "`encode_features` takes all examples at once: texts, or a dict of arrays. "
            f"Received: {type(x).__name__}."
        )


def check_reader(task: keras.Model, examples: Examples) -> None:
    """Raises `ValueError` where a head would learn from what another encoder said."""
    if examples.read_by is None:
        return
    _check_is_frozen(task)
    if examples.read_by != _reader(task):
        raise ValueError(
            f"These features were made for another backbone than this {type(task).__name__}'s, or "
            "for another pooling. Encode the texts again: `encode_features(task, ...)`."
        )


def _reader(task):
    return task.backbone, getattr(task, "pooling", None)


def _check_is_frozen(task):
    trained = {id(variable) for variable in task.trainable_variables}
    if any(id(variable) in trained for variable in task.backbone.variables):
        raise ValueError(
            "Features are of a backbone that does not train, frozen='backbone'. Received: "
            f"frozen={task.frozen!r}, and weights of the backbone that train."
        )


def _read(task, inputs):
    """Returns what the task's head reads."""
    outputs = task.backbone_outputs(inputs, training=False)
    return keras.ops.cast(task.head.read(outputs, inputs.get(PADDING_MASK)), "float32")
