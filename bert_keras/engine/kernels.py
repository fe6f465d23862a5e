"""Operations that one backend computes faster in another way than `keras.ops` does.

Why: docs/benchmarks.md has the times of each; what is not listed here is left to `keras.ops`.

- Attention: JAX and PyTorch have a function for all of it (`FUSED`).
- Dense layers: PyTorch multiplies float32 by Intel's MKL, which on AMD's processors is slower than
  oneDNN. The public way to oneDNN is a convolution of size 1 x 1. Below some 500 rows the two are
  level. A convolution keeps its input for the backward pass even where the kernel is frozen.
- Products of bfloat16 on CPUs: XLA is slow unless it is asked for a float32 result, and
  TensorFlow, on processors without bfloat16 instructions, sums in float32 and cuts the last 16 bits
  off, so that all results are too near to 0. Both compute a float32 result here, which is rounded
  once. On JAX that has no forward-mode derivative (`jax.jvp`).
- Local attention: in blocks from so many blocks on (`LEAST_BLOCKS`), by a mask below.
- Dropout: cheap random numbers on JAX, TensorFlow, and on PyTorch's CPU.

Goes, as far as attention is concerned, when
`test_keras_s_attention_takes_no_bias_beside_a_mask_on_pytorch` fails.
"""

import functools
import math
import platform
import types

import keras
import numpy as np
from keras import ops

from bert_keras.engine.remat import with_gradient

# Whether Keras's `ops.dot_product_attention` takes over where dropout is inactive. TensorFlow has
# no kernel for it, and Keras the same formula. On GPUs it was not measured.
FUSED = {"jax": True, "tensorflow": False, "torch": True}
# Local attention in fewer blocks is faster by a mask over all pairs of positions.
LEAST_BLOCKS = {"jax": 8, "tensorflow": 8, "torch": 16}
# oneDNN takes over a convolution on one thread from this many images on.
IMAGES = 16
# Fewer rows are not worth the way to oneDNN.
LEAST_ROWS = 512


def has_fused_attention(query, dropout=None):
    """Returns whether `fused_attention` is the way to attention.

    Args:
        query: float tensor, `(batch, seq_len, num_heads, head_dim)`.
        dropout: the layer that is to act on the probabilities, or `None`.
    """
    backend = keras.backend.backend()
    if dropout is not None:
        # PyTorch's kernels for CPUs have no dropout, and know no seed of its own anywhere.
        return backend == "torch" and dropout.seed is None and not query.is_cpu
    # JAX's attention refuses float16 on the CPU.
    dtype = keras.backend.standardize_dtype(query.dtype)
    return FUSED.get(backend, True) and (backend, dtype) != ("jax", "float16")


def fused_attention(query, key, value, mask=None, bias=None, scale=None, dropout_rate=0.0):
    """Returns `softmax(scale Q K^T + bias) V`, computed by the backend's own function.

    Args:
        query, key, value: float, `(batch, seq_len, num_heads, head_dim)`.
        mask: bool, broadcastable to `(batch, num_heads, seq_len, seq_len)`, or `None`.
        bias: float, broadcastable to the same shape, added to the scores, or `None`.
        scale: float, or `None` for `1 / sqrt(head_dim)`.
        dropout_rate: float, of the probabilities; above 0 on PyTorch only.

    Returns:
        float, `(batch, seq_len, num_heads, head_dim)`.
    """
    flash = None
    if keras.backend.backend() == "torch":
        # PyTorch chooses a kernel by itself. Keras would ask first whether one fits, a question
        # that `torch.compile` cannot trace: it would split the graph in every layer.
        flash = False
        if mask is not None and (bias is not None or dropout_rate):
            bias, mask = _masked_bias(mask, bias, query.dtype), None
    if not dropout_rate:
        return ops.dot_product_attention(
            query, key, value, bias=bias, mask=mask, scale=scale, flash_attention=flash
        )
    import torch

    query, key, value = (x.transpose(1, 2) for x in (query, key, value))
    return torch.nn.functional.scaled_dot_product_attention(
        query, key, value, attn_mask=bias, dropout_p=dropout_rate, scale=scale
    ).transpose(1, 2)


def _masked_bias(mask, bias, dtype):
    """Returns PyTorch's bias with the lowest number where the mask is `False`.

    Not infinity: a row without any key stays finite, as it does in Keras.
    """
    import torch

    bias = torch.zeros((), dtype=dtype, device=mask.device) if bias is None else bias.to(dtype)
    return torch.where(mask, bias, torch.finfo(dtype).min)


