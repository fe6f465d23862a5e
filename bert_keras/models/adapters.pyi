from collections.abc import Iterable, Sequence
from typing import Any, Self

import keras

from bert_keras._types import Projection

DEFAULT_TARGETS: tuple[str, ...]

class Adaptable:
    default_targets: tuple[str, ...]
    lora: dict[str, Any] | None
    def add_adapters(
        self,
        rank: int,
        alpha: float | None = None,
        targets: Sequence[Projection] = ...,
        layers: Iterable[int] | None = None,
    ) -> None: ...
    @property
    def adapter_weights(self) -> list[keras.Variable]: ...
    @property
    def frozen_by_adapters(self) -> list[keras.Variable]: ...
    def merge_adapters(self) -> None: ...
    def save(self, *args: Any, **kwargs: Any) -> None: ...
    def without_adapters(self) -> Self: ...
