"""Dropout with cheap random numbers."""

import keras
from keras import ops

from bert_keras.engine import kernels
from bert_keras.engine.fast_layer_call import DirectCall


@keras.saving.register_keras_serializable(package="bert_keras")
class Dropout(DirectCall, keras.layers.Dropout):
    """`keras.layers.Dropout` with cheaper random numbers on backends where Keras's are slow.

    `output = inputs * mask / (1 - rate)`, each element of the mask 1 with the probability
    `1 - rate` and 0 otherwise. A BERT draws as many random numbers in a training step as it has
    hidden states and attention weights.

    - JAX: a hash of each element's place and the seed instead of threefry, cheap enough for XLA to
      compute it where the mask is used.
    - TensorFlow, and PyTorch on the CPU: 16-bit numbers, four from each 64-bit draw. The rate is
      rounded to a multiple of 1 / 65,536 below 1, and the scale belongs to the rounded rate.
    - PyTorch on accelerators, under `torch.compile`, or with a seed: Keras's own.

    Except for Keras's own, values of half precision are rounded after scaling, and the scale itself
    is not rounded. At a rate of 0.1, a rounded scale would make all values wrong by 0.2 %.

    Args:
        rate: float in [0, 1].
        **kwargs: as in `keras.layers.Dropout`.

    Call arguments:
        inputs: float tensor of any shape.
        training: bool; if it is not `True`, the inputs are returned unchanged.

    Reference:
        [Srivastava et al., 2014](https://jmlr.org/papers/v15/srivastava14a.html).
    """

    def call(self, inputs, training=False):
        mask = kernels.dropout_mask(self, inputs, ops.shape(inputs)) if training else None
        if mask is None:
            return super().call(inputs, training=training)
        return kernels.apply_dropout_mask(inputs, mask, self.rate)
