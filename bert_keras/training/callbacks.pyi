import pathlib
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal

import keras

from bert_keras._types import Path

class BestOnMetric(keras.callbacks.Callback):
    measure: Callable[[Any], float | Mapping[str, float]]
    name: str
    mode: Literal["max", "min"]
    patience: int | None
    min_delta: float
    restore_best_weights: bool
    path: pathlib.Path | None
    verbose: bool
    best: float | None
    best_epoch: int | None
    def __init__(
        self,
        measure: Callable[[Any], float | Mapping[str, float]],
        name: str = "metric",
        mode: Literal["max", "min"] = "max",
        patience: int | None = None,
        min_delta: float = 0.0,
        restore_best_weights: bool = True,
        path: Path | None = None,
        verbose: bool = False,
    ) -> None: ...

class GradualUnfreezing(keras.callbacks.Callback):
    stages: list[list[str]]
    epochs_per_stage: int
    def __init__(self, stages: Iterable[Iterable[str]], epochs_per_stage: int = 1) -> None: ...
