"""Turns what the user passes to a task into encoded rows, and rows into batches."""

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any, Literal

import keras
import numpy as np

from bert_keras import distribution
from bert_keras.checks import as_column, check_int, check_labels_given, check_not_empty
from bert_keras.engine.jax_compilation_cache import COMPILES_SHAPES
from bert_keras.engine.train_step import shares_batches
from bert_keras.inputs import PADDING_MASK, check_keys
from bert_keras.preprocessing.batching import (
    DEFAULT_BATCH_SIZE,
    EncodedExamples,
    PreparedBatches,
    choose_bucket_lengths,
)
from bert_keras.preprocessing.encoded_rows import ReadyRows
from bert_keras.tasks.dataset_adapters import Stream, wrapped
from bert_keras.tasks.encoded_labels import check_class_weight, class_weighted
from bert_keras.tasks.user_columns import (
    Columns,
    check_labels_and_weights,
    class_weight_by_index,
    is_text,
    normalize_columns,
    split_off_end,
)
from bert_keras.tasks.validation import overrides
from bert_keras.types import Data, Labels, Weights

# The cost of compiling a step for one more length, in the tokens that JAX could train on in the
# same time, times `hidden_dim ** 2`: divide by that for a given encoder. (Both times grow with the
# number of layers, which cancels out.) Measured on two cores, see docs/benchmarks.md; a GPU trains
# on more tokens in that time. TensorFlow gains nothing from fewer lengths, and PyTorch compiles
# nothing.
COMPILE_COST = {"jax": 1e9}


