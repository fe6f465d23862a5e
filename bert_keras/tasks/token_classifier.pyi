from collections.abc import Iterable, Sequence
from typing import Any, Self, overload

import keras

from bert_keras._types import (
    Data,
    Dtype,
    Frozen,
    Path,
    Projection,
    Scheme,
    TaggedText,
    Tensor,
    Texts,
    Truncation,
    Verbose,
)
from bert_keras.models.backbone import Backbone
from bert_keras.preprocessing.text_preprocessor import TextPreprocessor
from bert_keras.tasks.task import Task

CRF_LEARNING_RATE_MULTIPLIER: float

class TokenClassifier(Task):
    num_classes: int
    label_names: list[str] | None
    crf: bool
    stride: int | None
    dropout: float
    def __init__(
        self,
        backbone: Backbone,
        num_classes: int,
        preprocessor: TextPreprocessor | None = None,
        dropout: float | None = None,
        label_names: Sequence[str] | None = None,
        crf: bool = False,
        stride: int | None = None,
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
        num_classes: int = ...,
        preprocessor: TextPreprocessor | None = ...,
        dropout: float | None = ...,
        label_names: Sequence[str] | None = ...,
        crf: bool = ...,
        stride: int | None = ...,
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
    # Of sentences a list, one array a sentence; of ready inputs an array.
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
    def tag(
        self, sentences: str, batch_size: int | None = None, verbose: Verbose = 0
    ) -> TaggedText: ...
    @overload
    def tag(
        self, sentences: Texts, batch_size: int | None = None, verbose: Verbose = 0
    ) -> list[TaggedText]: ...
    def predict_tags(
        self, sentences: str | Texts, batch_size: int | None = None, verbose: Verbose = 0
    ) -> list[list[str]] | list[list[int]]: ...
    def answer_config(self) -> dict[str, Any]: ...
    def evaluate_tags(
        self,
        sentences: str | Texts,
        tags: Sequence[Sequence[str | int]],
        scheme: Scheme | None = None,
        batch_size: int | None = None,
        verbose: Verbose = 0,
    ) -> dict[str, Any]: ...
    def compute_loss(
        self,
        x: Any = None,
        y: Tensor | None = None,
        y_pred: Tensor | None = None,
        sample_weight: Tensor | None = None,
        training: bool = True,
    ) -> Tensor: ...
