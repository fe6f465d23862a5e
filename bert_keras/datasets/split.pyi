from collections.abc import Hashable, Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from bert_keras.datasets.examples import Examples

def normalize_text(text: str) -> str: ...
def split_indices(
    texts: Sequence[str] | tuple[Sequence[str], Sequence[str]],
    test_size: float,
    seed: int | str = 0,
    strata: Iterable[Hashable] | None = None,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]: ...
def split_examples(
    examples: Examples,
    test_size: float,
    seed: int | str = 0,
    strata: Iterable[Hashable] | None = None,
) -> tuple[Examples, Examples]: ...
def count_shared_texts(
    first: Examples | Sequence[str], second: Examples | Sequence[str]
) -> int: ...