class TaskData:
    """Turns what a user passes to `fit`, `evaluate` and `predict` into batches, in three steps.

    1. Columns: `normalize`, once.
    2. Encoded rows: `encode`, by the task's own `encode_texts` and `encode_labels`.
    3. Batches: `batches`, and for each use `for_training`, `for_validation` and `for_evaluation`.
       Data sets that yield batches are `wrapped`.

    Args:
        task: a `Task`.
    """

    def __init__(self, task: keras.Model) -> None:
        self.task = task

    def normalize(
        self, x: Any, y: Labels | None = None, sample_weight: Weights | None = None
    ) -> Columns:
        """Returns what a user passes in one form, see `normalize_columns`."""
        return normalize_columns(self.task, x, y, sample_weight)

    def split(self, columns: Columns, share: float) -> list[Columns]:
        """Returns the examples to train on and those at the end, for `validation_split`.

        Raises:
            TypeError: they are a data set of batches, so its end is unknown.
        """
        if columns.kind == "batches":
            raise TypeError(
                "`validation_split` needs all examples at once: texts, or a dict of arrays. "
                f"Received: {type(columns.x).__name__}. Split the data set, and pass "
                "`validation_data`."
            )
        return [Columns(*part, columns.kind) for part in split_off_end(*columns[:3], share)]

    def check_has_preprocessor(self) -> None:
        """Raises `ValueError` if there is nothing to tokenize texts with."""
        if self.task.preprocessor is None:
            raise ValueError(
                f"This {type(self.task).__name__} has no preprocessor, so it cannot take text. "
                "Pass a `TextPreprocessor` to its constructor, or the dict of arrays of "
                "bert_keras.inputs."
            )

    # Encoded rows

    def encode(
        self,
        x: Data,
        y: Labels | None = None,
        sample_weight: Weights | None = None,
        training: bool = True,
    ) -> EncodedExamples:
        """Returns all examples as rows of token ids, with everything checked.

        Args:
            x: raw examples, or a dict of arrays, see `Task`; or `Columns` with labels and weights.
            y: labels, or `None` if there are none.
            sample_weight: float `(num_examples,)`, or `None`.
            training: bool, `True` to train or to evaluate on them, which needs labels.

        Raises:
            TypeError, ValueError: texts, inputs or labels do not fit, or there is no preprocessor.
        """
        task, columns = self.task, x
        if not isinstance(x, Columns):
            columns = self.normalize(x, y, sample_weight)
        x, y, sample_weight, kind = columns
        if training and y is None and task.needs_labels:
            check_labels_given(y, type(task).__name__)
        if kind != "arrays":
            if task.preprocessor is None:
                self.check_has_preprocessor()
            x = as_column(x) if kind == "batches" else x
            check_labels_and_weights(x, y, sample_weight)
            return task.encode_texts(x, y, sample_weight, training)
        check_keys(x, task.input_names)
        inputs = {name: keras.ops.convert_to_numpy(value) for name, value in x.items()}
        check_labels_and_weights(inputs, y, sample_weight)
        task.check_arrays(inputs)
        labels = task.encode_ready_labels(y, inputs) if training else None
        if training and sample_weight is None and task.label_per_token and PADDING_MASK in inputs:
            sample_weight = np.asarray(inputs[PADDING_MASK], "float32")
        return EncodedExamples(ReadyRows(inputs), labels, sample_weight)

    def one_batch(
        self,
        x: Data,
        y: Labels | None = None,
        sample_weight: Weights | None = None,
        training: bool = True,
    ) -> tuple[Any, Any, Any]:
        """Returns inputs, labels and weights of one batch; ready inputs stay as they are.

        Args:
            x, y, sample_weight, training: see `encode`; the rows keep their order.
        """
        columns = self.normalize(x, y, sample_weight)
        x, y, sample_weight, kind = columns
        if kind != "texts":
            dtype = getattr(getattr(y, "dtype", None), "kind", "O" if isinstance(y, list) else "i")
            if kind == "arrays" and dtype in "OU" and y is not None:
                # Names, or a list, which Keras would take for several outputs.
                y = self.task.encode_ready_labels(y, x)
            return x, y, sample_weight
        examples = self.encode(columns, training=training)
        return keras.utils.unpack_x_y_sample_weight(examples.as_one_batch())

    # Batches

    def batches(
        self,
        examples: EncodedExamples,
        batch_size: int | None = None,
        shuffle: bool = False,
        epoch: int = 0,
        num_epochs: int | None = None,
    ) -> keras.utils.PyDataset:
        """Returns the batches that `fit` or `evaluate` reads, with rows of similar length in each.

        Args:
            examples: see `encode`.
            batch_size: int, 32 by default.
            shuffle: bool, whether each epoch has its own order.
            epoch: int, the number of the first epoch.
            num_epochs: int, epochs that `fit` reads them for, which decide how many lengths are
                worth compiling on JAX; or `None`.
        """
        task = self.task
        # For XLA, rows of weight 0 in the last batch cost less than compiling a smaller shape.
        # `evaluate` must not pad: Keras averages the losses of batches by rows, not by weights.
        # A user's own step need not expect weights, or heed them.
        own_step = ("train_step", "compute_loss", "compute_metrics")
        pads = COMPILES_SHAPES and shuffle and task.ignores_weight_0()
        pads = pads and not overrides(task, *own_step)
        batches = examples.batches(
            batch_size,
            shuffle=shuffle,
            seed=task.recipe.seed or 0,
            window=task.recipe.bucket_window if shuffle else None,
            pad_last_batch=pads,
        )
        cost = COMPILE_COST.get(keras.backend.backend(), 0)
        if num_epochs and cost and examples.buckets is None:
            # Always chosen from epoch 0, so that a continued run keeps the lengths it began with.
            price = cost / (task.backbone.hidden_dim**2 * examples.rows.sequences_per_row)
            batches.buckets = choose_bucket_lengths(
                batches.batches, batches.buckets, num_epochs, price
            )
            batches.epoch = 0
        if epoch:
            batches.epoch = epoch
        if not shares_batches(task):
            return batches
        share = distribution.share_of(task, whole=True)
        if share.replicas == 1:
            return batches
        for rows, _ in batches.batches:
            share.check_rows(batches.batch_size if pads else len(rows))
        return PreparedBatches(batches, share)

    def for_training(
        self,
        columns: Columns,
        batch_size: int | None,
        class_weight: Mapping[Any, float] | Literal["balanced"] | None,
        shuffle: bool,
    ) -> dict[str, Any]:
        """Returns the arguments of `keras.Model.fit` that hold the data, checked, see `Task.fit`.

        `x` is an `EncodedExamples`, or a dataset.
        """
        if class_weight is not None:
            class_weight = self._checked_class_weight(class_weight, columns)
        if columns.kind == "batches":
            data = self.for_evaluation(columns, batch_size)
            if class_weight is not None:
                data["class_weight"] = class_weight
            return {**data, "shuffle": shuffle and not isinstance(data["x"], Stream)}
        examples = self.encode(columns)
        if class_weight is not None:
            num_classes = getattr(self.task, "num_classes", None)
            arguments = examples.labels, examples.sample_weight, class_weight, num_classes
            examples = dataclasses.replace(examples, sample_weight=class_weighted(*arguments))
        check_not_empty(examples, "Batches need at least one row")
        check_int("batch_size", DEFAULT_BATCH_SIZE if batch_size is None else batch_size)
        # Their batches shuffle themselves, by the seed and the number of the epoch.
        return {"x": examples, "shuffle": False}

    def for_evaluation(self, columns: Columns, batch_size: int | None = None) -> dict[str, Any]:
        """Returns the arguments of `keras.Model.evaluate` that hold the data, checked."""
        if columns.kind != "batches":
            return {"x": self.batches(self.encode(columns), batch_size)}
        x, y, sample_weight, _ = columns
        data = {"x": wrapped(self, x), "y": y, "sample_weight": sample_weight}
        if y is not None and isinstance(data["x"], (Iterator, Stream)):
            raise ValueError(
                "A data set that is read batch by batch must yield its labels, `(text, label)`. "
                f"Received: labels beside a {type(x).__name__}. Make it a list, in the order of "
                "the labels."
            )
        data["batch_size"] = batch_size
        return {name: value for name, value in data.items() if value is not None}

    def for_validation(self, data: Any, batch_size: int | None = None) -> Any:
        """Returns what `keras.Model.fit` takes as `validation_data`, checked."""
        if not isinstance(data, Columns):
            if isinstance(data, list) and self.normalize(data).kind == "batches":
                data = tuple(data)
            if not isinstance(data, tuple) or len(data) not in (2, 3) or is_text(data):
                data = (data,)
            data = self.normalize(*data)
        return self.for_evaluation(data, batch_size)["x"]

    # Options that depend on the data

    def check_predicts_all(self, steps: int | None, callbacks: Any) -> None:
        """Raises `ValueError` for options of `predict` where a task cuts texts into rows."""
        if steps is not None or callbacks:
            raise ValueError(
                f"`predict` of {type(self.task).__name__} takes `steps` and `callbacks` only with "
                f"ready inputs. Received: steps={steps}, callbacks={callbacks} with texts. Leave "
                "them out, or pass what the preprocessor returns."
            )

    def check_bucket_window(self, bucket_window: int, columns: Columns, shuffle: bool) -> None:
        """Raises `ValueError` if `fit(bucket_window=...)` would have no effect."""
        check_int("bucket_window", bucket_window)
        if not shuffle or columns.kind != "texts":
            raise ValueError(
                "`bucket_window` is for texts that are shuffled; ready inputs are not sorted. "
                f"Received: bucket_window={bucket_window} with shuffle={shuffle} and x a "
                f"{type(columns.x).__name__}."
            )

    def _checked_class_weight(self, class_weight, columns):
        """Returns class weights by class index, after checking them."""
        task = self.task
        if not task.has_classes:
            raise ValueError(
                "`class_weight` is for examples that have one class each, unlike those of this "
                f"{type(task).__name__}. Pass `sample_weight`, one for each example."
            )
        class_weight = class_weight_by_index(class_weight, getattr(task, "label_names", None))
        task.check_class_weight(class_weight)
        if columns.kind != "batches":
            return class_weight
        if task.label_per_token:  # Keras would read a sentence's tags as the scores of one label.
            raise TypeError(
                "`class_weight` takes all examples at once: sentences, or a dict of arrays. "
                f"Received: {type(columns.x).__name__}. Let it yield sample weights."
            )
        check_class_weight(class_weight, getattr(task, "num_classes", None))
        if class_weight == "balanced":
            raise ValueError(
                "`class_weight='balanced'` counts the examples of each class, which needs all of "
                f"them at once. Received: {type(columns.x).__name__}. Pass the weights, a dict."
            )
        return class_weight
