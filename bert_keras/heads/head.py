"""The base class of heads."""

from typing import Any, Unpack

import keras

from bert_keras.checks import refuse_options
from bert_keras.engine.fast_layer_call import DirectCall
from bert_keras.layers.activations import get_activation
from bert_keras.layers.dropout import Dropout
from bert_keras.layers.initializer import RandomNormal, build_parts
from bert_keras.layers.layer_norm import LayerNorm
from bert_keras.signatures import keeps_arguments, parameters_of
from bert_keras.types import Activation, LayerOptions, Tensor


class Head(DirectCall, keras.layers.Layer):
    """Dense layers on the outputs of a backbone.

    The last layer is `dense`. A head may have a hidden layer, `hidden`, and a norm after it,
    `hidden_norm`. The arguments of a subclass's constructor are attributes, see `keeps_arguments`.
    They include `hidden_dim`, int, width of the backbone, and, for `make_dense`,
    `initializer_range`, float, standard deviation of the initial kernels.

    Args:
        **kwargs: `name`, `dtype`, `trainable`, see `keras.layers.Layer`.
    """

    # Whether there is dropout before the hidden layer too.
    dropout_first = False

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "__init__" in vars(cls):
            cls.__init__ = keeps_arguments(cls.__init__)

    def __init__(self, **kwargs: Unpack[LayerOptions]) -> None:
        super().__init__(**kwargs)
        self.hidden = self.hidden_norm = None

    def make_dense(
        self,
        units: int,
        activation: Activation | None = None,
        name: str = "dense",
        use_bias: bool = True,
    ) -> keras.layers.Dense:
        """Returns a dense layer of this head, see `keras.layers.Dense`."""
        return keras.layers.Dense(
            units,
            use_bias=use_bias,
            activation=get_activation(activation),
            kernel_initializer=RandomNormal(stddev=self.initializer_range),
            dtype=self.dtype_policy,
            name=name,
        )

    def make_dropout(self, rate: float) -> keras.layers.Dropout:
        """Returns the dropout layer of this head."""
        return Dropout(rate, dtype=self.dtype_policy, name="dropout")

    def make_norm(
        self, epsilon: float, name: str = "layer_norm", use_bias: bool = True
    ) -> keras.layers.LayerNormalization:
        """Returns a norm of this head, see `keras.layers.LayerNormalization`."""
        return LayerNorm(epsilon=epsilon, center=use_bias, dtype=self.dtype_policy, name=name)

    def add_hidden(self) -> None:
        """Adds a hidden layer as `hidden_activation`, `norm` and `layer_norm_epsilon` say.

        Without a `hidden_activation` there is none. With a norm, neither of them has a bias.

        Raises:
            ValueError: an option of the hidden layer is set, but there is none.
        """
        activation, norm = self.hidden_activation, self.norm
        if activation is not None:
            self.hidden = self.make_dense(self.hidden_dim, activation, "hidden", not norm)
        else:
            options = {"dropout_first": self.dropout_first or None, "norm": norm or None}
            rule = "`dropout_first` and `norm` are for a head with a hidden layer"
            advice = "Name its `hidden_activation`, such as 'gelu', or leave them out."
            refuse_options(rule, options, advice)
        if norm:
            self.hidden_norm = self.make_norm(self.layer_norm_epsilon, "hidden_norm", False)

    def through_hidden(self, vectors: Tensor) -> Tensor:
        """Returns float vectors `(..., hidden_dim)` after the hidden layer, if there is one."""
        for layer in (self.hidden, self.hidden_norm):
            vectors = vectors if layer is None else layer(vectors)
        return vectors

    def build(self, input_shape=None):
        build_parts((self.hidden, self.hidden_norm, self.dense), (None, self.hidden_dim))

    def get_config(self):
        names, _ = parameters_of(type(self))
        return {**super().get_config(), **{name: getattr(self, name) for name in names}}
