"""Examples as rows of token ids: how long each row is, its labels, and the inputs of some rows."""

import copy
from collections.abc import Mapping
from typing import Any, Literal, Self

import keras
import numpy as np
from numpy.typing import NDArray

from bert_keras.checks import check_choice, check_number, is_int
from bert_keras.inputs import TOKEN_IDS
from bert_keras.preprocessing.batching import BucketedBatches, buckets_of
from bert_keras.preprocessing.encoded_rows import Rows
from bert_keras.preprocessing.ragged import Ragged
from bert_keras.types import Array, Inputs

DEFAULT_BATCH_SIZE = 32


class EncodedExamples:
    """All examples of a data set, encoded, with their labels.

    Args:
        rows: `Rows`: an entry of a batch each, such as a text or a pair, a window, or a question
            with its choices.
        labels: labels as the loss takes them: an array `(num_rows, ...)`, a `Ragged` with one label
            per token, a dict of these, or `None`.
        sample_weight: weights in the same form.
        max_length: int, the longest sequence, for rows made from texts: batches are padded to the
            lengths of `buckets_of`. `None` pads them to the longest row.

    Attributes:
        are_sorted: bool, whether rows of similar length share a batch. Ready arrays keep their
            order.
        keeps_buckets: bool, whether batches must be padded to `buckets` and no other lengths,
            because results depend on the padded length, or because a step costs next to nothing.
    """

    are_sorted = True
    keeps_buckets = False

    def __init__(
        self,
        rows: Rows,
        labels: Any = None,
        sample_weight: Any = None,
        max_length: int | None = None,
    ) -> None:
        self.rows, self.lengths = rows, rows.lengths
        self.sequences_per_row = rows.sequences_per_row
        self.labels, self.sample_weight = labels, sample_weight
        longest = (int(self.lengths.max(initial=1)),)
        buckets = longest if max_length is None else buckets_of(max_length)
        self.buckets = buckets + rows.further_lengths

    def inputs(self, indices: NDArray[np.int64], length: int) -> dict[str, Array]:
        """Returns the inputs of some rows, padded to a length.

        Args:
            indices: int64 `(size,)`, the rows.
            length: int, one of `buckets`.
        """
        return self.rows.inputs(indices, length)

    def __len__(self) -> int:
        return len(self.lengths)

    def batches(self, batch_size: int | None = None, **options: Any) -> BucketedBatches:
        """Returns a `BucketedBatches` of these examples.

        Args:
            batch_size: int, 32 by default.
            **options: see `BucketedBatches`.
        """
        return BucketedBatches(
            self.lengths,
            make_inputs=self.inputs,
            labels=self.labels,
            sample_weight=self.sample_weight,
            batch_size=DEFAULT_BATCH_SIZE if batch_size is None else batch_size,
            buckets=self.buckets,
            **options,
        )

    def finish(self, batches: BucketedBatches) -> keras.utils.PyDataset:
        """Returns the data set that `fit` reads: these batches, unless a subclass masks them."""
        return batches

    def as_one_batch(self) -> tuple[Any, ...]:
        """Returns all rows as one batch, in their order, see `BucketedBatches`."""
        batches = self.batches(len(self), shuffle=False)
        ((_, length),) = batches.batches
        batches.batches = [(np.arange(len(self)), length)]
        return self.finish(batches)[0]

    def labelled(self, labels: Any, sample_weight: Any = None) -> Self:
        """Returns the same rows with other labels and weights."""
        examples = copy.copy(self)
        examples.labels, examples.sample_weight = labels, sample_weight
        return examples

    def weighted(
        self,
        class_weight: Mapping[int, float] | Literal["balanced"],
        num_classes: int | None = None,
    ) -> Self:
        """Returns the same rows with weights multiplied by those of their classes.

        Args:
            class_weight: dict from the number of a class to its weight, 1 for a class left out; or
                `"balanced"`, as in scikit-learn: examples / (classes * examples of the class).
            num_classes: int, or `None` to count the classes in the labels.

        Raises:
            ValueError: see `check_class_weight`.
        """
        labels = self.labels.values if isinstance(self.labels, Ragged) else self.labels
        if labels.ndim == 2 and labels.dtype.kind == "f":  # As in Keras, the likeliest class.
            labels = labels.argmax(axis=1)
        count = num_classes or int(labels.max(initial=0)) + 1
        check_class_weight(class_weight, count)
        if isinstance(class_weight, str):
            class_counts = np.bincount(labels, minlength=count)
            class_weight = dict(enumerate(len(labels) / (count * np.maximum(class_counts, 1))))
        weight_of_class = np.ones(count, "float32")
        for key, weight in class_weight.items():
            weight_of_class[key] = weight
        weights, sample_weight = weight_of_class[labels], self.sample_weight
        if isinstance(self.labels, Ragged):
            weights = Ragged.from_flat(weights * sample_weight.values, sample_weight.lengths)
        elif sample_weight is not None:
            sample_weight = np.asarray(sample_weight, "float32")
            new_axes = (1,) * (weights.ndim - sample_weight.ndim)
            weights = weights * sample_weight.reshape(sample_weight.shape + new_axes)
        return self.labelled(self.labels, weights)


class ReadyRows(Rows):
    """A dict of checked NumPy arrays, see `bert_keras.inputs`."""

    def __init__(self, arrays: Inputs) -> None:
        num_rows, *_, length = arrays[TOKEN_IDS].shape
        super().__init__(np.full(num_rows, length))
        self.arrays = arrays

    def inputs(self, indices, length):
        return {name: array[indices] for name, array in self.arrays.items()}


class ReadyInputs(EncodedExamples):
    """Ready inputs as examples, which keep their order."""

    are_sorted = False


def take(column: Any, indices: NDArray[np.int64]) -> Any:
    """Returns some rows of labels or weights; `None` stays `None`."""
    if column is None or isinstance(column, Ragged):
        return column and column.take(indices)
    return np.asarray(column)[indices]


def check_class_weight(class_weight, num_classes=None):
    """Raises `ValueError` unless class weights are `"balanced"` or a dict of numbers from 0.

    Args:
        class_weight: see `EncodedExamples.weighted`.
        num_classes: int, or `None` if it is unknown.
    """
    if not isinstance(class_weight, dict):
        check_choice("class_weight", class_weight, ("balanced",), "Or a dict from class to weight.")
        return
    count = np.inf if num_classes is None else num_classes
    wrong = [key for key in class_weight if not (is_int(key) and 0 <= key < count)]
    if wrong:
        raise ValueError(
            f"`class_weight` must have keys from 0 to {count - 1}, or names of labels. "
            f"Received: {wrong}."
        )
    for key, weight in class_weight.items():
        check_number(f"class_weight[{key}]", weight)
