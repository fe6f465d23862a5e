"""Operations that one backend computes faster in another way than `keras.ops` does.

Why: docs/benchmarks.md has the times of each; what is not listed here is left to `keras.ops`.

- Attention: PyTorch, and JAX on accelerators, compute it in one function; on PyTorch without a mask
  where nothing is padded.
- Products of bfloat16 on CPUs: XLA is slow unless a float32 result is requested, and
  TensorFlow, on processors without bfloat16 instructions, sums in float32 and drops the last 16
  bits, so that all results are too close to 0. Both compute a float32 result here, which is rounded
  once.
- TensorFlow on a CPU swaps the axes of heads as integers, without oneDNN, and computes small
  attentions without it too.
- Local attention: in blocks if there are enough of them (`LEAST_BLOCKS`), otherwise by a mask.
- Dropout: cheaper random numbers on JAX, and on PyTorch's CPU, where masks are smaller too.
- Gradients of residual branches: XLA would compute small ones again in each block below.

The part about attention can go when
`test_keras_s_attention_takes_no_bias_beside_a_mask_on_pytorch` fails.
"""

import contextvars
import functools
import inspect

import keras
import numpy as np
from keras import ops

from bert_keras.engine.keras_internals import scopes, value
from bert_keras.engine.remat import computed_again
from bert_keras.inputs import PADDING_MASK

_BACKEND = keras.backend.backend()
if _BACKEND == "torch":
    import torch

# The lowest float32. Adding a score does not change it: if all keys are masked, they score equally.
_LOWEST = float(np.finfo("float32").min)
# Whether a program is being written, for other machines and libraries than those of this process.
exports_program = contextvars.ContextVar("exports_program", default=False)
# TensorFlow multiplies matrices of fewer numbers, and takes their softmax, without oneDNN.
_SMALL = 8192
# With fewer blocks, local attention by a mask over all pairs of positions is faster.
LEAST_BLOCKS = {"jax": 8, "tensorflow": 8, "torch": 16}


def input_tensors(inputs, is_traced=False):
    """Returns a dict of arrays as tensors; on PyTorch, a mask without padding has `is_full`.

    Args:
        inputs: dict of arrays or tensors, see `bert_keras.inputs`.
        is_traced: bool, whether the call is compiled: the program must work for any mask.
    """
    tensors = dict(zip(inputs, map(_as_tensor, inputs.values()), strict=True))
    mask = inputs.get(PADDING_MASK)
    # Only for an array: on an accelerator the values of a tensor would have to be waited for.
    if _BACKEND == "torch" and not is_traced and isinstance(mask, np.ndarray) and mask.all():
        tensors[PADDING_MASK].is_full = True
    return tensors


def _as_tensor(x):
    """Returns `ops.convert_to_tensor(x)`; PyTorch reads an int32 array without a copy."""
    is_int32 = isinstance(x, np.ndarray) and x.dtype == np.int32
    if _BACKEND == "torch" and is_int32 and x.flags.writeable:  # PyTorch warns of one that is not.
        return torch.from_numpy(x).to(torch_device())
    return ops.convert_to_tensor(x)


def has_fused_attention(query, dropout=None):
    """Returns whether `fused_attention` computes the attention.

    Args:
        query: float tensor, `(batch, seq_len, num_heads, head_dim)`.
        dropout: the layer that acts on the probabilities, or `None` if none is active.
    """
    if dropout is not None:
        # No kernel of PyTorch takes a seed or a noise shape. Those for CPUs have no dropout: there
        # its function takes several steps, which is faster than through Keras if they are small.
        batch, length, heads, _ = query.shape
        is_fast = _BACKEND == "torch" and (not query.is_cpu or batch * heads * length**2 < _SMALL)
        return is_fast and dropout.seed is None and dropout.noise_shape is None
    # On a CPU, the formula is faster on JAX. TensorFlow has no such function.
    return _BACKEND == "torch" or (_BACKEND == "jax" and has_accelerator())


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
    if _BACKEND != "torch":
        if mask is not None:  # cuDNN takes no mask that is the same for all queries.
            sizes = ops.shape(query)[1], ops.shape(key)[1]
            mask = ops.broadcast_to(mask, (*ops.shape(mask)[:2], *sizes))
        return ops.dot_product_attention(query, key, value, bias=bias, mask=mask, scale=scale)
    # Not through Keras, which cannot pass a dropout rate, or a bias beside a mask.
    if mask is not None:
        dtype = query.dtype
        # Made from a number on the device: a tensor would have to be sent there.
        bias = torch.zeros_like(mask, dtype=dtype) if bias is None else bias.to(dtype)
        # Not infinity: a row without any key stays finite, as it does in Keras.
        bias = bias.masked_fill(~mask, torch.finfo(dtype).min)
    query, key, value = map(heads_first, (query, key, value))
    context = torch.nn.functional.scaled_dot_product_attention(
        query, key, value, attn_mask=bias, dropout_p=dropout_rate, scale=scale
    )
    return heads_first(context)


