"""ELECTRA: Pre-training Text Encoders as Discriminators Rather Than Generators."""

from typing import Unpack

import keras

from bert_keras.engine.keras_internals import tracker_of
from bert_keras.models.backbone import Backbone
from bert_keras.models.bert import bert_embeddings, bert_encoder
from bert_keras.types import LayerOptions

_SHARED = ("token_embedding", "position_embedding", "segment_embedding", "layer_norm")


@keras.saving.register_keras_serializable(package="bert_keras")
class ElectraBackbone(Backbone):
    """ELECTRA's encoder, for discriminators and generators: BERT's without a pooler.

    The paper changes how BERT is trained, see `ReplacedTokenDetection`. The embeddings may have a
    width of their own, so that a generator can share those of a wider discriminator. If it is not
    `hidden_dim`, a dense layer projects to that.

    Args:
        vocabulary_size: int, number of token ids.
        num_layers: int, number of encoder blocks. ELECTRA-small and ELECTRA-base have 12.
        num_heads: int, attention heads per block; must divide `hidden_dim`.
        hidden_dim: int, width of the hidden states.
        intermediate_dim: int, width inside the feed-forward networks.
        embedding_dim: int, width of the embeddings; `None` takes `hidden_dim`. ELECTRA-small has
            128 for a `hidden_dim` of 256.
        dropout: float, rate after the embeddings and on each residual branch.
        attention_dropout: float, rate on attention probabilities; `None` takes `dropout`.
        activation: see `BertBackbone`.
        layer_norm_epsilon: float, added to the variance in every norm.
        max_sequence_length: int, number of learned positions.
        num_segments: int, number of segment ids, see `BertBackbone`.
        initializer_range: float, standard deviation of the initial weights.
        remat: bool, see `BertBackbone`.
        **kwargs: `name`, `dtype` (a policy or its name), `trainable`, see `keras.Model`.

    Call arguments: those of `BertBackbone`.

    Returns:
        The dict of `BertBackbone`, without `pooled_output`.

    Raises:
        ValueError: a size or a rate is out of range, or the inputs do not fit the tables.

    Example:
    ```python
    backbone = bert_keras.ElectraBackbone(
        vocabulary_size=30522,
        num_layers=2,
        num_heads=2,
        hidden_dim=128,
        intermediate_dim=512,
        embedding_dim=64,
    )
    outputs = backbone({"token_ids": np.array([[101, 7592, 102]])})
    outputs["sequence_output"].shape  # (1, 3, 128)
    ```

    Reference:
        [Clark et al., 2020](https://arxiv.org/abs/2003.10555).
    """

    def __init__(
        self,
        vocabulary_size: int,
        num_layers: int,
        num_heads: int,
        hidden_dim: int,
        intermediate_dim: int,
        embedding_dim: int | None = None,
        dropout: float = 0.1,
        attention_dropout: float | None = None,
        activation: str = "gelu",
        layer_norm_epsilon: float = 1e-12,
        max_sequence_length: int = 512,
        num_segments: int = 2,
        initializer_range: float = 0.02,
        remat: bool = False,
        **kwargs: Unpack[LayerOptions],
    ) -> None:
        super().__init__(**kwargs)
        is_projected = self.embedding_dim != hidden_dim
        self.embeddings = bert_embeddings(self, embedding_dim if is_projected else None)
        self.encoder = bert_encoder(self)


def share_embeddings(backbone: keras.Model, other: keras.Model) -> None:
    """Replaces the tables and the norm of a backbone's embeddings by those of another backbone.

    The projection to the encoder's width is not shared.

    Args:
        backbone: a `Backbone`.
        other: a `Backbone` whose embeddings have the same class, tables and width.
    """
    embeddings = backbone.embeddings
    for name in _SHARED:
        old = getattr(embeddings, name, None)
        if old is not None:
            new = getattr(other.embeddings, name)
            # In the same place, so that the order of weights stays.
            tracker_of(embeddings).replace_tracked_value("layers", old, new)
            setattr(embeddings, name, new)
