import pathlib
from collections.abc import Callable, Mapping
from typing import Any

import keras

from bert_keras._types import Path

class TrainingLog(keras.callbacks.Callback):
    path: pathlib.Path
    step: int
    tokens_per_step: int | None
    evaluate: Callable[[Any], Mapping[str, float]] | None
    evaluate_every: int
    lines: list[dict[str, float]]
    also: Callable[[dict[str, float]], object]
    def __init__(
        self,
        folder: Path,
        step: int = 0,
        tokens_per_step: int | None = None,
        evaluate: Callable[[Any], Mapping[str, float]] | None = None,
        evaluate_every: int = 1000,
        also: Callable[[dict[str, float]], object] | None = None,
    ) -> None: ...
    @property
    def tokens_per_second(self) -> float | None: ...

def read_log(path: Path) -> list[dict[str, float]]: ...