def probabilities(query, key, mask=None, bias=None, scale=None):
    """Returns `softmax(scale Q K^T + bias)`.

    Args:
        query, key: float, `(batch, num_heads, seq_len, head_dim)`.
        mask: bool, broadcastable to `(batch, num_heads, seq_len, seq_len)`, or `None`.
        bias: float, broadcastable to the same shape, added to the scores, or `None`.
        scale: float, or `None` for `1 / sqrt(head_dim)`.

    Returns:
        float, `(batch, num_heads, seq_len, seq_len)`. The softmax is in float32: float16 overflows
        at 65,504, and bfloat16 has three digits.
    """
    scale = query.shape[-1] ** -0.5 if scale is None else scale
    scores = ops.cast(product(query * scale, key, transposed=True), "float32")
    if bias is not None:
        scores = scores + ops.cast(bias, "float32")
    if mask is not None:
        # Added, since a selection would be repeated in the backward pass, and since a row without
        # any key has a gradient then.
        scores = scores + ops.cast(ops.logical_not(mask), "float32") * _LOWEST
    return ops.cast(_softmax(scores), query.dtype)


def product(x, y, transposed=False):
    """Returns the products of the matrices in the last two axes.

    Args:
        x: float, `(..., rows, inner)`.
        y: float, `(..., inner, columns)`, or with `transposed` `(..., columns, inner)`.
        transposed: bool, whether to multiply by the transposed matrices of `y`.

    Returns:
        float, `(..., rows, columns)`.
    """
    if not (_leaves_onednn() and x.dtype == "float32"):
        return ops.matmul(x, ops.swapaxes(y, -1, -2) if transposed else y)
    import tensorflow as tf

    return ops.cond(
        _is_small(x),
        lambda: tf.raw_ops.BatchMatMulV3(x=x, y=y, Tout=x.dtype, adj_y=transposed),
        lambda: tf.matmul(x, y, transpose_b=transposed),
    )


def _softmax(x):
    """Returns the softmax of the last axis."""
    if not (_leaves_onednn() and x.dtype == "float32"):
        return ops.softmax(x, axis=-1)
    import tensorflow as tf

    return ops.cond(_is_small(x), lambda: tf.exp(tf.nn.log_softmax(x)), lambda: tf.nn.softmax(x))


def _is_small(x):
    """Returns whether a tensor of TensorFlow is small; if a graph must find out, as a tensor.

    A graph that trains does not: the gradients of conditions take long to trace.
    """
    import tensorflow as tf

    if x.shape.is_fully_defined():
        return x.shape.num_elements() < _SMALL
    context = getattr(scopes, "current_call_ctx", None)
    is_inference = context is not None and not context.get_value("training")
    return is_inference and tf.size(x) < _SMALL


def _leaves_onednn():
    """Returns whether this is TensorFlow on a CPU, and the program is for this machine.

    oneDNN wakes all threads for each operation, which takes longer than to compute a small tensor.
    """
    return _BACKEND == "tensorflow" and not (exports_program.get() or has_accelerator())


