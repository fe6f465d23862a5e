import pathlib
from typing import Any

import keras

from bert_keras._types import Path

class TrainingCheckpoint(keras.callbacks.Callback):
    folder: pathlib.Path
    every: int
    settings: Any
    keep: int
    step: int
    def __init__(
        self, folder: Path, every: int = 1000, settings: Any = None, keep: int = 2
    ) -> None: ...
    def restore(self, model: keras.Model) -> None: ...
    def save(self) -> None: ...
