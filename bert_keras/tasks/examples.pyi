import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bert_keras._types import Array, Inputs
from bert_keras.preprocessing.batching import BucketedBatches
from bert_keras.preprocessing.ragged import Ragged
from bert_keras.preprocessing.text_preprocessor import TextPreprocessor

DEFAULT_BATCH_SIZE: int
TOKENS_AT_ONCE: int

@dataclasses.dataclass
class Examples:
    lengths: NDArray[np.int64]
    make_inputs: Callable[[NDArray[np.int64], int], dict[str, Array]]
    labels: Any = None
    sample_weight: Any = None
    buckets: tuple[int, ...] | None = None
    sequences_a_row: int = 1
    are_sorted: bool = True
    finish: Callable[[BucketedBatches], Any] | None = None
    read_by: tuple[Any, ...] | None = None
    @classmethod
    def of_arrays(cls, inputs: Inputs, labels: Any = None, sample_weight: Any = None) -> Self: ...
    @classmethod
    def of_texts(
        cls,
        preprocessor: TextPreprocessor,
        ids: Ragged,
        pair_ids: Ragged | None = None,
        labels: Any = None,
        sample_weight: Any = None,
    ) -> Self: ...
    def __len__(self) -> int: ...
    def take(self, rows: ArrayLike) -> Self: ...
    def batches(self, batch_size: int | None = None, **options: Any) -> BucketedBatches: ...
    def weighted(
        self,
        class_weight: Mapping[int, float] | Literal["balanced"],
        num_classes: int | None = None,
    ) -> Self: ...
    def for_prediction(self, batch_size: int | None, task: Any) -> BucketedBatches: ...

def buckets_of(longest: int) -> tuple[int, ...]: ...
