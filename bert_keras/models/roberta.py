"""RoBERTa: A Robustly Optimized BERT Pretraining Approach."""

from typing import Unpack

import keras

from bert_keras.checks import check_int
from bert_keras.models.backbone import Backbone
from bert_keras.models.bert import bert_embeddings, bert_encoder
from bert_keras.types import LayerOptions


@keras.saving.register_keras_serializable(package="bert_keras")
class RobertaBackbone(Backbone):
    """RoBERTa's encoder, also that of XLM-RoBERTa, CamemBERT and CodeBERT.

    Blocks and pooler are BERT's. The paper changes how BERT is trained. Its code, which checkpoints
    follow, changes the embeddings too:

    - Positions are counted over the real tokens, from `padding_id + 1` on, and padding is at
      `padding_id`: `[0, 5, 6, 2, 1, 1]` is at `[2, 3, 4, 5, 1, 1]`. The position table has
      `padding_id + 1` more rows than there are usable positions, 514 for 512.
    - There is one segment. Its vector is added to all tokens, and `segment_ids` are not an input.
      Models that were trained from scratch may have more, see `num_segments`.

    Args:
        vocabulary_size: int, number of token ids.
        num_layers: int, number of encoder blocks. RoBERTa-base has 12, RoBERTa-large 24.
        num_heads: int, attention heads per block; must divide `hidden_dim`.
        hidden_dim: int, width of the hidden states.
        intermediate_dim: int, width inside the feed-forward networks, 4 times `hidden_dim` in
            RoBERTa.
        dropout: float, rate after the embeddings and on each residual branch.
        attention_dropout: float, rate on attention probabilities; `None` takes `dropout`.
        activation: `"gelu"` (exact), or a name as in `BertBackbone`.
        layer_norm_epsilon: float, added to the variance in every norm.
        max_sequence_length: int, number of usable positions, without the rows for padding.
        num_segments: int, number of segment ids. With more than 1, `segment_ids` are an input, 0
            where they are left out; RoBERTa's tokenizers give 0 to both texts of a pair.
        padding_id: int, id of the padding token, which is skipped in counting positions.
        initializer_range: float, standard deviation of the initial weights.
        remat: bool, see `BertBackbone`.
        has_pooler: bool, see `BertBackbone`.
        **kwargs: `name`, `dtype` (a policy or its name), `trainable`, see `keras.Model`.

    Call arguments and what it returns: see `Backbone`. Padding must have the id `padding_id` in
    `token_ids` too.

    Raises:
        ValueError: a size or a rate is out of range, `num_heads` does not divide `hidden_dim`, or
            the inputs do not fit the tables.

    Example:
    ```python
    backbone = bert_keras.RobertaBackbone(
        vocabulary_size=50265, num_layers=2, num_heads=2, hidden_dim=128, intermediate_dim=512
    )
    outputs = backbone({"token_ids": np.array([[0, 31414, 232, 2]])})
    outputs["sequence_output"].shape  # (1, 4, 128)
    ```

    Reference:
        [Liu et al., 2019](https://arxiv.org/abs/1907.11692);
        [Conneau et al., 2020](https://arxiv.org/abs/1911.02116) for XLM-RoBERTa.
    """

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
        num_segments: int = 1,
        padding_id: int = 1,
        initializer_range: float = 0.02,
        remat: bool = False,
        has_pooler: bool = True,
        **kwargs: Unpack[LayerOptions],
    ) -> None:
        super().__init__(**kwargs)
        check_int("padding_id", padding_id, 0, self.vocabulary_size - 1)
        self.embeddings = bert_embeddings(self)
        self.encoder = bert_encoder(self)
