"""Examples of a task, all at once and in one form, whatever they came as."""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, Literal, Self

import keras
import numpy as np
from numpy.typing import ArrayLike

from bert_keras.checks import check_choice, check_int, check_number, is_int
from bert_keras.inputs import TOKEN_IDS
from bert_keras.preprocessing.batching import BucketedBatches, length_buckets
from bert_keras.preprocessing.ragged import Ragged
from bert_keras.preprocessing.text_preprocessor import TextPreprocessor
from bert_keras.types import Inputs

DEFAULT_BATCH_SIZE = 32
# Tokens of a batch that PyTorch predicts on the CPU, see docs/benchmarks.md.
TOKENS_AT_ONCE = 2048


@dataclasses.dataclass
class Examples:
    """How long each row is, how some rows are packed, and what belongs to them.

    A row is what one entry of a batch is: a text or pair, a window, a question with its choices.

    Fields:
        lengths: int `(num_rows,)`, packed lengths.
        make_inputs: function of rows, int64 `(size,)`, and the length to pad to; a dict of arrays.
        labels: as the loss takes them: an array, a `Ragged` of one a token, a dict of such, `None`.
        sample_weight: likewise.
        buckets: the lengths that batches are padded to; `None` for one, the longest.
        sequences_a_row: int, sequences of the longest row: 1 but for choices and windows.
        are_sorted: bool, whether rows of like length go into one batch; ready arrays keep together.
        read_by: backbone and pooling of the task whose `encode_features` made them, or `None`.
        depends_on_padding: bool, whether the numbers hang on the lengths that rows are padded to.
        finish: function of the `BucketedBatches` that returns what `fit` reads, or `None`.
    """

    lengths: np.ndarray
    make_inputs: Callable
    labels: object = None
    sample_weight: object = None
    buckets: tuple | None = None
    sequences_a_row: int = 1
    are_sorted: bool = True
    depends_on_padding: bool = False
    finish: Callable | None = None
    read_by: tuple | None = None

    @classmethod
    def of_arrays(cls, inputs: Inputs, labels: Any = None, sample_weight: Any = None) -> Self:
        """Returns the examples of ready inputs, a dict of NumPy arrays that was checked."""
        shape = inputs[TOKEN_IDS].shape if TOKEN_IDS in inputs else (len(labels), 1)
        return cls(
            np.full(shape[0], shape[-1], np.int64),
            lambda rows, length: {name: array[rows] for name, array in inputs.items()},
            labels,
            sample_weight,
            are_sorted=False,
        )

    @classmethod
    def of_texts(
        cls,
        preprocessor: TextPreprocessor,
        ids: Ragged,
        pair_ids: Ragged | None = None,
        labels: Any = None,
        sample_weight: Any = None,
    ) -> Self:
        """Returns the examples of tokenized texts, or pairs, see `TextPreprocessor.tokenize`."""

        def make_inputs(rows, length):
            pairs = None if pair_ids is None else pair_ids.take(rows)
            return preprocessor.pack(ids.take(rows), pairs, length=length)

        lengths = preprocessor.packed_lengths(ids, pair_ids)
        return cls(lengths, make_inputs, labels, sample_weight, buckets_of(preprocessor.max_length))

    def __len__(self) -> int:
        return len(self.lengths)

    def take(self, rows: ArrayLike) -> Self:
        """Returns the examples of some rows, an int array."""
        return dataclasses.replace(
            self,
            lengths=self.lengths[rows],
            make_inputs=lambda places, length: self.make_inputs(rows[places], length),
            labels=_take(self.labels, rows),
            sample_weight=_take(self.sample_weight, rows),
        )

    def batches(self, batch_size: int | None = None, **options: Any) -> BucketedBatches:
        """Returns a `BucketedBatches` of these examples, before `finish`.

        Args:
            batch_size: int, 32 by default.
            **options: `shuffle`, `seed`, `window`, `epoch`, `pad_last_batch`, `unpadded`,
                `token_budget`, see `BucketedBatches`.
        """
        return BucketedBatches(
            self.lengths,
            self.make_inputs,
            labels=self.labels,
            sample_weight=self.sample_weight,
            batch_size=DEFAULT_BATCH_SIZE if batch_size is None else batch_size,
            buckets=self.buckets or (int(max(self.lengths, default=1)),),
            **options,
        )

    def weighted(
        self,
        class_weight: Mapping[int, float] | Literal["balanced"],
        num_classes: int | None = None,
    ) -> Self:
        """Returns the same examples with weights multiplied by those of their classes.

        Args:
            class_weight: dict from the number of a class to its weight, 1 for those left out; or
                `"balanced"`, as in scikit-learn: number of examples / (classes * those of a class).
            num_classes: int, or `None` where the labels tell.

        Raises:
            ValueError: see `check_class_weight`.
        """
        labels = self.labels.values if isinstance(self.labels, Ragged) else self.labels
        count = num_classes or int(labels.max(initial=0)) + 1
        check_class_weight(class_weight, count)
        if isinstance(class_weight, str):
            numbers = np.bincount(labels, minlength=count)
            class_weight = dict(enumerate(len(labels) / (count * np.maximum(numbers, 1))))
        table = np.ones(count, "float32")
        for key, weight in class_weight.items():
            table[key] = weight
        weights, old = table[labels], self.sample_weight
        if isinstance(self.labels, Ragged):
            weights = Ragged.from_flat(weights * old.values, old.lengths)
        elif old is not None:
            old = np.asarray(old, "float32")
            weights = weights * old.reshape(old.shape + (1,) * (weights.ndim - old.ndim))
        return dataclasses.replace(self, sample_weight=weights)

    def for_prediction(self, batch_size: int | None, task: Any) -> BucketedBatches:
        """Returns the batches of `predict`, without labels, the longest first.

        Args:
            batch_size: int; by default 32, on PyTorch on the CPU as many rows as have 2,048 tokens.
            task: whose weights say where it computes, and whose preprocessor whether unpadded.
        """
        is_torch = keras.backend.backend() == "torch"
        on_cpu = is_torch and task.backbone.weights[0].value.device.type == "cpu"
        budget = max(1, TOKENS_AT_ONCE // self.sequences_a_row)
        by_tokens = batch_size is None and on_cpu and self.are_sorted
        # Of fewer examples the next power of two: few shapes, no waste.
        size = DEFAULT_BATCH_SIZE if batch_size is None else check_int("batch_size", batch_size)
        size = min(size, 1 << max(0, len(self) - 1).bit_length())
        return dataclasses.replace(self, labels=None, sample_weight=None).batches(
            size,
            shuffle=False,
            # XLA compiles a last batch of its own size anew, which costs more than further rows.
            pad_last_batch=not is_torch,
            unpadded=getattr(task.preprocessor, "unpadded", False),
            token_budget=budget if by_tokens else None,
        )


def check_class_weight(class_weight, num_classes=None):
    """Raises `ValueError` unless weights of classes are `"balanced"`, or a dict of numbers from 0.

    Args:
        class_weight: see `Examples.weighted`.
        num_classes: int, or `None` where nothing tells it.
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


def _take(column, rows):
    if isinstance(column, dict):
        return {key: _take(value, rows) for key, value in column.items()}
    if column is None or isinstance(column, Ragged):
        return column and column.take(rows)
    return np.asarray(column)[rows]


def buckets_of(longest: int) -> tuple[int, ...]:
    """Returns the lengths that batches are padded to: finer where they need no compilation.

    The same lengths whatever the data, so that one `evaluate` compiles few that another did not.
    """
    is_torch = keras.backend.backend() == "torch"
    return length_buckets(longest, step=4, first=4) if is_torch else length_buckets(longest)
