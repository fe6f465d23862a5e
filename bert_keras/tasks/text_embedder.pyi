from collections.abc import Iterable, Sequence
from typing import Any, Literal, Self, overload

import keras
import numpy as np
from numpy.typing import NDArray

from bert_keras._types import (
    AsArray,
    Data,
    Dtype,
    Frozen,
    Hit,
    Path,
    Pooling,
    Projection,
    Texts,
    Truncation,
    Verbose,
)
from bert_keras.models.backbone import Backbone
from bert_keras.models.from_text import TextAnswer
from bert_keras.preprocessing.text_preprocessor import TextPreprocessor
from bert_keras.tasks.task import Task

OBJECTIVES: dict[str, tuple[type[keras.losses.Loss], int, int | None]]

class TextEmbedder(Task):
    text_answer: TextAnswer
    pooling: Pooling
    normalize: bool
    objective: Literal["ranking", "similarity", "triplet"]
    def __init__(
        self,
        backbone: Backbone,
        preprocessor: TextPreprocessor | None = None,
        pooling: Pooling = "mean",
        normalize: bool = True,
        objective: Literal["ranking", "similarity", "triplet"] = "ranking",
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
        pooling: Pooling = ...,
        normalize: bool = ...,
        objective: Literal["ranking", "similarity", "triplet"] = ...,
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
    def embed(
        self, texts: str | Texts, batch_size: int | None = None, verbose: Verbose = 0
    ) -> NDArray[np.float32]: ...
    # A str, or one vector, has one list of hits.
    @overload
    def semantic_search(
        self,
        queries: str,
        documents: Texts,
        top_k: int = 5,
        batch_size: int | None = None,
        verbose: Verbose = 0,
    ) -> list[Hit]: ...
    @overload
    def semantic_search(
        self,
        queries: AsArray,
        documents: Texts,
        top_k: int = 5,
        batch_size: int | None = None,
        verbose: Verbose = 0,
    ) -> Any: ...
    @overload
    def semantic_search(
        self,
        queries: Texts,
        documents: Texts,
        top_k: int = 5,
        batch_size: int | None = None,
        verbose: Verbose = 0,
    ) -> list[list[Hit]]: ...
