"""The embeddings of BERT: token + segment + position, normalized."""

from typing import Unpack

import keras
from keras import ops

from bert_keras.engine.fast_layer_call import look_up
from bert_keras.layers.bert_layer import BertLayer
from bert_keras.types import LayerOptions, Tensor


@keras.saving.register_keras_serializable(package="bert_keras")
class BertEmbeddings(BertLayer):
    """Sums a token, a segment and a position vector, normalizes the sum, and applies dropout.

    `output = Dropout(LayerNorm(token[id] + segment[segment_id] + position[i]))`, section 3 and
    figure 2 of the paper. Positions are learned, so a sequence longer than
    `max_sequence_length` has no representation.

    With `padding_id`, positions are RoBERTa's: tokens with another id are counted from
    `padding_id + 1` on, skipping any padding between them, and padding is at `padding_id`. The
    table then has `padding_id + 1` more rows, of which the first `padding_id` are never read.

    With `embedding_dim`, as in ALBERT and ELECTRA, the tables and the norm have a width of their
    own, and a dense layer projects the output to the encoder's width: `projection(output)`.

    Args:
        vocabulary_size: int, rows of the token table.
        hidden_dim: int, width of the output.
        max_sequence_length: int, number of positions.
        num_segments: int, rows of the segment table; 0 for no segments.
        dropout: float, rate after the norm.
        layer_norm_epsilon: float, added to the variance.
        initializer_range: float, standard deviation of the truncated normal that fills the tables.
        padding_id: int, id of the token that is not counted, or `None` to count all tokens.
        embedding_dim: int, width of every table before the projection to `hidden_dim`; `None` for
            `hidden_dim` and no projection.
        has_positions: bool, whether there is a position vector. If not, the attention must know
            positions, and `max_sequence_length` and `padding_id` are ignored.
        center: bool, whether the norm has an offset.
        project_first: bool, whether the projection, which then has no bias, comes before the norm,
            as in DeBERTa.
        **kwargs: `name`, `dtype`, `trainable`, see `keras.layers.Layer`.

    Call arguments:
        token_ids: int, `(batch, seq_len)`.
        segment_ids: int, `(batch, seq_len)`, or `None` for segment 0 everywhere.
        token_vectors: float, `(batch, seq_len, embedding_dim)`, used in place of the token table's
            rows for `token_ids`, or `None`. Gradients with respect to the input need them.
        training: bool, whether dropout is active.

    Returns:
        float, `(batch, seq_len, hidden_dim)`.

    Reference:
        [Devlin et al., 2019](https://arxiv.org/abs/1810.04805), section 3; `make_positions` in
        facebookresearch/fairseq, `fairseq/utils.py`;
        [Lan et al., 2020](https://arxiv.org/abs/1909.11942), section 3.1, for `embedding_dim`.
    """

    def __init__(
        self,
        vocabulary_size: int,
        hidden_dim: int,
        max_sequence_length: int = 512,
        num_segments: int = 2,
        dropout: float = 0.1,
        layer_norm_epsilon: float = 1e-12,
        initializer_range: float = 0.02,
        padding_id: int | None = None,
        embedding_dim: int | None = None,
        has_positions: bool = True,
        center: bool = True,
        project_first: bool = False,
        **kwargs: Unpack[LayerOptions],
    ) -> None:
        super().__init__(**kwargs)
        width = hidden_dim if embedding_dim is None else embedding_dim
        # Reversible, so that the head of a masked language model can use the same table.
        reversible = keras.layers.ReversibleEmbedding
        self.token_embedding = self.make_table(
            vocabulary_size, width, "token_embedding", reversible
        )
        self.position_embedding = self.segment_embedding = self.projection = None
        if has_positions:
            rows = max_sequence_length + (0 if padding_id is None else padding_id + 1)
            self.position_embedding = self.make_table(rows, width, "position_embedding")
        if num_segments:
            self.segment_embedding = self.make_table(num_segments, width, "segment_embedding")
        normed = hidden_dim if project_first else width
        self.layer_norm = self.make_norm(normed, layer_norm_epsilon, center=center)
        self.dropout = self.make_dropout(dropout)
        if embedding_dim is not None:
            options = {"name": "projection", "use_bias": not project_first}
            self.projection = self.make_dense(width, hidden_dim, **options)
        self.output_shape = (None, None, hidden_dim)

    def call(
        self,
        token_ids: Tensor,
        segment_ids: Tensor | None = None,
        token_vectors: Tensor | None = None,
        training: bool | None = None,
    ) -> Tensor:
        x = look_up(self.token_embedding, token_ids) if token_vectors is None else token_vectors
        if self.position_embedding is not None:
            if self.padding_id is None:
                positions = ops.arange(ops.shape(token_ids)[1], dtype="int32")
            else:
                is_real = ops.cast(ops.not_equal(token_ids, self.padding_id), "int32")
                positions = ops.cumsum(is_real, axis=1) * is_real + self.padding_id
            x = x + look_up(self.position_embedding, positions)
        if self.segment_embedding is not None:
            if segment_ids is None:
                # One row, which is broadcast over batch and length.
                segment_ids = ops.zeros((1, 1), dtype="int32")
            x = x + look_up(self.segment_embedding, segment_ids)
        is_projected = self.projection is not None
        if is_projected and self.project_first:
            x = self.projection(x)
        x = self.layer_norm(x)
        if training:
            x = self.dropout(x, training=True)
        return self.projection(x) if is_projected and not self.project_first else x
