from collections.abc import Iterable, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from bert_keras._types import Path, Texts, Truncation
from bert_keras.preprocessing.ragged import Ragged
from bert_keras.tokenizers.tokenizer import Tokenizer

DEFAULT_MAX_LENGTH: int

class TextPreprocessor:
    tokenizer: Tokenizer
    max_length: int
    truncation: Truncation
    input_names: tuple[str, ...]
    text_columns: list[str] | None
    unpadded: bool
    def __init__(
        self,
        tokenizer: Tokenizer,
        max_length: int | None = None,
        truncation: Truncation = "longest_first",
        input_names: Iterable[str] = ...,
        text_columns: str | Sequence[str] | None = None,
        unpadded: bool = False,
    ) -> None: ...
    @classmethod
    def from_preset(
        cls,
        preset: Path,
        *,
        max_length: int | None = ...,
        truncation: Truncation = ...,
        input_names: Iterable[str] = ...,
        text_columns: str | Sequence[str] | None = ...,
        unpadded: bool = ...,
    ) -> Self: ...
    def __call__(
        self, texts: str | Texts, pairs: str | Texts | None = None, length: int | None = None
    ) -> dict[str, NDArray[np.int32]]: ...
    def for_inputs(self, names: Iterable[str]) -> Self: ...
    def room(self, is_pair: bool = False) -> int: ...
    def tokenize(
        self, texts: str | Texts, pairs: str | Texts | None = None
    ) -> tuple[Ragged, Ragged | None]: ...
    def word_starts(
        self, texts: str | Texts, pairs: str | Texts | None = None
    ) -> tuple[Ragged, Ragged | None]: ...
    def pack(
        self, ids: Ragged, pair_ids: Ragged | None = None, length: int | None = None
    ) -> dict[str, NDArray[np.int32]]: ...
    def pack_word_starts(
        self, starts: Ragged, pair_starts: Ragged | None = None, length: int | None = None
    ) -> NDArray[np.bool_]: ...
    def packed_lengths(self, ids: Ragged, pair_ids: Ragged | None = None) -> NDArray[np.int64]: ...
    def save_assets(self, folder: Path) -> None: ...
    def load_assets(self, folder: Path) -> None: ...
    def get_config(self) -> dict[str, Any]: ...
    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Self: ...

def split_pairs(
    texts: str | Texts, pairs: str | Texts | None = None
) -> tuple[list[str], list[str] | None]: ...
