from collections.abc import Iterable, Sequence
from typing import Any, Self, overload

import keras
import numpy as np
from numpy.typing import NDArray

from bert_keras._types import (
    Array,
    Dtype,
    Frozen,
    Labels,
    Path,
    Projection,
    Texts,
    Truncation,
    Verbose,
)
from bert_keras.models.backbone import Backbone
from bert_keras.preprocessing.masking import Masking
from bert_keras.preprocessing.text_preprocessor import TextPreprocessor
from bert_keras.tasks.task import Task

class MaskedLM(Task):
    masking: Masking
    has_next_sentence: bool
    def __init__(
        self,
        backbone: Backbone,
        preprocessor: TextPreprocessor | None = None,
        masking: Masking | dict[str, Any] | None = None,
        frozen: Frozen | None = None,
        head_options: dict[str, Any] | None = None,
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
        masking: Masking | dict[str, Any] | None = ...,
        frozen: Frozen | None = ...,
        head_options: dict[str, Any] | None = ...,
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
    # For each `[MASK]` the likeliest tokens with their probabilities.
    @overload
    def fill_mask(
        self, text: str, top_k: int = 5, batch_size: int | None = None, verbose: Verbose = 0
    ) -> list[list[tuple[str, float]]]: ...
    @overload
    def fill_mask(
        self, text: Texts, top_k: int = 5, batch_size: int | None = None, verbose: Verbose = 0
    ) -> list[list[list[tuple[str, float]]]]: ...
    @overload
    def score(self, texts: str, batch_size: int | None = None, verbose: Verbose = 0) -> float: ...
    @overload
    def score(
        self, texts: Texts, batch_size: int | None = None, verbose: Verbose = 0
    ) -> list[float]: ...
    def make_head(self) -> keras.layers.Layer: ...
    def make_masked_lm_head(self, name: str) -> keras.layers.Layer: ...
    def row_labels(self, x: Texts, y: Labels | None) -> NDArray[np.int32]: ...
    def token_logits(self, outputs: Any) -> Array: ...
