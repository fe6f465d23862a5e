"""Examples as rows of token ids: how long each row is, its labels, and the inputs of some rows."""

import copy
from collections.abc import Mapping
from typing import Any, Literal, Self

import keras
import numpy as np
from numpy.typing import ArrayLike, NDArray

from bert_keras import distribution
from bert_keras.checks import check_choice, check_number, is_int
from bert_keras.engine.compiled_programs import COMPILES_SHAPES
from bert_keras.inputs import TOKEN_IDS
from bert_keras.preprocessing.batching import BucketedBatches, length_buckets
from bert_keras.preprocessing.ragged import Ragged
from bert_keras.preprocessing.text_preprocessor import TextPreprocessor
from bert_keras.types import Array, Inputs

DEFAULT_BATCH_SIZE = 32


class EncodedExamples:
    """All examples of a data set, encoded. A subclass holds the token ids and packs some rows.

    A row is one entry of a batch: a text or a pair, a window, a question with its choices.

    Args:
        lengths: int `(num_rows,)`, packed lengths.
        labels: labels as the loss takes them: an array `(num_rows, ...)`, a `Ragged` with one label
            per token, a dict of these, or `None`.
        sample_weight: weights in the same form.
        buckets: increasing ints, the lengths that batches are padded to; `None` for the longest
            row's length alone.

    Attributes:
        sequences_per_row: int, sequences in the longest row: 1 except for choices and windows.
        are_sorted: bool, whether rows of similar length share a batch. Ready arrays keep their
            order.
        keeps_buckets: bool, whether batches must be padded to `buckets` and no other lengths,
            because results depend on the padded length, or because a step costs next to nothing.
    """

    sequences_per_row = 1
    are_sorted = True
    keeps_buckets = False

    def __init__(
        self,
        lengths: ArrayLike,
        labels: Any = None,
        sample_weight: Any = None,
        buckets: tuple[int, ...] | None = None,
    ) -> None:
        self.lengths = np.asarray(lengths, np.int64)
        self.labels, self.sample_weight = labels, sample_weight
        self.buckets = buckets or (int(self.lengths.max(initial=1)),)

    def rows(self, indices: NDArray[np.int64], length: int) -> dict[str, Array]:
        """Returns the inputs of some rows, padded to a length.

        Args:
            indices: int64 `(size,)`, the rows.
            length: int, one of `buckets`.
        """
        raise NotImplementedError(f"{type(self).__name__} must define `rows`.")

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
            make_inputs=self.rows,
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


class EncodedTexts(EncodedExamples):
    """Tokenized texts or pairs.

    Args:
        preprocessor: the `TextPreprocessor` that packs them.
        ids: `Ragged` of token ids, one row per text, see `TextPreprocessor.tokenize`.
        pair_ids: `Ragged` with the second texts, or `None`.
        labels, sample_weight: see `EncodedExamples`.
    """

    def __init__(
        self,
        preprocessor: TextPreprocessor,
        ids: Ragged,
        pair_ids: Ragged | None = None,
        labels: Any = None,
        sample_weight: Any = None,
    ) -> None:
        lengths = preprocessor.packed_lengths(ids, pair_ids)
        super().__init__(lengths, labels, sample_weight, buckets_of(preprocessor.max_length))
        self.preprocessor, self.ids, self.pair_ids = preprocessor, ids, pair_ids

    def rows(self, indices, length):
        return self.packed(indices, length)

    def packed(self, indices: NDArray[np.int64], length: int) -> dict[str, Array]:
        """Returns the inputs of some texts, padded to a length, see `rows`."""
        pairs = None if self.pair_ids is None else self.pair_ids.take(indices)
        return self.preprocessor.pack(self.ids.take(indices), pairs, length=length)


class ReadyInputs(EncodedExamples):
    """A dict of checked NumPy arrays, see `bert_keras.inputs`."""

    are_sorted = False

    def __init__(self, inputs: Inputs, labels: Any = None, sample_weight: Any = None) -> None:
        num_rows, *_, length = inputs[TOKEN_IDS].shape
        super().__init__(np.full(num_rows, length), labels, sample_weight)
        self.inputs = inputs

    def rows(self, indices, length):
        return {name: array[indices] for name, array in self.inputs.items()}


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


def buckets_of(max_length: int) -> tuple[int, ...]:
    """Returns the lengths that batches are padded to: finer on PyTorch, which compiles nothing.

    They do not depend on the data, so that several calls of `evaluate` share most compiled lengths.
    On an accelerator they are multiples of 8, as its attention kernels need.
    """
    if COMPILES_SHAPES or distribution.has_accelerator():
        return length_buckets(max_length, first=8)
    return length_buckets(max_length, step=4, first=4)
