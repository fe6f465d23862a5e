from collections.abc import Iterable, Sequence
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bert_keras._types import Truncation
from bert_keras.preprocessing.ragged import Ragged
from bert_keras.tokenizers.layout import Layout

INPUT_NAMES: tuple[str, ...]
PAIR_STRATEGIES: tuple[Truncation, ...]
SINGLE_STRATEGIES: tuple[Truncation, ...]
STRATEGIES: tuple[Truncation, ...]
HEAD_LENGTH: int

def check_input_names(names: Iterable[str]) -> tuple[str, ...]: ...
def truncated_lengths(
    first: ArrayLike,
    second: ArrayLike,
    budget: int,
    truncation: Literal["longest_first", "only_first", "only_second"] = "longest_first",
) -> tuple[NDArray[np.int64], NDArray[np.int64]]: ...
def truncate(
    ids: Ragged | Sequence[Sequence[int]], budget: int, truncation: Truncation = "longest_first"
) -> tuple[Ragged, Ragged]: ...
def packed_lengths(
    ids: Ragged | Sequence[Sequence[int]],
    pair_ids: Ragged | Sequence[Sequence[int]] | None = None,
    *,
    layout: Layout,
    max_length: int,
) -> NDArray[np.int64]: ...
def pack(
    ids: Ragged | Sequence[Sequence[int]],
    pair_ids: Ragged | Sequence[Sequence[int]] | None = None,
    *,
    layout: Layout,
    pad_id: int,
    max_length: int,
    truncation: Truncation = "longest_first",
    length: int | None = None,
    input_names: Iterable[str] = ...,
) -> dict[str, NDArray[np.int32]]: ...
