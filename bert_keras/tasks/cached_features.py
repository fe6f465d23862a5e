"""The outputs of a frozen encoder, computed once, and a task that trains only a head on them.

```python
classifier = bert_keras.TextClassifier.from_preset("minilm_l6_en_uncased", frozen="backbone")
head = bert_keras.LinearProbe(classifier)
train, dev = (bert_keras.encode_features(classifier, *columns) for columns in (train, dev))
head.fit(train, validation_data=dev, epochs=50)
classifier.classify("What a film!")  # its head is the one that was trained
```
"""

import copy
import dataclasses
from typing import Any, Unpack

import keras
import numpy as np

from bert_keras.engine.prediction import Prediction
from bert_keras.inputs import PADDING_MASK
from bert_keras.preprocessing.batching import EncodedExamples, lengths_of
from bert_keras.preprocessing.encoded_rows import Rows
from bert_keras.preprocessing.ragged import Ragged
from bert_keras.tasks.task import Task
from bert_keras.tasks.task_data import TaskData
from bert_keras.tasks.teacher_student import JointTask, of_reader
from bert_keras.tasks.text_classifier import TextClassifier
from bert_keras.tasks.token_classifier import TokenClassifier
from bert_keras.tasks.user_columns import Columns, split_off_end
from bert_keras.types import Data, Labels, LayerOptions, Verbose, Weights

FEATURES = "features"


class FeatureRows(Rows):
    """What a head reads of each example.

    `inputs` returns a dict with `features`, float32 `(size, hidden_dim)`, or `(size, length,
    hidden_dim)` for a head that reads each token.

    Args:
        lengths: int `(num_rows,)`.
        vectors: list of float32 arrays, `(hidden_dim,)` or `(num_tokens, hidden_dim)` each.
    """

    def __init__(self, lengths, vectors):
        super().__init__(lengths)
        self.vectors = vectors

    def inputs(self, indices, length):
        vectors = [self.vectors[index] for index in indices]
        if vectors[0].ndim == 1:
            return {FEATURES: np.stack(vectors)}
        padded = np.zeros((len(vectors), length, vectors[0].shape[-1]), "float32")
        for row, token_vectors in zip(padded, vectors, strict=True):
            row[: len(token_vectors)] = token_vectors
        return {FEATURES: padded}


@dataclasses.dataclass
class EncodedFeatures(EncodedExamples):
    """What a head reads of each example, computed once.

    Args:
        source: backbone and pooling of the task that computed them.
    """

    source: tuple[Any, ...] = ()

    def __getitem__(self, part):
        """Returns the examples of a slice, for `validation_split`."""
        indices = np.arange(len(self))[part]
        labels, weights = (_take(column, indices) for column in (self.labels, self.sample_weight))
        rows = FeatureRows(self.rows.lengths[part], self.rows.vectors[part])
        return dataclasses.replace(self, rows=rows, labels=labels, sample_weight=weights)


def encode_features(
    task: Task,
    x: Data,
    y: Labels | None = None,
    sample_weight: Weights | None = None,
    batch_size: int = 32,
    verbose: Verbose = "auto",
) -> EncodedFeatures:
    """Reads texts once with a frozen encoder; a `LinearProbe` then trains on what it returned.

    Metrics and weights are those of `task.fit` on the texts, in about the time of one epoch. The
    features are in memory as float32: 4 bytes x `hidden_dim` for each text, or for each token with
    a `TokenClassifier`.

    Args:
        task: a `TextClassifier` or a `TokenClassifier` with `frozen="backbone"`.
        x: texts, or a dict of arrays, see the task.
        y: labels, see the task.
        sample_weight: float `(num_examples,)`, or `None`.
        batch_size: int, examples that are read at once.
        verbose: see `keras.Model.fit`; a progress bar shows the reading.

    Returns:
        `EncodedFeatures`, which `fit` and `evaluate` of a `LinearProbe` take in place of `x`, `y`
        and `sample_weight`.

    Raises:
        ValueError: the task's head reads something else, or its backbone trains.
        TypeError: `x` is a dataset.

    Example:
    ```python
    task = bert_keras.TextClassifier.from_preset("minilm_l6_en_uncased", frozen="backbone")
    train, dev = (bert_keras.encode_features(task, *columns) for columns in (train, dev))
    bert_keras.LinearProbe(task).fit(train, validation_data=dev, epochs=50)
    ```

    Reference:
        [Devlin et al., 2019](https://arxiv.org/abs/1810.04805), section 5.3.
    """
    _check_can_be_cached(task)
    columns = task.data.normalize(x, y, sample_weight)
    if columns.kind == "batches":
        raise TypeError(
            "`encode_features` takes all examples at once: texts, or a dict of arrays. "
            f"Received: {type(x).__name__}."
        )
    examples = task.data.encode(columns)
    batches = EncodedExamples(examples.rows).batches(batch_size, shuffle=False)
    encoder = Prediction(task, lambda inputs: _read(task, inputs))
    bar = keras.utils.Progbar(
        len(batches), verbose=int(verbose in ("auto", 1)), unit_name="encoded batch"
    )
    vectors = [None] * len(examples)
    for number, (rows, _) in enumerate(batches.batches):
        (inputs,) = batches[number]
        (features,) = encoder.over([inputs])
        for place, row in enumerate(rows):
            vector = features[place]
            if vector.ndim == 2 and PADDING_MASK in inputs:
                vector = vector[: inputs[PADDING_MASK][place].sum()]
            vectors[row] = vector.copy()  # A view would keep the padding in memory.
        bar.update(number + 1)
    rows = FeatureRows(examples.rows.lengths, vectors)
    # A step of a head is too cheap to save padding.
    buckets = lengths_of(examples.rows)
    options = {"buckets": buckets, "source": _feature_source(task)}
    return EncodedFeatures(rows, examples.labels, examples.sample_weight, **options)


