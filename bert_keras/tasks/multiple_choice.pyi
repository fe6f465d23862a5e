from collections.abc import Iterable, Sequence
from typing import Any, Self, overload

from bert_keras._types import (
    Choice,
    Dtype,
    Frozen,
    HeadOptions,
    Path,
    Pooling,
    Projection,
    Texts,
    Truncation,
    Verbose,
)
from bert_keras.models.backbone import Backbone
from bert_keras.preprocessing.text_preprocessor import TextPreprocessor
from bert_keras.tasks.task import Task

NO_CHOICE: float

class MultipleChoice(Task):
    pooling: Pooling
    head_options: HeadOptions
    dropout: float
    def __init__(
        self,
        backbone: Backbone,
        preprocessor: TextPreprocessor | None = None,
        dropout: float | None = None,
        pooling: Pooling | None = None,
        head_options: HeadOptions | None = None,
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
        dropout: float | None = ...,
        pooling: Pooling | None = ...,
        head_options: HeadOptions | None = ...,
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
    def choose(
        self, context: str, choices: Texts, batch_size: int | None = None, verbose: Verbose = 0
    ) -> Choice: ...
    @overload
    def choose(
        self,
        context: Texts,
        choices: Iterable[Texts],
        batch_size: int | None = None,
        verbose: Verbose = 0,
    ) -> list[Choice]: ...
