"""The position-wise feed-forward network, and the activations that checkpoints name."""

import math
from collections.abc import Callable
from types import MappingProxyType
from typing import Unpack

import keras
from keras import ops

from bert_keras.engine.kernels import dense, gelu_dense
from bert_keras.engine.remat import with_gradient
from bert_keras.layers.adaptable_dense import AdaptableDense
from bert_keras.layers.initializer import bert_dense
from bert_keras.types import Activation, LayerOptions, Tensor


@keras.saving.register_keras_serializable(package="bert_keras")
def gelu(x: Tensor) -> Tensor:
    """The exact GELU, `x Phi(x)`, Hugging Face's "gelu", of which `x` alone is kept in training.

    Args:
        x: float tensor of any shape.

    Returns:
        float tensor of the shape of `x`.

    Reference:
        [Hendrycks and Gimpel, 2016](https://arxiv.org/abs/1606.08415).
    """
    return _keeping_its_input(x, _exact, _exact_with_slope)


@keras.saving.register_keras_serializable(package="bert_keras")
def gelu_tanh(x: Tensor) -> Tensor:
    """GELU by its tanh approximation, as Google's BERT code computes it.

    `0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)))`. It differs from the exact GELU by up to
    5e-4, enough to shift a model's outputs by 1e-3.

    Args:
        x: float tensor of any shape.

    Returns:
        float tensor of the shape of `x`.

    Reference:
        [Hendrycks and Gimpel, 2016](https://arxiv.org/abs/1606.08415).
    """
    return _keeping_its_input(x, _by_tanh, _by_tanh_with_slope)


def _keeping_its_input(x, function, with_slope):
    # PyTorch keeps nothing else by itself.
    if keras.backend.backend() == "torch" or isinstance(x, keras.KerasTensor):
        return function(x)
    gradient = with_gradient(function, lambda upstream, x: [upstream * with_slope(x)[1]])
    return gradient(ops.convert_to_tensor(x))


def _exact(x):
    return ops.gelu(x, approximate=False)


def _exact_with_slope(x):
    scaled = x * 0.5**0.5
    phi = 0.5 + 0.5 * ops.erf(scaled)  # The probability below `x` of a standard normal.
    return x * phi, phi + scaled * ops.exp(-scaled * scaled) * math.pi**-0.5


def _by_tanh(x):
    return ops.gelu(x, approximate=True)


def _by_tanh_with_slope(x):
    square, scale = x * x, (2 / math.pi) ** 0.5
    tanh = ops.tanh(scale * x * (1 + 0.044715 * square))
    inner = scale * (1 + 3 * 0.044715 * square)
    return 0.5 * x * (1 + tanh), 0.5 * (1 + tanh + x * (1 - tanh * tanh) * inner)


def get_activation(activation: Activation | None) -> Callable[[Tensor], Tensor]:
    """Returns the function for an activation's name: `"gelu"` is exact, `"gelu_tanh"` is not.

    Args:
        activation: `"gelu"`, `"gelu_tanh"`, any name that `keras.activations.get` knows, or a
            callable.

    Returns:
        A callable.

    Raises:
        ValueError: the name is unknown.
    """
    own = {"gelu": gelu, "gelu_tanh": gelu_tanh}
    if isinstance(activation, str) and activation in own:
        return own[activation]
    return keras.activations.get(activation)


@keras.saving.register_keras_serializable(package="bert_keras")
class FeedForward(keras.layers.Layer):
    """Two dense layers with an activation between, applied to each position alone.

    `output = activation(x W_1 + b_1) W_2 + b_2`.

    Args:
        intermediate_dim: int, width between the two layers.
        hidden_dim: int, width of input and output.
        activation: name or callable, see `get_activation`.
        initializer_range: float, standard deviation of the initial kernels.
        **kwargs: `name`, `dtype`, `trainable`, see `keras.layers.Layer`.

    Call arguments:
        hidden_states: float, `(batch, seq_len, hidden_dim)`.
        training: bool, whether less is to be kept for the gradient, where that takes more time.

    Returns:
        float, `(batch, seq_len, hidden_dim)`.

    Reference:
        [Vaswani et al., 2017](https://arxiv.org/abs/1706.03762), section 3.3.
    """

    # Names of the dense layers that can have an adapter -> attributes.
    adaptable = MappingProxyType(
        {"intermediate": "intermediate", "feed_forward_output": "output_dense"}
    )

    def __init__(
        self,
        intermediate_dim: int,
        hidden_dim: int,
        activation: Activation = "gelu",
        initializer_range: float = 0.02,
        **kwargs: Unpack[LayerOptions],
    ) -> None:
        super().__init__(**kwargs)
        self.intermediate_dim = intermediate_dim
        self.hidden_dim = hidden_dim
        self.initializer_range = initializer_range
        self.activation = get_activation(activation)
        self.intermediate = bert_dense(self, intermediate_dim, "intermediate", AdaptableDense)
        self.output_dense = bert_dense(self, hidden_dim, "output", AdaptableDense, cut_axis=0)

    def build(self, input_shape=None):
        self.intermediate.build((None, None, self.hidden_dim))
        self.output_dense.build((None, None, self.intermediate_dim))

    def call(self, hidden_states: Tensor, training: bool | None = None) -> Tensor:
        x = self.intermediate(hidden_states)
        backend, output = keras.backend.backend(), None
        # Of what is before and after the activation, the first alone is kept; XLA does as it likes.
        if training and self.output_dense.is_plain and self.activation in (gelu, gelu_tanh):
            weights = self.output_dense.kernel, self.output_dense.bias
            if backend == "tensorflow":
                output = with_gradient(self._output, self._gradient)(x, *weights)
            elif backend == "torch":
                output = gelu_dense(x, *weights, approximate=self.activation is gelu_tanh)
        return self.output_dense(self.activation(x)) if output is None else output

    def _activated(self, x):
        """Returns the activation and its slope. TensorFlow's own GELU takes a slower function."""
        return (_by_tanh_with_slope if self.activation is gelu_tanh else _exact_with_slope)(x)

    def _output(self, x, kernel, bias):
        return dense(self._activated(x)[0], kernel, bias)

    def _gradient(self, upstream, x, kernel, bias):
        activated, slope = self._activated(x)
        inner, outer = (
            ops.reshape(tensor, (-1, units))
            for tensor, units in ((activated, x.shape[-1]), (upstream, kernel.shape[1]))
        )
        of_x = ops.reshape(dense(outer, ops.transpose(kernel)), ops.shape(x)) * slope
        return of_x, dense(ops.transpose(inner), outer), ops.sum(outer, axis=0)

    def compute_output_shape(self, input_shape):
        return input_shape
