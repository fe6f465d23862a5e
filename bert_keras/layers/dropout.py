"""Dropout whose random numbers cost little."""

import keras
from keras import ops

from bert_keras.engine import kernels as backends


@keras.saving.register_keras_serializable(package="bert_keras")
class Dropout(keras.layers.Dropout):
    """`keras.layers.Dropout`, with cheaper random numbers where Keras's take long.

    `output = inputs * mask / (1 - rate)`, each element of the mask 1 with the probability
    `1 - rate` and 0 otherwise. A BERT draws as many random numbers in a training step as it has
    hidden states and attention weights.

    - JAX: a hash of each element's place and of the seed instead of threefry, cheap enough that
      XLA computes it where the mask is used.
    - TensorFlow, and PyTorch on the CPU: 16 bits a number, four of a 64-bit draw, instead of a
      draw for each. The rate is rounded to a multiple of 1 / 65,536 below 1 then, and the scale is
      that of the rounded rate.
    - PyTorch on accelerators, under `torch.compile`, or with a seed: as in Keras.

    Where Keras's is not used, half precision is rounded after scaling; the scale itself is not
    rounded, which at a rate of 0.1 would make all values 0.2 % too large or too small.

    Args:
        rate: float in [0, 1].
        **kwargs: as in `keras.layers.Dropout`.

    Call arguments:
        inputs: float tensor of any shape.
        training: bool; without it the inputs are returned as they are.

    Reference:
        [Srivastava et al., 2014](https://jmlr.org/papers/v15/srivastava14a.html).
    """

    def call(self, inputs, training=False):
        mask = self.mask(inputs, ops.shape(inputs)) if training else None
        if mask is None:
            return super().call(inputs, training=training)
        return backends.masked(inputs, mask, self.rate)

    def mask(self, like, shape):
        """Draws which elements are kept: a tensor for `backends.masked`, `None` if Keras draws.

        Args:
            like: tensor, on whose device the mask is to be.
            shape: tuple, of what is dropped from.
        """
        if 0 < self.rate < 1 and self.noise_shape is None:
            return backends.dropout_mask(self, like, shape)
        return None
