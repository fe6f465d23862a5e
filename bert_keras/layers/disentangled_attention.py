"""DeBERTa's self-attention: what tokens are and how far they are apart, disentangled."""

from collections.abc import Sequence
from types import MappingProxyType
from typing import Unpack

import keras
import numpy as np
from keras import ops

from bert_keras.engine import kernels
from bert_keras.layers.attention import SelfAttention, attend
from bert_keras.layers.bert_layer import BertLayer
from bert_keras.types import LayerOptions, Tensor

# Content to position, and position to content.
TERMS = ("c2p", "p2c")


@keras.saving.register_keras_serializable(package="bert_keras")
class RelativeVectors(BertLayer):
    """A vector for each distance between two tokens, which all layers share.

    `vector(d) = LayerNorm(table[row(d)])`, where `d` is the query's position minus the key's. See
    `rows_of_distances` for `row`. Only the length of the hidden states is read.

    Args:
        hidden_dim: int, width of the vectors.
        num_buckets: int, half the rows of the table, or `None` for `max_distance`.
        max_distance: int, from which on all distances have the same row.
        relative_norm: bool, whether there is a norm.
        layer_norm_epsilon: float, added to its variance.
        initializer_range: float, standard deviation of the initial table.
        **kwargs: `name`, `dtype`, `trainable`, see `keras.layers.Layer`.

    Call arguments:
        hidden_states: `(batch, seq_len, hidden_dim)`.

    Returns:
        float, `(2 * seq_len + 1, hidden_dim)`, for the distances from `-seq_len` to `seq_len`.
    """

    def __init__(
        self,
        hidden_dim: int,
        num_buckets: int | None = 256,
        max_distance: int = 512,
        relative_norm: bool = True,
        layer_norm_epsilon: float = 1e-7,
        initializer_range: float = 0.02,
        **kwargs: Unpack[LayerOptions],
    ) -> None:
        super().__init__(**kwargs)
        self.rows = rows_of_distances(num_buckets, max_distance)
        self.table = self.make_table(2 * (num_buckets or max_distance), hidden_dim, "table")
        self.norm = None
        if relative_norm:
            self.norm = self.make_norm(hidden_dim, layer_norm_epsilon, "norm")

    def call(self, hidden_states: Tensor) -> Tensor:
        length, limit = ops.shape(hidden_states)[1], self.max_distance
        distances = ops.arange(2 * length + 1, dtype="int32") - length
        places = ops.clip(distances, -limit, limit) + limit
        # A column, since PyTorch exports Keras's `take` from a vector for one size alone.
        rows = ops.take(ops.convert_to_tensor(self.rows[:, None]), places, axis=0)
        vectors = self.table(rows[:, 0])
        return vectors if self.norm is None else self.norm(vectors)


def rows_of_distances(num_buckets: int | None, max_distance: int) -> np.ndarray:
    """Returns the row of the table for each distance from `-max_distance` to `max_distance`.

    Without buckets, `row(d) = d + max_distance`. With `b` buckets and `m = b / 2`, distances up to
    `m` have rows of their own, `row(d) = d + b`. Longer ones share rows, on a logarithmic scale:
    `row(d) = b + sign(d) (m + ceil((m - 1) log(|d| / m) / log((max_distance - 1) / m)))`.

    Args:
        num_buckets: even int, or `None`.
        max_distance: int.

    Returns:
        int32, `(2 * max_distance + 1,)`.
    """
    distances, span = np.arange(-max_distance, max_distance + 1), num_buckets or max_distance
    if num_buckets:
        middle = num_buckets // 2
        # In float32, as in the original code.
        times = (np.maximum(np.abs(distances), middle) / middle).astype("float32")
        share = np.log(times) / np.log(np.float32((max_distance - 1) / middle))
        far = middle + np.ceil(share * (middle - 1))
        distances = np.where(np.abs(distances) <= middle, distances, np.sign(distances) * far)
    return np.clip(distances + span, 0, 2 * span - 1).astype("int32")


