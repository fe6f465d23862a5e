"""The activations that checkpoints name, with gradients that keep few tensors in memory."""

import functools
import math
from collections.abc import Callable

import keras
from keras import ops

from bert_keras.engine.remat import with_gradient
from bert_keras.types import Activation, Tensor


@keras.saving.register_keras_serializable(package="bert_keras")
def gelu(x: Tensor) -> Tensor:
    """The exact GELU, `x Phi(x)`, Hugging Face's "gelu". Training keeps only `x`.

    Args:
        x: float tensor of any shape.

    Returns:
        float tensor of the shape of `x`.

    Reference:
        [Hendrycks and Gimpel, 2016](https://arxiv.org/abs/1606.08415).
    """
    return _keeping_its_input(x, False, _exact_slope)


@keras.saving.register_keras_serializable(package="bert_keras")
def gelu_tanh(x: Tensor) -> Tensor:
    """GELU in its tanh approximation, as Google's BERT code computes it.

    `0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)))`. It differs from the exact GELU by up to
    5e-4, enough to shift a model's outputs by 1e-3.

    Args:
        x: float tensor of any shape.

    Returns:
        float tensor of the shape of `x`.

    Reference:
        [Hendrycks and Gimpel, 2016](https://arxiv.org/abs/1606.08415).
    """
    return _keeping_its_input(x, True, _slope_by_tanh)


def _keeping_its_input(x, approximate, slope):
    function = functools.partial(ops.gelu, approximate=approximate)
    # PyTorch keeps only `x` anyway.
    if keras.backend.backend() == "torch" or isinstance(x, keras.KerasTensor):
        return function(x)
    gradient = with_gradient(function, lambda upstream, x: [upstream * slope(x)])
    return gradient(ops.convert_to_tensor(x))


def _exact_slope(x):
    scaled = x * 0.5**0.5
    phi = 0.5 + 0.5 * ops.erf(scaled)  # The probability that a standard normal is below `x`.
    return phi + scaled * ops.exp(-scaled * scaled) * math.pi**-0.5


def _slope_by_tanh(x):
    square, scale = x * x, (2 / math.pi) ** 0.5
    tanh = ops.tanh(scale * x * (1 + 0.044715 * square))
    inner = scale * (1 + 3 * 0.044715 * square)
    return 0.5 * (1 + tanh + x * (1 - tanh * tanh) * inner)


def get_activation(activation: Activation | None) -> Callable[[Tensor], Tensor]:
    """Returns the activation function of a name: `"gelu"` is the exact one.

    Args:
        activation: `"gelu"`, `"gelu_tanh"`, any name that `keras.activations.get` knows, or a
            callable.

    Returns:
        A callable.

    Raises:
        ValueError: the name is unknown.
    """
    functions = {"gelu": gelu, "gelu_tanh": gelu_tanh}
    if keras.backend.backend() == "torch":  # It keeps only the input anyway.
        import torch

        functions["gelu"] = torch.nn.functional.gelu
    if isinstance(activation, str) and activation in functions:
        return functions[activation]
    return keras.activations.get(activation)