def attention_with_dropout(query, key, value, mask, bias, scale, dropout):
    """Returns the values weighted by the attention probabilities after dropout.

    Training keeps the arguments. Of the probabilities TensorFlow keeps none, and PyTorch on a CPU
    those before dropout, which the softmax keeps anyway, and a byte for each.

    Args:
        query, key, mask, bias, scale: see `probabilities`.
        value: float, `(batch, num_heads, num_keys, head_dim)`.
        dropout: the dropout layer for the probabilities, with a rate below 1 and no `noise_shape`.

    Returns:
        float, `(batch, num_heads, num_queries, head_dim)`.
    """
    if _BACKEND != "tensorflow":
        attentions = probabilities(query, key, mask, bias, scale)
        if draws_cheaply(attentions, dropout):
            return _Mixed.apply(attentions, value, *dropout_mask(attentions, dropout.rate))
        return ops.matmul(dropout(attentions, training=True), value)

    @computed_again
    def formula(query, key, value, mask, bias, seed):
        attentions = probabilities(query, key, mask, bias, scale)
        return product(dropped(attentions, seed, dropout.rate), value)

    return formula(query, key, value, mask, bias, dropout.seed_generator.next())


def draws_cheaply(x, dropout):
    """Whether `dropout_mask` makes the mask of a dropout layer, on a CPU with PyTorch.

    `torch.compile` cannot trace 64-bit draws, and autocast changes dtypes in forward passes alone.
    """
    if _BACKEND != "torch" or not x.is_cpu or dropout.seed is not None:
        return False
    return not (torch.compiler.is_compiling() or torch.is_autocast_enabled("cpu"))


