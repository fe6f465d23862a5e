"""DistilBERT, a distilled version of BERT: smaller, faster, cheaper and lighter."""

from typing import Unpack

import keras

from bert_keras.models.backbone import Backbone
from bert_keras.models.bert import bert_embeddings, bert_encoder
from bert_keras.types import LayerOptions


@keras.saving.register_keras_serializable(package="bert_keras")
class DistilBertBackbone(Backbone):
    """DistilBERT's encoder: BERT's with half the blocks, without segments and without a pooler.

    Args:
        vocabulary_size: int, number of token ids.
        num_layers: int, number of encoder blocks. DistilBERT-base has 6.
        num_heads: int, attention heads per block; must divide `hidden_dim`.
        hidden_dim: int, width of the hidden states.
        intermediate_dim: int, width inside the feed-forward networks.
        dropout: float, rate after the embeddings and on each residual branch.
        attention_dropout: float, rate on attention probabilities; `None` takes `dropout`.
        activation: see `BertBackbone`.
        layer_norm_epsilon: float, added to the variance in every norm.
        max_sequence_length: int, number of learned positions.
        initializer_range: float, standard deviation of the initial weights.
        remat: bool, see `BertBackbone`.
        **kwargs: `name`, `dtype` (a policy or its name), `trainable`, see `keras.Model`.

    Call arguments: those of `BertBackbone`, without `segment_ids`.

    Returns:
        The dict of `BertBackbone`, without `pooled_output`.

    Raises:
        ValueError: a size or a rate is out of range, or the inputs do not fit the tables.

    Example:
    ```python
    backbone = bert_keras.DistilBertBackbone(
        vocabulary_size=30522, num_layers=2, num_heads=2, hidden_dim=128, intermediate_dim=512
    )
    outputs = backbone({"token_ids": np.array([[101, 7592, 102]])})
    outputs["sequence_output"].shape  # (1, 3, 128)
    ```

    Reference:
        [Sanh et al., 2019](https://arxiv.org/abs/1910.01108).
    """

    num_segments = 0

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
        layer_norm_epsilon: float = 1e-12,
        max_sequence_length: int = 512,
        initializer_range: float = 0.02,
        remat: bool = False,
        **kwargs: Unpack[LayerOptions],
    ) -> None:
        super().__init__(**kwargs)
        self.embeddings = bert_embeddings(self)
        self.encoder = bert_encoder(self)
