from typing import Any, Self

from bert_keras._types import Path

class SeveralMasks:
    consistency: float | None
    dropout_samples: int
    def __init__(
        self, *args: Any, consistency: float | None = None, dropout_samples: int = 1, **kwargs: Any
    ) -> None: ...
    # The task's, of which it stands in front.
    @classmethod
    def from_preset(
        cls,
        preset: Path,
        *,
        load_weights: bool = True,
        consistency: float | None = None,
        dropout_samples: int = 1,
        **kwargs: Any,
    ) -> Self: ...
