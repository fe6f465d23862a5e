"""The initial values of BERT's weights, and when layers get them."""

import keras
import numpy as np
from keras import ops

from bert_keras.engine.size_limit import count_parameters


def build_parts(parts, *shape):
    """Builds the layers that are not built yet. Layers made from a config already are.

    Args:
        parts: layers, among anything else, such as `None` for one that is left out.
        *shape: the shape of their input, or nothing for layers that need none.
    """
    for part in parts:
        if isinstance(part, keras.layers.Layer) and not part.built:
            part.build(*shape)


@keras.saving.register_keras_serializable(package="bert_keras")
class RandomNormal(keras.initializers.RandomNormal):
    """`keras.initializers.RandomNormal`, drawn by NumPy as in `TruncatedNormal`: that of heads.

    A head is new while the encoder is trained already. In a short fine-tuning its kernel stays near
    its initial values, which therefore decide how fast the model learns. The original code
    truncates heads too, which narrows their spread by 12 %. transformers does not, nor does this.

    Args:
        mean: float.
        stddev: float, standard deviation.
        seed: int; without one it is drawn from Python's global generator.
    """

    def __call__(self, shape, dtype=None):
        count_parameters(shape)
        values = np.random.default_rng(self.seed).standard_normal(shape, dtype=np.float32)
        values = np.float32(self.stddev) * values + np.float32(self.mean)
        return ops.convert_to_tensor(values, dtype or keras.config.floatx())


@keras.saving.register_keras_serializable(package="bert_keras")
class TruncatedNormal(keras.initializers.TruncatedNormal):
    """BERT's `keras.initializers.TruncatedNormal`, drawn by NumPy: the same on every backend.

    After `keras.utils.set_random_seed`, a model starts with the same weights on TensorFlow, JAX and
    PyTorch. The backends' own draws differ, and take several times the memory of the values. Each
    variable needs an initializer of its own: variables of the same shape that share one without a
    seed get the same values.

    Args:
        mean: float.
        stddev: float, standard deviation before truncation at twice that value.
        seed: int; without one it is drawn from Python's global generator.

    Reference:
        `create_initializer` in google-research/bert, `modeling.py`.
    """

    def __call__(self, shape, dtype=None):
        count_parameters(shape)
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
