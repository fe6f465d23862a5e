from collections.abc import Iterable, Sequence
from typing import Any, Self

from bert_keras._types import Dtype, Frozen, Path, Projection, Truncation
from bert_keras.models.backbone import Backbone
from bert_keras.preprocessing.masking import Masking
from bert_keras.preprocessing.text_preprocessor import TextPreprocessor
from bert_keras.tasks.masked_lm import MaskedLM

OUTPUTS: tuple[str, str]

class SpanBoundary(MaskedLM):
    further_inputs: tuple[str, ...]
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
