from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Any, Literal

import keras

from bert_keras._types import Tensor

NO_WEIGHT_DECAY: tuple[str, ...]

class AdamW(keras.optimizers.Optimizer):
    beta_1: float
    beta_2: float
    epsilon: float
    bias_correction: bool
    def __init__(
        self,
        learning_rate: float | keras.optimizers.schedules.LearningRateSchedule = 5e-5,
        weight_decay: float = 0.01,
        beta_1: float = 0.9,
        beta_2: float = 0.999,
        epsilon: float = 1e-6,
        global_clipnorm: float | Literal["auto"] | None = "auto",
        bias_correction: bool = True,
        exclude_from_weight_decay: Iterable[str] = ...,
        learning_rate_multipliers: Iterable[tuple[str, float]] = (),
        *,
        clipnorm: float | None = ...,
        clipvalue: float | None = ...,
        use_ema: bool = ...,
        ema_momentum: float = ...,
        ema_overwrite_frequency: int | None = ...,
        loss_scale_factor: float | None = ...,
        gradient_accumulation_steps: int | None = ...,
        name: str = ...,
    ) -> None: ...
    @property
    def learning_rate(self) -> Any: ...
    @learning_rate.setter
    def learning_rate(
        self, learning_rate: float | keras.optimizers.schedules.LearningRateSchedule
    ) -> None: ...
    @property
    def frozen_paths(self) -> list[str]: ...
    def freeze(self, *patterns: str) -> None: ...
    def unfreeze(self, *patterns: str) -> None: ...

class Lamb(AdamW): ...

def after(tensors: Sequence[Tensor] | None) -> AbstractContextManager[Any]: ...
