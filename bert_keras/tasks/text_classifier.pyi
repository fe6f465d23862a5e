from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Self, overload

import keras
import numpy as np
from numpy.typing import NDArray

from bert_keras._types import (
    Data,
    Dtype,
    Frozen,
    HeadOptions,
    OneText,
    Path,
    Pooling,
    ProblemType,
    Projection,
    Texts,
    Truncation,
    Verbose,
)
from bert_keras.models.backbone import Backbone
from bert_keras.models.from_text import TextAnswer
from bert_keras.preprocessing.text_preprocessor import TextPreprocessor
from bert_keras.tasks.task import Task

class TextClassifier(Task):
    problem_type: ProblemType
    num_classes: int
    label_names: list[str] | None
    pooling: Pooling
    head_options: HeadOptions
    dropout: float
    def __init__(
        self,
        backbone: Backbone,
        num_classes: int = 2,
        preprocessor: TextPreprocessor | None = None,
        dropout: float | None = None,
        problem_type: ProblemType = "single_label",
        label_names: Sequence[str] | None = None,
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
    @property
    def text_answer(self) -> TextAnswer: ...
    @classmethod
    def from_preset(  # type: ignore[override]
        cls,
        preset: Path,
        *,
        load_weights: bool = True,
        num_classes: int = ...,
        preprocessor: TextPreprocessor | None = ...,
        dropout: float | None = ...,
        problem_type: ProblemType = ...,
        label_names: Sequence[str] | None = ...,
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
    def predict(  # type: ignore[override]
        self,
        x: Data,
        batch_size: int | None = None,
        *,
        verbose: Verbose = ...,
        steps: int | None = ...,
        callbacks: Sequence[keras.callbacks.Callback] | None = ...,
    ) -> NDArray[np.float32]: ...
    def probabilities(
        self, x: Data, batch_size: int | None = None, verbose: Verbose = 0
    ) -> NDArray[np.float32]: ...
    # `label` or `labels` and `probabilities`; or `score` or `scores`, as `problem_type` says.
    @overload
    def classify(
        self,
        texts: OneText,
        batch_size: int | None = None,
        threshold: float | Sequence[float] | Mapping[str, float] = 0.5,
        verbose: Verbose = 0,
    ) -> dict[str, Any]: ...
    @overload
    def classify(
        self,
        texts: Texts,
        batch_size: int | None = None,
        threshold: float | Sequence[float] | Mapping[str, float] = 0.5,
        verbose: Verbose = 0,
    ) -> list[dict[str, Any]]: ...
    def make_head(self) -> keras.layers.Layer: ...

def head_of(
    task: Task, pooling: Pooling | None, head_options: HeadOptions | None
) -> tuple[Pooling, HeadOptions]: ...
def dropout_of(task: Task, dropout: float | None) -> float: ...
