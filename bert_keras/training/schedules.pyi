from collections.abc import Iterable

import keras

from bert_keras._types import Decay, Tensor

class WarmupDecay(keras.optimizers.schedules.LearningRateSchedule):
    peak_learning_rate: float
    total_steps: int
    warmup: float
    warmup_steps: int
    decay: Decay
    end_learning_rate: float
    power: float
    def __init__(
        self,
        peak_learning_rate: float,
        total_steps: int,
        warmup: float = 0.1,
        decay: Decay = "linear",
        end_learning_rate: float = 0.0,
        power: float = 1.0,
    ) -> None: ...
    def __call__(self, step: Tensor) -> Tensor: ...

class PhasedSchedule(keras.optimizers.schedules.LearningRateSchedule):
    schedules: list[keras.optimizers.schedules.LearningRateSchedule]
    def __init__(
        self, schedules: Iterable[keras.optimizers.schedules.LearningRateSchedule]
    ) -> None: ...
    def __call__(self, step: Tensor) -> Tensor: ...
