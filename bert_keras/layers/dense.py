"""A dense layer's arithmetic, by the way that each backend is fastest at.

Measured on an AMD EPYC (Zen 5) for 2,048 rows and a kernel of 384 x 1,536:

- PyTorch multiplies float32 by Intel's MKL, which on AMD's processors reaches half of what oneDNN
  does: on one core 84 against 181 GFLOP/s forward, 88 against 133 backward. The public way to
  oneDNN is a convolution of size 1 x 1. Below some 500 rows the two are level. A convolution keeps
  its input for the backward pass even where the kernel is frozen.
- XLA sums a product of bfloat16 slowly where the result is bfloat16: 224 GFLOP/s on two cores.
  Asked for a float32 result, which is rounded afterwards, it has 404. This is for CPUs alone, and
  has no forward-mode derivative (`jax.jvp`).

TensorFlow, and all that is not named here, multiplies as `keras.ops` does.
"""

import functools
import platform

import keras
from keras import ops

# oneDNN takes over a convolution on one thread from this many images on.
IMAGES = 16
# Fewer rows are not worth the way to oneDNN.
LEAST_ROWS = 512


def dense(x, kernel, bias=None):
    """Returns `x @ kernel + bias`.

    Args:
        x: float tensor `(..., input_dim)`.
        kernel: float tensor or variable `(input_dim, units)`, of the dtype of `x`.
        bias: the same `(units,)`, or `None`.

    Returns:
        float tensor `(..., units)`, of the dtype of `x`.
    """
    x, kernel = ops.convert_to_tensor(x), ops.convert_to_tensor(kernel)
    backend = keras.backend.backend()
    if backend == "torch" and _is_for_onednn(x, kernel):
        return _by_onednn(x, kernel, None if bias is None else ops.convert_to_tensor(bias))
    if backend == "jax" and _is_bfloat16_on_a_cpu(x, kernel):
        product = _rounded_afterwards()(x, kernel)
    else:
        product = ops.matmul(x, kernel)
    return product if bias is None else ops.add(product, bias)


# PyTorch


def _is_for_onednn(x, kernel):
    import torch

    return (
        # In a graph it would be fixed by one input's sizes.
        not torch.compiler.is_compiling()
        and not torch.jit.is_tracing()
        and x.device.type == "cpu"
        and x.dtype == kernel.dtype == torch.float32
        and x.dim() > 2
        and torch.backends.mkldnn.enabled
        and _has_slow_mkl()
        and (rows := x.numel() // max(x.shape[-1], 1)) >= LEAST_ROWS
        and rows % IMAGES == 0
    )


@functools.cache
def _has_slow_mkl():
    """Whether PyTorch multiplies by MKL on a processor of AMD, and has oneDNN too."""
    import torch

    if not (torch.backends.mkl.is_available() and torch.backends.mkldnn.is_available()):
        return False
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            return "AuthenticAMD" in file.read(4096)
    except OSError:  # Not Linux.
        return "AuthenticAMD" in platform.processor()


def _by_onednn(x, kernel, bias):
    """Reads rows as pixels of `IMAGES` images with `input_dim` channels, without a copy."""
    import torch

    input_dim, units = kernel.shape
    images = x.reshape(IMAGES, -1, 1, input_dim).permute(0, 3, 1, 2)
    filters = kernel.t().reshape(units, input_dim, 1, 1)
    result = torch.nn.functional.conv2d(images, filters, bias)
    return result.permute(0, 2, 3, 1).reshape(*x.shape[:-1], units)


# JAX


def _is_bfloat16_on_a_cpu(x, kernel):
    import jax

    return x.dtype == kernel.dtype == "bfloat16" and jax.default_backend() == "cpu"


@functools.cache
def _rounded_afterwards():
    """Returns a function for `x @ kernel` of bfloat16, whose products, its gradients' too, come as
    float32 and are rounded then.
    """
    import jax
    from jax import lax

    def product(first, second, axes):
        result = lax.dot_general(first, second, (axes, ((), ())), preferred_element_type="float32")
        return result.astype("bfloat16")

    @jax.custom_vjp
    def matmul(x, kernel):
        return product(x, kernel, ((x.ndim - 1,), (0,)))

    def forward(x, kernel):
        return matmul(x, kernel), (x, kernel)

    def backward(inputs, gradient):
        x, kernel = inputs
        rows = tuple(range(x.ndim - 1))
        return (
            product(gradient, kernel, ((gradient.ndim - 1,), (1,))),
            product(x, gradient, (rows, rows)),
        )

    matmul.defvjp(forward, backward)
    return matmul
