"""A tiny model with repeated tokens and a tied embedding table."""

import keras
import numpy as np


class Tied(keras.layers.Layer):
    """A tiny masked language model whose input and output share a table."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.table = keras.layers.ReversibleEmbedding(7, 4, name="token_embedding")
        self.dense = keras.layers.Dense(4, activation="tanh", name="dense")

    def build(self, input_shape):
        self.table.build((None, None))
        self.dense.build((None, None, 4))

    def call(self, token_ids):
        return self.table(self.dense(self.table(token_ids)), reverse=True)


def make_tied_model(optimizer, **arguments):
    model = keras.Sequential([keras.Input((5,), dtype="int32"), Tied(name="tied")])
    rng = np.random.default_rng(3)
    model.set_weights([rng.normal(size=w.shape, scale=0.5) for w in model.get_weights()])
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer, loss, **arguments)
    return model


TOKENS = np.array([[1, 1, 1, 1, 2], [3, 1, 1, 0, 2], [1, 5, 5, 5, 5], [2, 2, 2, 2, 2]])