def is_for_blocks(length, size):
    """Returns whether local attention is computed in blocks of so many positions.

    Args:
        length: int, positions of a text; or, in a graph for any length, what stands for it there.
        size: int, positions of a block.
    """
    backend = keras.backend.backend()
    if isinstance(length, int):
        return length >= LEAST_BLOCKS.get(backend, 8) * size
    # A graph of TensorFlow's is for any length in training too; others are exported ones.
    return backend == "tensorflow"


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
    if _is_bfloat16_on_a_cpu(x, kernel):
        product = with_gradient(_rounded_product, _rounded_gradients)(x, kernel)
    else:
        product = ops.matmul(x, kernel)
    return product if bias is None else ops.add(product, bias)


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

    result = torch.nn.functional.conv2d(_as_images(x), _as_filters(kernel), bias)
    return result.permute(0, 2, 3, 1).reshape(*x.shape[:-1], kernel.shape[1])


def _as_images(x):
    return x.reshape(IMAGES, -1, 1, x.shape[-1]).permute(0, 3, 1, 2)


def _as_filters(kernel):
    return kernel.t().reshape(*kernel.shape[::-1], 1, 1)


def _dense_gradients(gradient, x, kernel, needed):
    """Returns the gradients of `x`, `kernel` and bias of PyTorch's `dense`, by its own way.

    `needed` tells of each whether it is; `None` stands for one that is not, of a frozen weight.
    """
    import torch

    if _is_for_onednn(x, kernel):
        of_x, of_filters, of_bias = torch.ops.aten.convolution_backward(
            *(_as_images(gradient), _as_images(x), _as_filters(kernel), [kernel.shape[1]]),
            *([1, 1], [0, 0], [1, 1], False, [0, 0], 1, list(needed)),
        )
        of_x = of_x.permute(0, 2, 3, 1).reshape(x.shape) if needed[0] else None
        return of_x, of_filters.flatten(1).t() if needed[1] else None, of_bias
    rows = gradient.flatten(0, -2)
    return (
        gradient @ kernel.t() if needed[0] else None,
        x.flatten(0, -2).t() @ rows if needed[1] else None,
        rows.sum(0) if needed[2] else None,
    )


def gelu_dense(x, kernel, bias, approximate):
    """Returns `dense(gelu(x), kernel, bias)` of PyTorch; training keeps `x` and the kernel alone.

    Args:
        x: float tensor `(..., input_dim)`.
        kernel, bias: float tensors or variables `(input_dim, units)` and `(units,)`.
        approximate: bool, whether the GELU is that by tanh.

    Returns:
        float tensor `(..., units)`, or `None` where the plain formulas are to be computed: in a
        graph, and under autocast. It has no forward-mode derivative.
    """
    import torch

    if torch.compiler.is_compiling() or torch.jit.is_tracing() or _is_autocast(x):
        return None
    tensors = map(ops.convert_to_tensor, (x, kernel, bias))
    return _functions_of_torch().gelu_dense(*tensors, "tanh" if approximate else "none")


def _is_bfloat16_on_a_cpu(x, kernel):
    """Whether a product of bfloat16 is better computed in float32 and rounded afterwards."""
    if not x.dtype == kernel.dtype == "bfloat16":
        return False
    if keras.backend.backend() == "jax":
        import jax

        return jax.default_backend() == "cpu"
    return keras.backend.backend() == "tensorflow" and _tensorflow_truncates()


@functools.cache
def _tensorflow_truncates():
    """Whether TensorFlow cuts digits off a bfloat16 product. Asked by one, whatever decides it."""
    import tensorflow as tf

    with tf.init_scope():
        # 1 + 1.5 * 2**-8 lies nearer to 1 + 2**-7 than to 1, its two neighbours in bfloat16.
        ones, kernel = ([[1.0, 1.0]], [[1.0], [1.5 * 2**-8]])
        product = tf.matmul(tf.cast(ones, "bfloat16"), tf.cast(kernel, "bfloat16"))
        return float(product[0, 0]) == 1.0


def _rounded_product(x, kernel):
    return _rounded_once(x, kernel, ((len(x.shape) - 1,), (0,)))


