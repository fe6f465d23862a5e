from collections.abc import Iterable, Sequence
from typing import Any, Self, overload

import keras

from bert_keras._types import (
    Data,
    Dtype,
    Frozen,
    JudgedToken,
    Path,
    Projection,
    Texts,
    Truncation,
    Verbose,
)
from bert_keras.models.backbone import Backbone
from bert_keras.preprocessing.text_preprocessor import TextPreprocessor
from bert_keras.tasks.task import Task

class ReplacedTokenDetector(Task):
    def __init__(
        self,
        backbone: Backbone,
        preprocessor: TextPreprocessor | None = None,
        frozen: Frozen | None = None,
        *,
        lora_rank: int | None = ...,
        lora_alpha: float | None = ...,
        lora_targets: Sequence[Projection] = ...,
        lora_layers: Iterable[int] | None = ...,
        name: str | None = ...,
        dtype: Dtype | None = ...,
        trainable: bool = ...,
    ) -> None: ...
    @classmethod
    def from_preset(  # type: ignore[override]
        cls,
        preset: Path,
        *,
        load_weights: bool = True,
        preprocessor: TextPreprocessor | None = ...,
        frozen: Frozen | None = ...,
        lora_rank: int | None = ...,
        lora_alpha: float | None = ...,
        lora_targets: Sequence[Projection] = ...,
        lora_layers: Iterable[int] | None = ...,
        name: str | None = ...,
        dtype: Dtype | None = ...,
        trainable: bool = ...,
        max_length: int | None = ...,
        truncation: Truncation = ...,
        text_columns: str | Sequence[str] | None = ...,
        unpadded: bool = ...,
        backbone: dict[str, Any] = ...,
    ) -> Self: ...
    # Of texts a list, one array a text; of ready inputs an array.
    def predict(  # type: ignore[override]
        self,
        x: Data,
        batch_size: int | None = None,
        *,
        verbose: Verbose = ...,
        steps: int | None = ...,
        callbacks: Sequence[keras.callbacks.Callback] | None = ...,
    ) -> Any: ...
    @overload
    def is_replaced(
        self, text: str, batch_size: int | None = None, verbose: Verbose = 0
    ) -> list[JudgedToken]: ...
    @overload
    def is_replaced(
        self, text: Texts, batch_size: int | None = None, verbose: Verbose = 0
    ) -> list[list[JudgedToken]]: ...
