from collections.abc import Iterable, Sequence
from typing import Any, Self, overload

from bert_keras._types import Dtype, Frozen, IsNext, Path, Projection, Texts, Truncation, Verbose
from bert_keras.preprocessing.masking import Masking
from bert_keras.preprocessing.text_preprocessor import TextPreprocessor
from bert_keras.tasks.masked_lm import MaskedLM

OUTPUTS: tuple[str, str]

class Pretraining(MaskedLM):
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
    @overload
    def is_next(
        self, first: str, second: str, batch_size: int | None = None, verbose: Verbose = 0
    ) -> IsNext: ...
    @overload
    def is_next(
        self, first: Texts, second: Texts, batch_size: int | None = None, verbose: Verbose = 0
    ) -> list[IsNext]: ...
