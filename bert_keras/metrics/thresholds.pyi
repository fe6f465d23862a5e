import numpy as np
from numpy.typing import ArrayLike, NDArray

def tune_thresholds(
    true: ArrayLike, scores: ArrayLike, default: float = 0.5
) -> NDArray[np.float64]: ...