def _rounded_gradients(upstream, x, kernel):
    rows = tuple(range(len(x.shape) - 1))
    return (
        _rounded_once(upstream, kernel, ((len(rows),), (1,))),
        _rounded_once(x, upstream, (rows, rows)),
    )


def _rounded_once(first, second, axes):
    """Returns the product of two bfloat16 tensors over some axes of each, summed in float32."""
    if keras.backend.backend() == "jax":
        from jax import lax

        product = lax.dot_general(first, second, (axes, ((), ())), preferred_element_type="float32")
    else:
        product = ops.tensordot(ops.cast(first, "float32"), ops.cast(second, "float32"), axes)
    return ops.cast(product, "bfloat16")


def _is_autocast(x):
    """Whether PyTorch would change the dtypes within a function, and not in its backward pass."""
    import torch

    device = x.device.type  # Or "meta", by which Keras finds out shapes.
    return torch.amp.is_autocast_available(device) and torch.is_autocast_enabled(device)


def dropout_mask(layer, like, shape):
    """Returns what tells the elements that dropout keeps, by cheap random numbers.

    Args:
        layer: the `keras.layers.Dropout`, for its rate and its seeds.
        like: tensor, on whose device the mask is to be.
        shape: tuple, of what is dropped from.

    Returns:
        A tensor for `masked`: on JAX a seed, uint32 `(2,)`, from which the mask follows where it is
        used; on TensorFlow and PyTorch bool of the shape. `None` where Keras draws: on PyTorch's
        accelerators, in its graphs, and with a seed.
    """
    backend = keras.backend.backend()
    if backend == "jax":
        return layer.seed_generator.next()
    if backend == "tensorflow":
        return _kept_on_tensorflow(layer.rate, shape, layer.seed_generator.next())
    # With a seed of its own, the layer cannot read PyTorch's global generator.
    if backend == "torch" and layer.seed is None:
        return _kept_on_torch(layer.rate, shape, like)
    return None


def masked(inputs, mask, rate):
    """Returns `inputs * kept / (1 - rate)`, the mask one of `dropout_mask` for that rate."""
    backend = keras.backend.backend()
    if backend == "jax":
        return _masked_on_jax(inputs, mask, rate)
    if backend == "torch":
        return _functions_of_torch().masked(inputs, mask, _scale_of_short(rate))
    dtype = keras.backend.result_type(inputs.dtype, "float32")
    scaled = ops.cast(ops.cast(inputs, dtype) * _scale_of_short(rate), inputs.dtype)
    return ops.where(mask, scaled, ops.zeros((), inputs.dtype))


def mixed(attentions, value, mask=None, rate=0.0):
    """Returns the values mixed by the attention probabilities, with dropout where a mask is given.

    Args:
        attentions: float, `(batch, num_heads, num_queries, num_keys)`.
        value: float, `(batch, num_keys, num_heads, head_dim)`.
        mask: one of `dropout_mask` for `attentions` and the rate, or `None`.
        rate: float.

    Returns:
        float, `(batch, num_queries, num_heads, head_dim)`.
    """
    is_torch = keras.backend.backend() == "torch"
    if mask is not None and is_torch and not _is_autocast(attentions):
        return _functions_of_torch().mixed(attentions, value, mask, _scale_of_short(rate))
    if mask is not None:
        attentions = masked(attentions, mask, rate)
    return ops.einsum("bhqk,bkhd->bqhd", attentions, value)


def _masked_on_jax(inputs, seed, rate):
    import jax

    places = jax.lax.iota("uint32", inputs.size).reshape(inputs.shape)
    kept = _hashed(places, seed) >= np.uint32(min(round(rate * 2**32), 2**32 - 1))
    dtype = keras.backend.result_type(inputs.dtype, "float32")
    scaled = inputs.astype(dtype) * np.asarray(1 / (1 - rate), dtype)
    return jax.numpy.where(kept, scaled, 0).astype(inputs.dtype)


def _hashed(places, seed):
    """Returns a random number for each place, uint32, that follows from it and from the seed.

    Two rounds with two words of the seed: after one, the numbers of two seeds would be the same
    but for a shift. Keras's seeds are a number of the layer and a count, so the words are mixed
    first.
    """
    first = _mixed(seed[0] + _mixed(seed[1]))
    second = _mixed(first ^ (seed[1] + np.uint32(0x9E3779B9)))
    return _mixed(_mixed(places + first) ^ second)


