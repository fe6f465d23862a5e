"""The initial values of BERT's weights."""

import keras
import numpy as np
from keras import ops

from bert_keras.engine.size_limit import note_variable


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


def bert_dense(owner, units, name, layer_class=keras.layers.Dense, **options):
    """Returns a dense layer of another layer, with kernels that begin as all of BERT's do.

    Args:
        owner: the layer that has it; its `initializer_range` and dtype are the dense layer's.
        units: int, width of the output.
        name: str.
        layer_class: `keras.layers.Dense`, or a subclass.
        **options: further arguments of the class, such as `activation`.
    """
    initializer = bert_initializer(owner.initializer_range)
    options |= {"kernel_initializer": initializer, "dtype": owner.dtype_policy, "name": name}
    return layer_class(units, **options)


def head_initializer(stddev=0.02):
    """Returns a new normal initializer of a head, without the cut of `bert_initializer`.

    A head is new where the encoder is trained, so within a short fine-tuning its kernel stays near
    where it began, and what it began with decides how fast the whole learns. The original code cuts
    heads too, which takes 12 % of their spread; transformers does not, and this does as it does.

    Args:
        stddev: float, standard deviation.

    Returns:
        A `RandomNormal`.
    """
    return RandomNormal(stddev=stddev)


@keras.saving.register_keras_serializable(package="bert_keras")
class RandomNormal(keras.initializers.RandomNormal):
    """`keras.initializers.RandomNormal`, drawn by NumPy as `TruncatedNormal` is.

    Args:
        mean: float.
        stddev: float, standard deviation.
        seed: int; without one it is drawn from Python's global generator.
    """

    def __call__(self, shape, dtype=None):
        note_variable(shape)
        values = np.random.default_rng(self.seed).standard_normal(shape, dtype=np.float32)
        values = np.float32(self.stddev) * values + np.float32(self.mean)
        return ops.convert_to_tensor(values, dtype or keras.config.floatx())


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
        note_variable(shape)
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
