"""The base class of heads."""

import inspect

import keras

from bert_keras.layers.dropout import Dropout
from bert_keras.layers.feed_forward import get_activation
from bert_keras.layers.initializer import bert_initializer


class Head(keras.layers.Layer):
    """Dense layers on what a backbone returns. A subclass keeps its arguments as attributes.

    Args:
        hidden_dim: int, width of the backbone.
        initializer_range: float, standard deviation of the initial kernels.
        **kwargs: `name`, `dtype`, `trainable`, see `keras.layers.Layer`.
    """

    def __init__(self, hidden_dim, initializer_range=0.02, **kwargs):
        super().__init__(**kwargs)
        self.hidden_dim = hidden_dim
        self.initializer_range = initializer_range

    def make_dense(self, units, activation=None, name="dense"):
        """Returns a dense layer of this head, see `keras.layers.Dense`."""
        return keras.layers.Dense(
            units,
            activation=get_activation(activation),
            kernel_initializer=bert_initializer(self.initializer_range),
            dtype=self.dtype_policy,
            name=name,
        )

    def make_dropout(self, rate):
        """Returns the dropout layer of this head."""
        return Dropout(rate, dtype=self.dtype_policy, name="dropout")

    def build(self, input_shape=None):
        self.dense.build((None, self.hidden_dim))

    def get_config(self):
        names = [name for name in inspect.signature(type(self)).parameters if name != "kwargs"]
        return {**super().get_config(), **{name: getattr(self, name) for name in names}}
