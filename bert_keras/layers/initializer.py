"""The initial values of BERT's weights."""

import keras
import numpy as np
from keras import ops


def bert_initializer(stddev=0.02):
    """Returns a new truncated normal initializer, cut at two standard deviations.

    Each variable needs one of its own: an initializer without a seed gives every variable of one
    shape the same values when it is shared.

    Args:
        stddev: float, standard deviation before the cut.

    Returns:
        A `TruncatedNormal`.

    Reference:
        `create_initializer` in google-research/bert, `modeling.py`.
    """
    return TruncatedNormal(stddev=stddev)


@keras.saving.register_keras_serializable(package="bert_keras")
class TruncatedNormal(keras.initializers.TruncatedNormal):
    """`keras.initializers.TruncatedNormal`, drawn by NumPy: alike on every backend.

    After `keras.utils.set_random_seed` a model begins with the same weights on TensorFlow, JAX and
    PyTorch. The draws of the backends differ, and take several times the memory of the values.

    Args:
        mean: float.
        stddev: float, standard deviation before the cut at twice of it.
        seed: int; without one it is drawn from Python's global generator.
    """

    def __call__(self, shape, dtype=None):
        generator = np.random.default_rng(self.seed)
        values = np.asarray(generator.standard_normal(shape, dtype=np.float32))
        flat = values.reshape(-1)
        outside = np.flatnonzero(np.abs(flat) > 2)
        while outside.size:
            flat[outside] = generator.standard_normal(outside.size, dtype=np.float32)
            outside = outside[np.abs(flat[outside]) > 2]
        values *= np.float32(self.stddev)
        values += np.float32(self.mean)
        return ops.convert_to_tensor(values, dtype or keras.config.floatx())
