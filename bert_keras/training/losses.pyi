import keras

from bert_keras._types import Dtype, Tensor

class WeightedLoss(keras.losses.Loss):
    settings: tuple[str, ...]
    def __init__(
        self,
        reduction: str | None = "mean_with_sample_weight",
        *,
        name: str | None = ...,
        dtype: Dtype | None = ...,
    ) -> None: ...

class SparseCrossentropy(WeightedLoss):
    label_smoothing: float
    def __init__(
        self,
        label_smoothing: float = 0.0,
        reduction: str | None = "mean_with_sample_weight",
        *,
        name: str | None = ...,
        dtype: Dtype | None = ...,
    ) -> None: ...

class SigmoidCrossentropy(WeightedLoss):
    label_smoothing: float
    def __init__(
        self,
        label_smoothing: float = 0.0,
        reduction: str | None = "mean_with_sample_weight",
        *,
        name: str | None = ...,
        dtype: Dtype | None = ...,
    ) -> None: ...

class SoftCrossentropy(WeightedLoss):
    temperature: float
    def __init__(
        self,
        temperature: float = 2.0,
        reduction: str | None = "mean_with_sample_weight",
        *,
        name: str | None = ...,
        dtype: Dtype | None = ...,
    ) -> None: ...

class CosineDistance(WeightedLoss):
    def __init__(
        self,
        reduction: str | None = "mean_with_sample_weight",
        *,
        name: str | None = ...,
        dtype: Dtype | None = ...,
    ) -> None: ...

class FocalCrossentropy(WeightedLoss):
    gamma: float
    def __init__(
        self,
        gamma: float = 2.0,
        reduction: str | None = "mean_with_sample_weight",
        *,
        name: str | None = ...,
        dtype: Dtype | None = ...,
    ) -> None: ...

class SpanCrossentropy(keras.losses.Loss): ...
class AsComputed(keras.losses.Loss): ...

def consistency_loss(first_logits: Tensor, second_logits: Tensor) -> Tensor: ...