def dropout_mask(like, rate):
    """Returns which elements dropout keeps, bool of the shape of `like`, and their scale.

    Four 16-bit numbers of each 64-bit draw decide, since PyTorch draws in one thread. So the rate
    is a multiple of 1 / 65,536 below 1.
    """
    size, limit = like.numel(), min(round(rate * 2**16), 2**16 - 1)
    draws = torch.empty(-(-size // 4), dtype=torch.int64).random_(-(2**63), None)
    bits = draws.view(torch.int16)[:size].view(like.shape)
    return bits >= limit - 2**15, 1 / (1 - limit / 2**16)


def uses_block_sparse(length, size):
    """Returns whether local attention is computed in blocks of `size` positions.

    Args:
        length: int, positions of a text; in a graph for any length, a symbolic number.
        size: int, positions of a block.
    """
    if isinstance(length, int):
        return length >= LEAST_BLOCKS.get(_BACKEND, 8) * size
    # TensorFlow trains with graphs for any length. On other backends, such a graph is an export.
    return _BACKEND == "tensorflow"


def dense(x, kernel, bias=None):
    """Returns `x @ kernel + bias`.

    Args:
        x: float tensor `(..., input_dim)`.
        kernel: float tensor or variable `(input_dim, units)`, of the dtype of `x`.
        bias: the same `(units,)`, or `None`.

    Returns:
        float tensor `(..., units)`, of the dtype of `x`.
    """
    x, kernel = value_of(x), value_of(kernel)
    if _BACKEND == "torch" and x.dtype == kernel.dtype:
        # One operation on the rows of `x`; `keras.ops` would take several.
        rows = x.flatten(0, -2)
        product = rows @ kernel if bias is None else torch.addmm(value_of(bias), rows, kernel)
        return product.view(*x.shape[:-1], kernel.shape[1])
    # On TensorFlow `ops.matmul` adds eight operations that compute shapes to the graph.
    has_rows = _BACKEND != "tensorflow" or len(x.shape) == 2
    rows = x if has_rows else ops.reshape(x, (-1, x.shape[-1]))
    if _is_bfloat16_on_a_cpu(x, kernel):
        product = _rounded_product(rows, kernel)
    else:
        product = ops.matmul(rows, kernel)
    product = product if bias is None else ops.add(product, bias)
    return product if has_rows else _reshaped(product, x, len(x.shape) - 1, kernel.shape[1:])


def _reshaped(x, like, num_kept, sizes):
    """Returns `x`, reshaped to the first `num_kept` sizes of `like`, followed by `sizes`."""
    kept = list(like.shape[:num_kept])
    if kept.count(None) > 1:  # TensorFlow's graph must compute them.
        import tensorflow as tf

        return tf.reshape(x, tf.concat([tf.shape(like)[:num_kept], sizes], axis=0))
    return ops.reshape(x, (*(-1 if size is None else size for size in kept), *sizes))


def layer_norm(x, gamma, beta, epsilon):
    """Returns PyTorch's layer normalization of the last axis; tensors have one dtype."""
    beta = beta if beta is None else value_of(beta)
    return torch.nn.functional.layer_norm(x, x.shape[-1:], value_of(gamma), beta, epsilon)


def crossentropy(labels, logits):
    """Returns `-log softmax(logits)[label]`.

    Args:
        labels: integers `(batch, ...)`.
        logits: float, `(batch, ..., num_classes)`.

    Returns:
        float, `(batch, ...)`.
    """
    shape = ops.shape(logits)
    # As a matrix: with more axes, Keras lets PyTorch normalize over an axis other than the last. A
    # vocabulary takes twice as long on a CPU, and 30 ms on an H100.
    labels, rows = ops.reshape(labels, (-1,)), ops.reshape(logits, (-1, shape[-1]))
    if _BACKEND == "torch":  # Keras would check the shapes again.
        losses = torch.nn.functional.cross_entropy(rows, labels.long(), reduction="none")
    else:
        labels = ops.cast(labels, "int32")
        losses = ops.sparse_categorical_crossentropy(labels, rows, from_logits=True)
    return ops.reshape(losses, shape[:-1])


def value_of(x):
    """Returns `ops.convert_to_tensor(x)`; a tensor or a variable of PyTorch takes no detour."""
    if _BACKEND != "torch":
        return ops.convert_to_tensor(x)
    if isinstance(x, torch.Tensor):
        return x
    if not isinstance(x, keras.Variable):
        return ops.convert_to_tensor(x)
    # `Variable.value` calls ten functions, which check whether a scope replaces, casts or moves it.
    scope = scopes.__dict__.get
    if scope("stateless_scope") or scope("autocast_scope") or scope("torch_device"):
        return x.value
    tensor = None if torch.compiler.is_compiling() else value(x)
    return x.value if tensor is None else tensor


def heads_first(x):
    """Returns a tensor with its second and third axes swapped: positions and heads."""
    if _leaves_onednn():
        return _swapped(x)
    return x.transpose(1, 2) if _BACKEND == "torch" else ops.swapaxes(x, 1, 2)


def _swapped(x):
    """Returns a tensor of TensorFlow with its second and third axes swapped, as integers."""
    import tensorflow as tf

    @tf.custom_gradient
    def swapped(x):
        bits = tf.bitcast(x, {2: "int16", 4: "int32", 8: "int64"}[x.dtype.size])
        return tf.bitcast(tf.transpose(bits, [0, 2, 1, 3]), x.dtype), swapped

    return swapped(x)


def split_heads(x, num_heads):
    """Returns `(batch, seq_len, width)` as `(batch, seq_len, num_heads, width / num_heads)`."""
    if _BACKEND == "torch":
        return x.unflatten(-1, (num_heads, -1))
    return _reshaped(x, x, 2, [num_heads, x.shape[-1] // num_heads])


def join_heads(x):
    """Returns `(batch, seq_len, num_heads, head_dim)` as `(batch, seq_len, width)`."""
    if _BACKEND == "torch":
        return x.flatten(-2)
    return _reshaped(x, x, 2, [x.shape[2] * x.shape[3]])


def torch_device():
    """Returns the device on which Keras makes tensors of PyTorch now."""
    scope = getattr(scopes, "torch_device", None)
    return torch.device(scope) if scope else ops.empty(()).device


def has_accelerator():
    """Returns whether the backend computes on an accelerator."""
    if _BACKEND == "torch":
        return torch_device().type != "cpu"
    if _BACKEND == "jax":
        import jax

        return jax.default_backend() != "cpu"
    import tensorflow as tf

    return bool(tf.config.list_physical_devices("GPU"))


def computed_once(function):
    """Returns a function of tensors whose results XLA stores on a CPU, whoever uses them.

    XLA computes small values again for each use: the gradient of a residual branch in all blocks
    below, so that the time of a step, and of compiling it, grew with the square of their number.
    """
    if _BACKEND != "jax":
        return function
    import jax

    compiled = jax.jit(function)

    def stored(*args):
        if has_accelerator():
            return function(*args)
        from jax.experimental.xla_metadata import set_xla_metadata

        with set_xla_metadata(inlineable="false"):  # Otherwise XLA copies it to where it is called.
            return compiled(*args)

    return stored


def _is_bfloat16_on_a_cpu(x, kernel):
    """Whether a product of bfloat16 is better computed in float32 and rounded afterwards."""
    if not x.dtype == kernel.dtype == "bfloat16":
        return False
    if _BACKEND == "jax":
        import jax

        return jax.default_backend() == "cpu"
    return _BACKEND == "tensorflow" and _tensorflow_truncates()


@functools.cache
def _tensorflow_truncates():
    """Whether TensorFlow truncates bfloat16 products instead of rounding them, found by trying."""
    import tensorflow as tf

    with tf.init_scope():
        # 1 + 1.5 * 2**-8 lies nearer to 1 + 2**-7 than to 1, its two neighbours in bfloat16.
        ones, kernel = ([[1.0, 1.0]], [[1.0], [1.5 * 2**-8]])
        product = tf.matmul(tf.cast(ones, "bfloat16"), tf.cast(kernel, "bfloat16"))
        return float(product[0, 0]) == 1.0


def _rounded_product(x, kernel):
    """Returns the product of bfloat16 tensors, summed in float32 and rounded once."""
    if _BACKEND == "jax":
        from jax import numpy as jnp

        product = jnp.matmul(x, kernel, preferred_element_type="float32")
    else:
        product = ops.matmul(ops.cast(x, "float32"), ops.cast(kernel, "float32"))
    return ops.cast(product, "bfloat16")


def dropped(inputs, seed, rate):
    """Returns `inputs * mask / (1 - rate)` on JAX and TensorFlow. The seed decides the mask.

    Args:
        inputs: float tensor.
        seed: integers `(2,)`.
        rate: float.
    """
    dtype = keras.backend.result_type(inputs.dtype, "float32")  # Half precision rounds the scale.
    if _BACKEND == "tensorflow":
        import tensorflow as tf

        outputs = tf.nn.experimental.stateless_dropout(
            ops.cast(inputs, dtype), rate, seed=tf.cast(seed, "int32")
        )
        return ops.cast(outputs, inputs.dtype)
    import jax

    places = jax.lax.iota("uint32", inputs.size).reshape(inputs.shape)
    mask = _hashed(places, seed) >= np.uint32(min(round(rate * 2**32), 2**32 - 1))
    if has_accelerator():
        # XLA would compute both again in sums of the backward pass, which use few threads.
        inputs, mask = jax.lax.optimization_barrier((inputs, mask))
    scaled = inputs.astype(dtype) * np.asarray(1 / (1 - rate), dtype)
    return jax.numpy.where(mask, scaled, 0).astype(inputs.dtype)


def _hashed(places, seed):
    """Returns a random uint32 for each place, computed from the place and the seed.

    Two rounds use two words of the seed: after one round, the numbers of two seeds would differ by
    a shift only. Keras's seeds are the layer's number and a count, so the words are mixed first.
    """
    first = _scrambled(seed[0] + _scrambled(seed[1]))
    second = _scrambled(first ^ (seed[1] + np.uint32(0x9E3779B9)))
    return _scrambled(_scrambled(places + first) ^ second)


def _scrambled(bits):
    """Returns uint32 numbers: each bit of the input flips half of the bits of the output.

    Reference:
        `fmix32` of [MurmurHash3](https://github.com/aappleby/smhasher).
    """
    bits = (bits ^ (bits >> 16)) * np.uint32(0x85EBCA6B)
    bits = (bits ^ (bits >> 13)) * np.uint32(0xC2B2AE35)
    return bits ^ (bits >> 16)


if _BACKEND == "torch":

    class _Mixed(torch.autograd.Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(attentions, value, mask, scale):
            # Scaled here, because the output has fewer elements.
            return (attentions * mask) @ value * scale

        @staticmethod
        def setup_context(ctx, inputs, output):
            *tensors, ctx.scale = inputs
            ctx.save_for_backward(*tensors)

        @staticmethod
        def backward(ctx, gradient):
            attentions, value, mask = ctx.saved_tensors
            mask = mask.to(attentions.dtype)  # Once for both products.
            gradient = gradient * ctx.scale
            of_value = (attentions * mask).transpose(2, 3) @ gradient
            of_attentions = (gradient @ value.transpose(2, 3)).mul_(mask)
            return of_attentions, of_value, None, None

    # PyTorch reads it in every call; computing it takes longer than a small product.
    _Mixed.forward.__signature__ = inspect.signature(_Mixed.forward)
