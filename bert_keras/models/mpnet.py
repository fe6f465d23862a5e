"""MPNet: Masked and Permuted Pre-training for Language Understanding."""

from typing import Unpack

import keras
from keras import ops

from bert_keras.layers.bert_layer import BertLayer
from bert_keras.models.backbone import Backbone
from bert_keras.models.bert import bert_embeddings, bert_encoder
from bert_keras.types import LayerOptions


@keras.saving.register_keras_serializable(package="bert_keras")
class MPNetBackbone(Backbone):
    """MPNet's encoder, on which all-mpnet-base-v2 and many other sentence encoders are built.

    The paper changes how BERT is trained. Its code, which checkpoints follow, changes the encoder:

    - Attention scores have a bias that depends on how far query and key are apart, the same in all
      layers, see `RelativeBias`. It is added to the position vectors of the embeddings, not in
      their place.
    - Positions are counted over the real tokens, as in `RobertaBackbone`. Padding has the id 1.
    - There are no segments.

    Args:
        vocabulary_size: int, number of token ids.
        num_layers: int, number of encoder blocks. MPNet-base has 12.
        num_heads: int, attention heads per block; must divide `hidden_dim`.
        hidden_dim: int, width of the hidden states.
        intermediate_dim: int, width inside the feed-forward networks, 4 times `hidden_dim` in
            MPNet.
        dropout: float, rate after the embeddings and on each residual branch.
        attention_dropout: float, rate on attention probabilities; `None` takes `dropout`.
        activation: see `BertBackbone`.
        layer_norm_epsilon: float, added to the variance in every norm.
        max_sequence_length: int, number of usable positions, without the rows for padding.
        initializer_range: float, standard deviation of the initial weights.
        remat: bool, see `BertBackbone`.
        has_pooler: bool, see `BertBackbone`.
        **kwargs: `name`, `dtype` (a policy or its name), `trainable`, see `keras.Model`.

    Call arguments and what it returns: see `Backbone`. Padding must have the id 1 in `token_ids`
    too.

    Raises:
        ValueError: a size or a rate is out of range, `num_heads` does not divide `hidden_dim`, or
            the inputs do not fit the tables.

    Example:
    ```python
    backbone = bert_keras.MPNetBackbone(
        vocabulary_size=30527, num_layers=2, num_heads=2, hidden_dim=128, intermediate_dim=512
    )
    outputs = backbone({"token_ids": np.array([[0, 7596, 2092, 2]])})
    outputs["sequence_output"].shape  # (1, 4, 128)
    ```

    Reference:
        [Song et al., 2020](https://arxiv.org/abs/2004.09297).
    """

    num_segments, padding_id = 0, 1

    def __init__(
        self,
        vocabulary_size: int,
        num_layers: int,
        num_heads: int,
        hidden_dim: int,
        intermediate_dim: int,
        dropout: float = 0.1,
        attention_dropout: float | None = None,
        activation: str = "gelu",
        layer_norm_epsilon: float = 1e-5,
        max_sequence_length: int = 512,
        initializer_range: float = 0.02,
        remat: bool = False,
        has_pooler: bool = True,
        **kwargs: Unpack[LayerOptions],
    ) -> None:
        super().__init__(**kwargs)
        self.embeddings = bert_embeddings(self)
        options = {"dtype": self.dtype_policy, "name": "attention_bias"}
        bias = RelativeBias(num_heads, initializer_range, **options)
        self.encoder = bert_encoder(self, shared=[bias])


@keras.saving.register_keras_serializable(package="bert_keras")
class RelativeBias(BertLayer):
    """A number for each head, added to the score of a query and a key by their distance.

    `bias[h, i, j] = table[bucket(i - j), h]`. Of 32 buckets 16 are for keys after the query and 16
    for the others. Distances below 8 have a bucket each; beyond, each bucket reaches `sqrt(2)`
    times as far as the one before, and all from 91 on share the last.

    Args:
        num_heads: int.
        initializer_range: float, standard deviation of the initial table.
        **kwargs: `name`, `dtype`, `trainable`, see `keras.layers.Layer`.

    Call arguments:
        hidden_states: `(batch, seq_len, hidden_dim)`, of which the length is read.

    Returns:
        float, `(1, num_heads, seq_len, seq_len)`.

    Reference:
        [Raffel et al., 2020](https://arxiv.org/abs/1910.10683), section 2.1.
    """

    def __init__(
        self, num_heads: int, initializer_range: float = 0.02, **kwargs: Unpack[LayerOptions]
    ) -> None:
        super().__init__(**kwargs)
        self.table = self.make_table(32, num_heads, "table")

    def call(self, hidden_states):
        positions = ops.arange(ops.shape(hidden_states)[1], dtype="int32")
        offsets = ops.expand_dims(positions, 1) - ops.expand_dims(positions, 0)
        bias = self.table(bucket(offsets))
        return ops.expand_dims(ops.transpose(bias, (2, 0, 1)), 0)


# The distances at which the buckets 9 to 15 begin: 8 sqrt(2), 16, 16 sqrt(2), ..., rounded up.
# Compared as integers: a logarithm rounds differently on each backend.
_BORDERS = (12, 16, 23, 32, 46, 64, 91)


def bucket(offsets):
    """Returns the bucket of each distance, query's position minus key's: int32 from 0 to 31."""
    distance = ops.abs(offsets)
    buckets = ops.minimum(distance, 8) + 16 * ops.cast(offsets < 0, "int32")
    return buckets + sum(ops.cast(distance >= border, "int32") for border in _BORDERS)
