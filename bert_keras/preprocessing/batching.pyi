from collections.abc import Callable, Iterable, Sequence
from typing import Any

import keras
import numpy as np
from numpy.typing import ArrayLike, NDArray

from bert_keras._types import Array
from bert_keras.preprocessing.ragged import Ragged

def length_buckets(max_length: int, step: int = 8, first: int = 16) -> tuple[int, ...]: ...
def bucket_lengths(lengths: ArrayLike, buckets: Sequence[int]) -> NDArray[np.int64]: ...
def sorted_batches(
    lengths: ArrayLike,
    batch_size: int = 32,
    token_budget: int | None = None,
    buckets: Sequence[int] | None = None,
) -> list[tuple[NDArray[np.int64], int]]: ...
def restore_order(computed: Array, batches: Iterable[tuple[NDArray[np.int64], int]]) -> Array: ...

class BucketedBatches(keras.utils.PyDataset):
    lengths: NDArray[np.int64]
    make_inputs: Callable[[NDArray[np.int64], int], dict[str, Array]]
    labels: Any
    sample_weight: Any
    batch_size: int
    shuffle: bool
    seed: int
    window: int
    buckets: tuple[int, ...]
    pad_last_batch: bool
    unpadded: bool
    token_budget: int | None
    batches: list[tuple[NDArray[np.int64], int]]
    def __init__(
        self,
        lengths: ArrayLike,
        make_inputs: Callable[[NDArray[np.int64], int], dict[str, Array]],
        labels: ArrayLike | Ragged | dict[str, Any] | None = None,
        sample_weight: ArrayLike | Ragged | dict[str, Any] | None = None,
        *,
        batch_size: int = 32,
        shuffle: bool = True,
        seed: int = 0,
        window: int | None = None,
        buckets: Sequence[int] | None = None,
        pad_last_batch: bool = False,
        epoch: int = 0,
        unpadded: bool = False,
        token_budget: int | None = None,
    ) -> None: ...
    @property
    def epoch(self) -> int: ...
    @epoch.setter
    def epoch(self, epoch: int) -> None: ...
    def __len__(self) -> int: ...
    def __getitem__(self, index: int) -> tuple[Any, ...]: ...
    def for_prediction(self, token_budget: int | None = None) -> BucketedBatches: ...
    def restore_order(self, outputs: ArrayLike) -> Array: ...

def pad_labels(labels: Any, rows: NDArray[np.int64], length: int) -> Any: ...