@keras.saving.register_keras_serializable(package="bert_keras")
class DisentangledAttention(SelfAttention):
    """`SelfAttention` whose scores have terms for content and for distance.

    `score(i, j) = (q_i k_j + q_i K(r) + Q(r) k_j) / sqrt(f head_dim)` for each head, where `r` is
    the vector of the distance `i - j`, `K` and `Q` project it to a key and to a query, and `f` is
    the number of terms. The second term is "c2p", content to position, the third "p2c".

    Only vectors of distances that occur are projected. The original code projects the whole table,
    so that distances with the same row also have the same dropout mask.

    Args:
        num_heads, hidden_dim, dropout, initializer_range: see `SelfAttention`.
        relative_terms: sequence of `"c2p"` and `"p2c"`.
        share_projections: bool, whether `K` and `Q` are the projections of tokens.
        relative_dropout: float, rate on the vectors of distances.
        **kwargs: `name`, `dtype`, `trainable`, see `keras.layers.Layer`.

    Call arguments:
        hidden_states, attention_mask, return_attentions, training: see `SelfAttention`.
        relative_vectors: float, `(2 * seq_len + 1, hidden_dim)`, see `RelativeVectors`, or `None`.

    Returns:
        See `SelfAttention`.

    Reference:
        [He et al., 2020](https://arxiv.org/abs/2006.03654), section 3.1.
    """

    def __init__(
        self,
        num_heads: int,
        hidden_dim: int,
        dropout: float = 0.1,
        initializer_range: float = 0.02,
        relative_terms: Sequence[str] = TERMS,
        share_projections: bool = True,
        relative_dropout: float = 0.1,
        **kwargs: Unpack[LayerOptions],
    ) -> None:
        super().__init__(num_heads, hidden_dim, dropout, initializer_range, **kwargs)
        self.relative_terms = tuple(relative_terms)
        self.position_key = self.position_query = None
        if not share_projections:
            for term, name in zip(TERMS, ("position_key", "position_query"), strict=True):
                if term in relative_terms:
                    setattr(self, name, self.make_dense(hidden_dim, hidden_dim, name))
        self.relative_dropout = self.make_dropout(relative_dropout, "relative")

    @property
    def adaptable(self):
        """Name of each dense layer that can have an adapter -> attribute."""
        names = ("position_key", "position_query")
        names = {name: name for name in names if getattr(self, name) is not None}
        return MappingProxyType({**SelfAttention.adaptable, **names})

    def call(
        self,
        hidden_states: Tensor,
        attention_mask: Tensor | None = None,
        return_attentions: bool = False,
        training: bool | None = None,
        relative_vectors: Tensor | None = None,
    ) -> tuple[Tensor, Tensor | None]:
        query, key, value = (
            kernels.split_heads(project(hidden_states), self.num_heads)
            for project in (self.query, self.key, self.value)
        )
        scale = (self.head_dim * (1 + len(self.relative_terms))) ** -0.5
        bias = None
        if relative_vectors is not None and self.relative_terms:
            vectors = self.relative_dropout(relative_vectors, training=training)
            bias = self._relative_scores(query * scale, key * scale, vectors)
        if attention_mask is not None:
            # As in the original code, padding sees nothing.
            attention_mask = ops.logical_and(attention_mask, ops.swapaxes(attention_mask, 2, 3))
        options = (attention_mask, self.dropout, return_attentions, training, bias, scale)
        context, attentions = attend(query, key, value, *options)
        return self.output_dense(kernels.join_heads(context)), attentions

    def _relative_scores(self, query, key, vectors):
        """Returns the sum of the terms: float `(batch, num_heads, seq_len, seq_len)`."""
        heads, scores = (-1, self.num_heads, self.head_dim), []
        if "c2p" in self.relative_terms:
            keys = (self.position_key or self.key)(ops.flip(vectors, axis=0))
            scores.append(_by_distance(query, ops.reshape(keys, heads)))
        if "p2c" in self.relative_terms:
            queries = (self.position_query or self.query)(vectors)
            by_key = _by_distance(key, ops.reshape(queries, heads))
            scores.append(ops.transpose(by_key, (0, 1, 3, 2)))
        return ops.transpose(sum(scores), (1, 0, 2, 3))


def _by_distance(content, positions):
    """Returns `content[b, i] . positions[j - i + seq_len]` for each head.

    One matrix product gives `2 * seq_len + 1` columns. Row `i` needs `seq_len` of them, from column
    `seq_len - i` on. In the flat product these begin `2 * seq_len` numbers apart, so that slices
    and reshapes select them. PyTorch would export a gather by computed positions for one length
    only.

    Args:
        content: float, `(batch, seq_len, num_heads, head_dim)`.
        positions: float, `(2 * seq_len + 1, num_heads, head_dim)`.

    Returns:
        float, `(num_heads, batch, seq_len, seq_len)`.
    """
    products = ops.einsum("bqhd,phd->hbqp", content, positions)
    heads, length = positions.shape[1], ops.shape(content)[1]
    flat = ops.reshape(products, (heads, -1, length * (2 * length + 1)))
    rows = ops.reshape(flat[:, :, length:], (heads, -1, length, 2 * length))
    return rows[..., :length]
