from collections.abc import Iterable, Sequence
from typing import Any, Self, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bert_keras._types import (
    Array,
    Dtype,
    Frozen,
    IsNext,
    Path,
    Projection,
    Texts,
    Truncation,
    Verbose,
)
from bert_keras.models.backbone import Backbone
from bert_keras.models.from_text import TextAnswer
from bert_keras.preprocessing.text_preprocessor import TextPreprocessor
from bert_keras.tasks.task import Task

class NextSentencePrediction(Task):
    text_answer: TextAnswer
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
    @overload
    def is_next(
        self, first: str, second: str, batch_size: int | None = None, verbose: Verbose = 0
    ) -> IsNext: ...
    @overload
    def is_next(
        self, first: Texts, second: Texts, batch_size: int | None = None, verbose: Verbose = 0
    ) -> list[IsNext]: ...

def check_pairs(x: Any) -> None: ...
def as_pairs(
    first: str | Texts, second: str | Texts
) -> tuple[tuple[list[str], list[str]], bool]: ...
def encode_next_labels(labels: ArrayLike) -> NDArray[np.int32]: ...
def next_sentence_answers(logits: Array) -> list[IsNext]: ...
