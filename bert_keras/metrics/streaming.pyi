from typing import Literal

import keras

from bert_keras._types import Dtype, Tensor

class TokenRate(keras.metrics.Mean):
    def update_state(
        self, y_true: Tensor, y_pred: Tensor, sample_weight: Tensor | None = None
    ) -> None: ...
    def values_of(self, y_true: Tensor, y_pred: Tensor) -> Tensor: ...

class TokenAccuracy(TokenRate): ...

class ConfusionMatrixMetric(keras.metrics.Metric):
    num_classes: int
    matrix: keras.Variable
    def __init__(
        self, num_classes: int, name: str | None = None, dtype: Dtype = "float32"
    ) -> None: ...
    def update_state(
        self, y_true: Tensor, y_pred: Tensor, sample_weight: Tensor | None = None
    ) -> None: ...

class SparseF1Score(ConfusionMatrixMetric):
    average: Literal["binary", "micro", "macro"]
    positive: int
    def __init__(
        self,
        num_classes: int,
        average: Literal["binary", "micro", "macro"] = "binary",
        positive: int = 1,
        name: str | None = "f1",
        dtype: Dtype = "float32",
    ) -> None: ...
    def result(self) -> Tensor: ...

class MatthewsCorrelation(ConfusionMatrixMetric):
    def __init__(
        self, num_classes: int = 2, name: str | None = "matthews", dtype: Dtype = "float32"
    ) -> None: ...
    def result(self) -> Tensor: ...

class MaskedPerplexity(keras.metrics.Metric):
    loss_sum: keras.Variable
    weight_sum: keras.Variable
    def __init__(self, name: str | None = "perplexity", dtype: Dtype = "float32") -> None: ...
    def update_state(
        self, y_true: Tensor, y_pred: Tensor, sample_weight: Tensor | None = None
    ) -> None: ...
    def result(self) -> Tensor: ...
