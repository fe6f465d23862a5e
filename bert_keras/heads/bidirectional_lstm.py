"""A bidirectional LSTM over sequences of different lengths."""

from typing import Unpack

import keras
from keras import ops

from bert_keras.engine.recurrent import lstm
from bert_keras.heads.masked_tokens import gather_positions
from bert_keras.layers.initializer import RandomNormal
from bert_keras.types import LayerOptions, Tensor


@keras.saving.register_keras_serializable(package="bert_keras")
class BidirectionalLSTM(keras.layers.Layer):
    """One LSTM from the first step to the last, and one from the last valid step to the first.

    With the gates `i, f, g, o = x_t W + h_{t-1} U + b`:

    ```
    c_t = sigmoid(f) * c_{t-1} + sigmoid(i) * tanh(g)
    h_t = sigmoid(o) * tanh(c_t)
    ```

    The output is `[forward; backward]` at valid steps and 0 at padding, as for PyTorch's packed
    sequences.

    Args:
        units: int, width of each direction.
        **kwargs: `name`, `dtype`, `trainable`, see `keras.layers.Layer`.

    Call arguments:
        x: float, `(batch, steps, width)`.
        lengths: int, `(batch,)`, valid steps of each row, which are its first.

    Returns:
        float, `(batch, steps, 2 * units)`.

    Reference:
        [Hochreiter and Schmidhuber, 1997](https://doi.org/10.1162/neco.1997.9.8.1735).
    """

    def __init__(self, units: int, **kwargs: Unpack[LayerOptions]) -> None:
        super().__init__(**kwargs)
        self.units = units

    def build(self, input_shape):
        shapes = {
            "kernel": (input_shape[-1], 4 * self.units),
            "recurrent_kernel": (self.units, 4 * self.units),
            "bias": (4 * self.units,),
        }
        stddev = (3 * self.units) ** -0.5  # PyTorch's.
        self.weights_of = {
            direction: [
                self.add_weight(shape, RandomNormal(stddev=stddev), name=f"{direction}_{name}")
                for name, shape in shapes.items()
            ]
            for direction in ("forward", "backward")
        }

    def call(self, x: Tensor, lengths: Tensor) -> Tensor:
        steps = ops.arange(ops.shape(x)[1], dtype="int32")
        lengths = ops.expand_dims(ops.cast(lengths, "int32"), 1)
        is_valid = steps < lengths
        mirrored = ops.where(is_valid, lengths - 1 - steps, steps)
        forward, backward = (
            lstm(x, *map(ops.convert_to_tensor, self.weights_of[direction]))
            for direction, x in (("forward", x), ("backward", gather_positions(x, mirrored)))
        )
        outputs = ops.concatenate([forward, gather_positions(backward, mirrored)], axis=-1)
        return outputs * ops.cast(ops.expand_dims(is_valid, 2), outputs.dtype)
