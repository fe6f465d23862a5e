"""Dropout with cheap random numbers, small masks, and exact scales in half precision."""

import keras

from bert_keras.engine import kernels
from bert_keras.engine.fast_layer_call import DirectCall


@keras.saving.register_keras_serializable(package="bert_keras")
class Dropout(DirectCall, keras.layers.Dropout):
    """`keras.layers.Dropout` with cheaper random numbers or smaller masks.

    `output = inputs * mask / (1 - rate)`, each element of the mask 1 with the probability
    `1 - rate` and 0 otherwise. A BERT draws as many random numbers in a training step as it has
    hidden states and attention weights.

    - JAX: a hash of each element's place and the seed instead of threefry, cheap enough for XLA to
      compute it where the mask is used.
    - TensorFlow: its own random numbers, but computed in float32. In half precision Keras would
      round the scale, at a rate of 0.1 by 0.2 %.
    - PyTorch on a CPU: 16-bit numbers, four from each 64-bit draw. The rate is rounded to a
      multiple of 1 / 65,536 below 1, and the scale belongs to the rounded rate. A mask takes a byte
      for each element.
    - PyTorch on accelerators, under `torch.compile`, or with a seed: Keras's own.

    Args:
        rate: float in [0, 1].
        **kwargs: as in `keras.layers.Dropout`.

    Call arguments:
        inputs: float tensor of any shape.
        training: bool; if it is not `True`, the inputs are returned unchanged.
        residual: float tensor of the same shape, added to the outputs, or `None`.

    Reference:
        [Srivastava et al., 2014](https://jmlr.org/papers/v15/srivastava14a.html).
    """

    def call(self, inputs, training=False, residual=None):
        if not (training and 0 < self.rate < 1) or self.noise_shape is not None:
            outputs = super().call(inputs, training=training)
        elif keras.backend.backend() != "torch":
            outputs = kernels.dropped(inputs, self.seed_generator.next(), self.rate)
        elif not kernels.draws_cheaply(inputs, self):
            outputs = super().call(inputs, training=True)
        else:
            mask, scale = kernels.dropout_mask(inputs, self.rate)
            if residual is not None:  # One operation, and one of its gradient, instead of three.
                return residual.addcmul(inputs, mask, value=scale)
            outputs = inputs * mask * scale
        return outputs if residual is None else residual + outputs
