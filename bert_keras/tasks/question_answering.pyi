from collections.abc import Iterable, Sequence
from typing import Any, Literal, Self, overload

from bert_keras._types import (
    Answer,
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
from bert_keras.preprocessing.question_windows import QuestionWindows
from bert_keras.preprocessing.text_preprocessor import TextPreprocessor
from bert_keras.tasks.span_search import NBest
from bert_keras.tasks.task import Task

OUTPUTS: tuple[str, str]

class QuestionAnswering(Task):
    stride: int
    max_question_length: int
    max_answer_length: int
    normalization: Literal["document", "per_window"]
    no_answer_threshold: float | None
    dropout: float
    mask_padding: bool
    def __init__(
        self,
        backbone: Backbone,
        preprocessor: TextPreprocessor | None = None,
        stride: int = 128,
        max_question_length: int = 64,
        max_answer_length: int = 30,
        normalization: Literal["document", "per_window"] = "document",
        no_answer_threshold: float | None = None,
        dropout: float | None = None,
        mask_padding: bool = True,
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
        stride: int = ...,
        max_question_length: int = ...,
        max_answer_length: int = ...,
        normalization: Literal["document", "per_window"] = ...,
        no_answer_threshold: float | None = ...,
        dropout: float | None = ...,
        mask_padding: bool = ...,
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
    # With `top_k` above 1 a list of answers a question.
    @overload
    def answer(  # type: ignore[overload-overlap]
        self,
        question: str,
        context: str,
        top_k: Literal[1] = 1,
        batch_size: int | None = None,
        verbose: Verbose = 0,
    ) -> Answer: ...
    @overload
    def answer(
        self,
        question: str,
        context: str,
        top_k: int,
        batch_size: int | None = None,
        verbose: Verbose = 0,
    ) -> list[Answer]: ...
    @overload
    def answer(  # type: ignore[overload-overlap]
        self,
        question: Texts,
        context: str | Texts,
        top_k: Literal[1] = 1,
        batch_size: int | None = None,
        verbose: Verbose = 0,
    ) -> list[Answer]: ...
    @overload
    def answer(
        self,
        question: Texts,
        context: str | Texts,
        top_k: int,
        batch_size: int | None = None,
        verbose: Verbose = 0,
    ) -> list[list[Answer]]: ...
    def n_best(
        self, x: Any, size: int = 20, batch_size: int | None = None, verbose: Verbose = 0
    ) -> list[NBest]: ...
    def cut(self, x: Any) -> QuestionWindows: ...
    def has_no_answer(self, best: NBest) -> bool: ...
    def tune_no_answer_threshold(
        self,
        x: Any,
        y: Labels | None = None,
        metric: Literal["f1", "exact"] = "f1",
        found: Sequence[NBest] | None = None,
        batch_size: int | None = None,
        verbose: Verbose = 0,
    ) -> dict[str, float]: ...
