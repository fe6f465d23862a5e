"""Multi-head self-attention."""

import functools
from types import MappingProxyType
from typing import Unpack

import keras

from bert_keras.engine import kernels
from bert_keras.layers.bert_layer import BertLayer
from bert_keras.types import LayerOptions, Tensor


@keras.saving.register_keras_serializable(package="bert_keras")
class SelfAttention(BertLayer):
    """Lets every token attend to every other token of its sequence.

    Per head, `softmax(Q K^T / sqrt(head_dim)) V` with `Q, K, V` linear in the input; the heads are
    concatenated and mixed by an output projection (Vaswani et al., 2017, section 3.2). Dropout
    acts on the attention probabilities, as in the original code.

    PyTorch, and JAX on accelerators, compute it in one function of their own while dropout is
    inactive and the probabilities are not returned, PyTorch on accelerators with dropout too.
    Otherwise the explicit formula is used. Both give the same numbers up to rounding. A row in
    which every key is masked attends to all keys equally and stays finite.

    Args:
        num_heads: int, must divide `hidden_dim`.
        hidden_dim: int, width of input and output.
        dropout: float, rate on the attention probabilities.
        initializer_range: float, standard deviation of the initial kernels.
        **kwargs: `name`, `dtype`, `trainable`, see `keras.layers.Layer`.

    Call arguments:
        hidden_states: float, `(batch, seq_len, hidden_dim)`.
        attention_mask: bool, broadcastable to `(batch, num_heads, seq_len, seq_len)`, `True` where
            a query (third axis) may attend to a key (fourth axis); `None` allows all.
        return_attentions: bool, whether the probabilities are returned too.
        training: bool, whether dropout is active.
        attention_bias: float, broadcastable to the same shape as the mask, added to the scores, or
            `None`.
        first_token_only: bool, whether only the first token is a query. All tokens are keys.

    Returns:
        `(output, attentions)`: float `(batch, seq_len, hidden_dim)`, and float
        `(batch, num_heads, seq_len, seq_len)` after softmax and before dropout, or `None`. With
        `first_token_only`, there is one query instead of `seq_len`.

    Raises:
        ValueError: `num_heads` does not divide `hidden_dim`.

    Reference:
        [Vaswani et al., 2017](https://arxiv.org/abs/1706.03762).
    """

    # Name of each dense layer that can have an adapter -> attribute.
    adaptable = MappingProxyType(
        {"query": "query", "key": "key", "value": "value", "attention_output": "output_dense"}
    )

    def __init__(
        self,
        num_heads: int,
        hidden_dim: int,
        dropout: float = 0.1,
        initializer_range: float = 0.02,
        **kwargs: Unpack[LayerOptions],
    ) -> None:
        super().__init__(**kwargs)
        if hidden_dim % num_heads:
            raise ValueError(
                "`hidden_dim` must be a multiple of `num_heads`. Received: "
                f"hidden_dim={hidden_dim}, num_heads={num_heads}."
            )
        self.head_dim = hidden_dim // num_heads
        project = functools.partial(self.make_dense, hidden_dim, hidden_dim)
        self.query, self.key, self.value = map(project, ("query", "key", "value"))
        self.output_dense = project("output", shard_axis=0)
        self.dropout = self.make_dropout(dropout)

    def call(
        self,
        hidden_states: Tensor,
        attention_mask: Tensor | None = None,
        return_attentions: bool = False,
        training: bool | None = None,
        attention_bias: Tensor | None = None,
        first_token_only: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        queries = hidden_states
        if first_token_only:
            queries = hidden_states[:, :1]
            # A mask or a bias with one row is the same for all queries.
            if attention_mask is not None and attention_mask.shape[2] != 1:
                attention_mask = attention_mask[:, :, :1]
            if attention_bias is not None and attention_bias.shape[2] != 1:
                attention_bias = attention_bias[:, :, :1]
        context, attentions = attend(
            kernels.split_heads(self.query(queries), self.num_heads),
            kernels.split_heads(self.key(hidden_states), self.num_heads),
            kernels.split_heads(self.value(hidden_states), self.num_heads),
            attention_mask,
            self.dropout,
            return_attentions,
            training,
            bias=attention_bias,
        )
        return self.output_dense(kernels.join_heads(context)), attentions


def attend(
    query, key, value, mask, dropout, return_attentions=False, training=None, bias=None, scale=None
):
    """Returns `softmax(scale Q K^T + bias) V`, with the backend's own function where possible.

    Args:
        query: float, `(batch, num_queries, num_heads, head_dim)`.
        key, value: float, `(batch, num_keys, num_heads, head_dim)`.
        mask: bool, broadcastable to `(batch, num_heads, num_queries, num_keys)`, `True` where a
            query may attend to a key; `None` allows all.
        dropout: the dropout layer for the probabilities, with the dtype to compute in.
        return_attentions: bool, whether the probabilities are returned too.
        training: bool, whether dropout is active.
        bias: float, broadcastable to the shape of the scores, to which it is added, or `None`.
        scale: float, or `None` for `1 / sqrt(head_dim)`.

    Returns:
        `(context, attentions)`: float `(batch, num_queries, num_heads, head_dim)`, and float
        `(batch, num_heads, num_queries, num_keys)` before dropout, or `None`.
    """
    active = dropout if training and dropout.rate else None
    rate = 0.0 if active is None else dropout.rate
    if not return_attentions and kernels.has_fused_attention(query, active):
        return kernels.fused_attention(query, key, value, mask, bias, scale, rate), None
    query, key, value = map(kernels.heads_first, (query, key, value))
    is_plain = active is not None and rate < 1 and dropout.noise_shape is None
    if is_plain and not return_attentions:
        context = kernels.attention_with_dropout(query, key, value, mask, bias, scale, dropout)
        return kernels.heads_first(context), None
    attentions = kernels.probabilities(query, key, mask, bias, scale)
    context = kernels.product(dropout(attentions, training=training), value)
    return kernels.heads_first(context), attentions if return_attentions else None
