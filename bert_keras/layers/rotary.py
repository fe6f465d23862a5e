"""Rotary positions: queries and keys, rotated by angles that grow with their positions."""

import numpy as np
from keras import ops


def rotated(x, base, scale=1.0):
    """Returns vectors rotated by their positions, so that products depend on distances.

    The elements `a = x[k]` and `b = x[k + head_dim / 2]` of a vector at the position `m` are a
    point in a plane that is rotated by `m t`, with `t = base ** (-2 k / head_dim)`:
    `(a cos(m t) - b sin(m t), b cos(m t) + a sin(m t))`. The product of a query at `m` and a key
    at `n` then depends on `m - n` only. Difference from the paper: it pairs adjacent elements,
    while published checkpoints pair elements that are half a vector apart.

    Args:
        x: float, `(batch, seq_len, ..., head_dim)`, with an even `head_dim`.
        base: float; the slowest plane is rotated once in about `2 pi base` positions.
        scale: float, which positions are divided by, so that longer texts fit the angles of
            shorter ones.

    Returns:
        float, of the shape and dtype of `x`.

    Reference:
        [Su et al., 2021](https://arxiv.org/abs/2104.09864), section 3.2.
    """
    half = x.shape[-1] // 2
    speeds = ops.convert_to_tensor(base ** -(np.arange(half) / half) / scale, "float32")
    # bfloat16 cannot count to 8,192.
    positions = ops.expand_dims(ops.arange(ops.shape(x)[1], dtype="int32"), 0)
    axes = tuple(range(2, len(x.shape)))
    angles = ops.expand_dims(ops.cast(positions, "float32"), axes) * speeds
    cos, sin = ops.cos(angles), ops.sin(angles)
    wide = ops.cast(x, "float32")
    first, second = wide[..., :half], wide[..., half:]
    turned = [first * cos - second * sin, second * cos + first * sin]
    return ops.cast(ops.concatenate(turned, axis=-1), x.dtype)
