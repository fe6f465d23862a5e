"""Self-attention with rotary positions, over all tokens or within a window."""

from types import MappingProxyType
from typing import Unpack

import keras
import numpy as np
from keras import ops

from bert_keras.layers.attention import attend
from bert_keras.layers.bert_layer import BertLayer
from bert_keras.layers.local_attention import attend_locally
from bert_keras.types import LayerOptions


@keras.saving.register_keras_serializable(package="bert_keras")
class RotaryAttention(BertLayer):
    """`SelfAttention` with rotary positions and one common projection, by default without biases.

    One kernel projects to queries, keys and values. Queries and keys are rotated by their
    positions, see `apply_rope`. With a window, a token attends to those at most `window // 2`
    positions away, see `attend_locally`.

    Args:
        num_heads: int, must divide `hidden_dim`.
        hidden_dim: int, width of input and output.
        rotary_base: float, see `apply_rope`.
        window: int, width of the window that a token sees, or `None` for the whole text.
        dropout: float, rate on the attention probabilities.
        initializer_range: float, standard deviation of the initial kernels.
        use_bias: bool, whether both projections have biases.
        rotary_scale: float, see `scale` of `apply_rope`.
        drops_output: bool, whether dropout acts on the output too, as in ModernBERT.
        **kwargs: `name`, `dtype`, `trainable`, see `keras.layers.Layer`.

    Call arguments:
        hidden_states: float, `(batch, seq_len, hidden_dim)`.
        attention_mask: bool, `(batch, 1, 1, seq_len)`, which keys are real, or `None` for all.
        return_attentions: bool, whether the probabilities are returned too.
        training: bool, whether dropout is active.

    Returns:
        `(output, attentions)`, see `SelfAttention`.

    Raises:
        ValueError: the width of a head, `hidden_dim / num_heads`, is not an even number.

    Reference:
        [Su et al., 2021](https://arxiv.org/abs/2104.09864);
        [Beltagy et al., 2020](https://arxiv.org/abs/2004.05150), section 3.1, for the window.
    """

    # Name of each dense layer that can have an adapter -> attribute.
    adaptable = MappingProxyType(
        {"query_key_value": "query_key_value", "attention_output": "output_dense"}
    )

    def __init__(
        self,
        num_heads,
        hidden_dim,
        rotary_base,
        window=None,
        dropout=0.0,
        initializer_range=0.02,
        use_bias=False,
        rotary_scale=1.0,
        drops_output=True,
        **kwargs: Unpack[LayerOptions],
    ):
        super().__init__(**kwargs)
        if hidden_dim % (2 * num_heads):
            raise ValueError(
                "Rotary positions need heads of an even width, `hidden_dim / num_heads`. Received: "
                f"hidden_dim={hidden_dim}, num_heads={num_heads}."
            )
        options, units = {"use_bias": use_bias}, 3 * hidden_dim
        self.query_key_value = self.make_dense(hidden_dim, units, "query_key_value", **options)
        options["shard_axis"] = 0
        self.output_dense = self.make_dense(hidden_dim, hidden_dim, "output", **options)
        self.dropout = self.make_dropout(dropout)

    def call(self, hidden_states, attention_mask=None, return_attentions=False, training=None):
        rows = ops.shape(hidden_states)[:2]
        shape = (*rows, 3, self.num_heads, self.hidden_dim // self.num_heads)
        projected = ops.reshape(self.query_key_value(hidden_states), shape)
        rotated = apply_rope(projected[:, :, :2], self.rotary_base, self.rotary_scale)
        vectors = rotated[:, :, 0], rotated[:, :, 1], projected[:, :, 2]
        options = (self.dropout, return_attentions, training)
        if self.window is None:
            context, attentions = attend(*vectors, attention_mask, *options)
        else:
            window_radius = self.window // 2
            context, attentions = attend_locally(*vectors, attention_mask, window_radius, *options)
        output = self.output_dense(ops.reshape(context, (*rows, self.hidden_dim)))
        if self.drops_output:
            output = self.dropout(output, training=training)
        return output, attentions


def apply_rope(x, base, scale=1.0):
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
    rotated = [first * cos - second * sin, second * cos + first * sin]
    return ops.cast(ops.concatenate(rotated, axis=-1), x.dtype)