def _mixed(bits):
    """Returns uint32 in which each bit of the uint32 `bits` flips half of the bits.

    Reference:
        `fmix32` of [MurmurHash3](https://github.com/aappleby/smhasher).
    """
    bits = (bits ^ (bits >> 16)) * np.uint32(0x85EBCA6B)
    bits = (bits ^ (bits >> 13)) * np.uint32(0xC2B2AE35)
    return bits ^ (bits >> 16)


def _share_of_short(rate):
    """Returns how many of the 65,536 numbers of 16 bits are dropped."""
    return min(round(rate * 2**16), 2**16 - 1)


def _scale_of_short(rate):
    return 2**16 / (2**16 - _share_of_short(rate))


def _kept_on_torch(rate, shape, like):
    """Draws from the global generator of the CPU; `None` on other devices and in graphs."""
    import torch

    # `torch.compile` draws where the number is used, and cannot trace draws of 64 bits.
    if not like.is_cpu or torch.compiler.is_compiling():
        return None
    size = math.prod(shape)
    draws = torch.empty(-(-size // 4), dtype=torch.int64, device=like.device)
    bits = draws.random_(-(2**63), None).view(torch.int16)[:size].view(shape)
    return bits >= _share_of_short(rate) - 2**15


def _kept_on_tensorflow(rate, shape, seed):
    import tensorflow as tf

    size = tf.reduce_prod(tf.cast(tf.stack(shape), tf.int64)) if len(shape) else 1
    draws = tf.random.stateless_uniform(
        [(size + 3) // 4], tf.cast(seed, "int32"), minval=None, maxval=None, dtype="uint64"
    )
    bits = tf.reshape(tf.bitcast(draws, tf.uint16), [-1])[:size]
    return tf.reshape(bits >= tf.constant(_share_of_short(rate), tf.uint16), shape)


@functools.cache
def _functions_of_torch():
    """Returns `masked`, `mixed` and `gelu_dense` for PyTorch, which keep less than their formulas.

    Of a mask a byte an element, not a float; of attention's probabilities those before dropout,
    which the softmax keeps anyway; of what a GELU gives nothing.
    """
    import torch

    class Masked(torch.autograd.Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(inputs, kept, scale):
            return (inputs * scale).mul_(kept)

        @staticmethod
        def setup_context(ctx, inputs, output):
            _, kept, ctx.scale = inputs
            ctx.save_for_backward(kept)

        @staticmethod
        def backward(ctx, gradient):
            (kept,) = ctx.saved_tensors
            return (gradient * ctx.scale).mul_(kept), None, None

    class Mixed(torch.autograd.Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(attentions, value, kept, scale):
            # The scale where there are fewer numbers.
            return torch.einsum("bhqk,bkhd->bqhd", attentions * kept, value) * scale

        @staticmethod
        def setup_context(ctx, inputs, output):
            *tensors, ctx.scale = inputs
            ctx.save_for_backward(*tensors)

        @staticmethod
        def backward(ctx, gradient):
            attentions, value, kept = ctx.saved_tensors
            kept = kept.to(attentions.dtype)  # Once for both products.
            gradient = gradient * ctx.scale
            of_value = torch.einsum("bhqk,bqhd->bkhd", attentions * kept, gradient)
            of_attentions = torch.einsum("bqhd,bkhd->bhqk", gradient, value).mul_(kept)
            return of_attentions, of_value, None, None

    class GeluDense(torch.autograd.Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(x, kernel, bias, approximate):
            activated = torch.nn.functional.gelu(x, approximate=approximate)
            return dense(activated, kernel, bias)

        @staticmethod
        def setup_context(ctx, inputs, output):
            x, kernel, _, ctx.approximate = inputs
            ctx.save_for_backward(x, kernel)

        @staticmethod
        def backward(ctx, gradient):
            x, kernel = ctx.saved_tensors
            needed = ctx.needs_input_grad[:3]
            activated = torch.nn.functional.gelu(x, approximate=ctx.approximate)
            of_x, *of_weights = _dense_gradients(gradient, activated, kernel, needed)
            if needed[0]:
                of_x = torch.ops.aten.gelu_backward(of_x, x, approximate=ctx.approximate)
            return of_x, *of_weights, None

    return types.SimpleNamespace(masked=Masked.apply, mixed=Mixed.apply, gelu_dense=GeluDense.apply)
