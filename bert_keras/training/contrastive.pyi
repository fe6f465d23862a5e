from typing import Literal

import keras

from bert_keras._types import Dtype, Tensor

DISTANCES: tuple[str, ...]

class MultipleNegativesRanking(keras.losses.Loss):
    scale: float
    symmetric: bool
    def __init__(
        self,
        scale: float = 20.0,
        symmetric: bool = False,
        reduction: str | None = "mean_with_sample_weight",
        *,
        name: str | None = ...,
        dtype: Dtype | None = ...,
    ) -> None: ...

class CosineRegression(keras.losses.Loss):
    def __init__(
        self,
        reduction: str | None = "mean_with_sample_weight",
        *,
        name: str | None = ...,
        dtype: Dtype | None = ...,
    ) -> None: ...

class TripletLoss(keras.losses.Loss):
    margin: float
    distance: Literal["cosine", "euclidean"]
    def __init__(
        self,
        margin: float = 0.5,
        distance: Literal["cosine", "euclidean"] = "cosine",
        reduction: str | None = "mean_with_sample_weight",
        *,
        name: str | None = ...,
        dtype: Dtype | None = ...,
    ) -> None: ...

def cosine(first: Tensor, second: Tensor) -> Tensor: ...
def check_num_texts(vectors: Tensor, least: int, most: int | None = None) -> None: ...