@keras.saving.register_keras_serializable(package="bert_keras")
class LinearProbe(JointTask):
    """Trains the head of a task on the features of its frozen encoder, without the encoder.

    `fit` and `evaluate` take what `encode_features` returned. The head is the task's own: after
    `fit`, the task answers with the trained head, and is what is saved and exported. It is compiled
    with the same arguments as the task.

    Args:
        task: a `TextClassifier` or a `TokenClassifier` with `frozen="backbone"`.
        **kwargs: `name`, `dtype`, by default the task's, and `trainable`, see `keras.Model`.

    Raises:
        ValueError: the task's head reads something else, or its backbone trains.

    Example: see `encode_features`.
    """

    part_names = ("task",)
    reader_name = "task"
    made_of = "LinearProbe(TextClassifier.from_preset(..., frozen='backbone'))"
    input_names = (FEATURES,)

    def __init__(
        self,
        task: TextClassifier | TokenClassifier,
        **kwargs: Unpack[LayerOptions],
    ) -> None:
        _check_can_be_cached(task)
        super().__init__(task, task, **kwargs)
        self.task, self.data = task, FeatureData(self)
        self.num_classes, self.label_names = task.num_classes, task.label_names
        self.recipe = copy.copy(task.recipe)
        self.compile_with(self.recipe.fresh_optimizer(task))

    @property
    def tasks(self) -> tuple[Task]:
        """The task whose head is trained."""
        return (self.task,)

    def check_inputs(self, inputs):
        """Raises `TypeError` unless the inputs are features."""
        if not (isinstance(inputs, dict) and set(inputs) == {FEATURES}):
            raise TypeError(
                "A LinearProbe takes features, `encode_features(task, texts, labels)`. Received: "
                f"{type(inputs).__name__}. Its task takes texts: `head_task.task`."
            )

    def call(self, inputs, training=None):
        features = inputs[FEATURES]
        outputs = {"sequence_output": features}
        if len(features.shape) == 2:
            # Each pooling leaves a sequence of one token as it is.
            outputs = {"sequence_output": features[:, None], "pooled_output": features}
        return self.task.head_outputs(outputs, {}, training)

    default_loss, default_metrics = of_reader("default_loss"), of_reader("default_metrics")
    label_kind, check_class_weight = of_reader("label_kind"), of_reader("check_class_weight")
    learning_rate_multipliers = of_reader("learning_rate_multipliers")

    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
        """Returns the loss, see the task."""
        if getattr(self.task, "crf", False):
            y, y_pred, sample_weight = self.task.chain_losses(x, y, y_pred, sample_weight)
        return super().compute_loss(x, y, y_pred, sample_weight, training)

    def save_to_preset(self, folder, card=None):
        """Writes the task, see `Task.save_to_preset`."""
        self.task.save_to_preset(folder, card)


class FeatureData(TaskData):
    """The data of a `LinearProbe`, encoded already."""

    def normalize(self, x, y=None, sample_weight=None):
        """Returns features; what Keras evaluates during `fit` are batches."""
        is_whole = isinstance(x, EncodedFeatures) or not self.task.recipe.is_running
        return Columns(x, y, sample_weight, "texts" if is_whole else "batches")

    def split(self, columns, share):
        """Returns the features to train on and those at the end."""
        parts = split_off_end(self.encode(columns), None, None, share)
        return [Columns(*part) for part in parts]

    def encode(self, columns, training=True):
        """Returns features as they are; raises if another encoder or pooling computed them."""
        (x, y, sample_weight, _), task = columns, self.task.task
        self.task.check_inputs({FEATURES: x} if isinstance(x, EncodedFeatures) else x)
        if y is not None or sample_weight is not None:
            raise ValueError(
                "Features have their labels and weights, from `encode_features`. Received others."
            )
        _check_is_frozen(task)
        if x.source != _feature_source(task):
            raise ValueError(
                f"These features were made for another backbone than this {type(task).__name__}'s, "
                "or for another pooling. Encode the texts again: `encode_features(task, ...)`."
            )
        return x


def _check_can_be_cached(task):
    """Raises `ValueError` unless the encoder returns the same in every epoch."""
    fits = isinstance(task, (TextClassifier, TokenClassifier)) and hasattr(task.head, "read")
    # A class with its own train step may compute more than the head.
    if not fits or type(task).train_step is not Task.train_step:
        raise ValueError(
            "`encode_features` is for `TextClassifier` and `TokenClassifier`. Received: a "
            f"{type(task).__name__}. Give its `fit` the texts."
        )
    _check_is_frozen(task)


def _check_is_frozen(task):
    trained = {id(variable) for variable in task.trainable_variables}
    if any(id(variable) in trained for variable in task.backbone.variables):
        raise ValueError(
            "Features come from a backbone that does not train, frozen='backbone'. Received: "
            f"frozen={task.frozen!r}, and weights of the backbone that train."
        )


def _feature_source(task):
    return task.backbone, getattr(task, "pooling", None)


def _read(task, inputs):
    """Returns the features that the task's head reads."""
    first_only = task.reads_first_token_only
    outputs = task.backbone_outputs(inputs, training=False, first_token_only=first_only)
    return keras.ops.cast(task.head.read(outputs, inputs.get(PADDING_MASK)), "float32")


def _take(column, indices):
    """Returns some rows of labels or weights; `None` stays `None`."""
    if column is None or isinstance(column, Ragged):
        return column and column.take(indices)
    return np.asarray(column)[indices]
