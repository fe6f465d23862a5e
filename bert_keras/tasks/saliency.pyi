from collections.abc import Sequence
from typing import Literal, NamedTuple, TypeAlias, overload

import numpy as np
from numpy.typing import NDArray

from bert_keras._types import OneText, Texts
from bert_keras.tasks.text_classifier import TextClassifier

_Baseline: TypeAlias = Literal["mask", "pad", "zero"]

BASELINES: tuple[_Baseline, ...]

class Saliency(NamedTuple):
    tokens: list[str]
    scores: NDArray[np.float32]
    target: str | int
    logit: float
    baseline_logit: float
    @property
    def error(self) -> float: ...

@overload
def integrated_gradients(
    classifier: TextClassifier,
    texts: OneText,
    target: str | int | None = None,
    *,
    steps: int = 32,
    baseline: _Baseline = "mask",
    batch_size: int = 64,
) -> Saliency: ...
@overload
def integrated_gradients(
    classifier: TextClassifier,
    texts: Texts,
    target: str | int | Sequence[str | int] | None = None,
    *,
    steps: int = 32,
    baseline: _Baseline = "mask",
    batch_size: int = 64,
) -> list[Saliency]: ...
