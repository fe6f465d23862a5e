from collections.abc import Iterable, Sequence
from typing import Any, Literal, Self

from bert_keras._types import Dtype, Frozen, Path, Pooling, ProblemType, Projection, Truncation
from bert_keras.models.backbone import Backbone
from bert_keras.preprocessing.text_preprocessor import TextPreprocessor
from bert_keras.tasks.text_classifier import TextClassifier

class LongTextClassifier(TextClassifier):
    num_windows: int
    stride: int | None
    combine: Literal["mean", "max", "self_attention"]
    def __init__(
        self,
        backbone: Backbone,
        num_classes: int = 2,
        preprocessor: TextPreprocessor | None = None,
        num_windows: int = 4,
        stride: int | None = None,
        combine: Literal["mean", "max", "self_attention"] = "mean",
        dropout: float | None = None,
        problem_type: ProblemType = "single_label",
        label_names: Sequence[str] | None = None,
        pooling: Pooling | None = None,
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
        num_windows: int = ...,
        stride: int | None = ...,
        combine: Literal["mean", "max", "self_attention"] = ...,
        dropout: float | None = ...,
        problem_type: ProblemType = ...,
        label_names: Sequence[str] | None = ...,
        pooling: Pooling | None = ...,
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
