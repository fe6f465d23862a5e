"""ALBERT: A Lite BERT for Self-supervised Learning of Language Representations."""

from typing import Unpack

import keras

from bert_keras.checks import check_int
from bert_keras.models.backbone import Backbone
from bert_keras.models.bert import bert_block, bert_embeddings, bert_encoder
from bert_keras.types import LayerOptions


@keras.saving.register_keras_serializable(package="bert_keras")
class AlbertBackbone(Backbone):
    """ALBERT's encoder: BERT's with fewer weights, because layers share them.

    - Tokens, positions and segments have vectors of `embedding_dim`, which one dense layer projects
      to `hidden_dim`, even if the two are equal: `V * E + E * H` weights instead of `V * H`.
    - There are only `num_groups` groups of `num_inner_layers` blocks, so that depth adds no
      weights. A text passes through `n = num_layers / num_inner_layers` groups, the `i`-th of which
      is group `int(i / (n / num_groups))`, and through all of its blocks. For example, 7 layers of
      3 groups are 0, 0, 0, 1, 1, 2, 2. ALBERT's checkpoints have one group of one block.

    There is no difference from the paper. Whatever depends on depth (freezing, layer-wise learning
    rates, unfreezing, adapters) counts a block once, even if layers share it.

    Args:
        vocabulary_size: int, number of token ids.
        num_layers: int, depth in blocks, a multiple of `num_inner_layers`. ALBERT-base has 12.
            (transformers and KerasHub count groups, not blocks.)
        num_heads: int, attention heads per block; must divide `hidden_dim`.
        hidden_dim: int, width of the hidden states.
        intermediate_dim: int, width inside the feed-forward networks, 4 times `hidden_dim` in
            ALBERT.
        embedding_dim: int, width of the token table.
        num_groups: int, groups of layers that share their weights.
        num_inner_layers: int, blocks per group.
        dropout: float, rate after the embeddings and on each residual branch. Version 2 of the
            checkpoints has none.
        attention_dropout: float, rate on attention probabilities; `None` takes `dropout`.
        activation: see `BertBackbone`.
        layer_norm_epsilon: float, added to the variance in every norm.
        max_sequence_length: int, number of learned positions.
        num_segments: int, see `BertBackbone`.
        initializer_range: float, standard deviation of the initial weights.
        remat: bool, see `BertBackbone`.
        has_pooler: bool, see `BertBackbone`.
        **kwargs: `name`, `dtype` (a policy or its name), `trainable`, see `keras.Model`.

    Call arguments and what it returns: see `Backbone`.

    Raises:
        ValueError: a size or a rate is out of range, the layers cannot be divided into the groups,
            or the inputs do not fit the tables.

    Example:
    ```python
    backbone = bert_keras.AlbertBackbone(
        vocabulary_size=30000, num_layers=12, num_heads=2, hidden_dim=128, intermediate_dim=512
    )
    outputs = backbone({"token_ids": np.array([[2, 10975, 3]])})
    outputs["sequence_output"].shape  # (1, 3, 128)
    ```

    Reference:
        [Lan et al., 2020](https://arxiv.org/abs/1909.11942), section 3.1.
    """

    def __init__(
        self,
        vocabulary_size: int,
        num_layers: int,
        num_heads: int,
        hidden_dim: int,
        intermediate_dim: int,
        embedding_dim: int = 128,
        num_groups: int = 1,
        num_inner_layers: int = 1,
        dropout: float = 0.0,
        attention_dropout: float | None = None,
        activation: str = "gelu_tanh",
        layer_norm_epsilon: float = 1e-12,
        max_sequence_length: int = 512,
        num_segments: int = 2,
        initializer_range: float = 0.02,
        remat: bool = False,
        has_pooler: bool = True,
        **kwargs: Unpack[LayerOptions],
    ) -> None:
        super().__init__(**kwargs)
        self.embeddings = bert_embeddings(self, embedding_dim)
        self.encoder = bert_encoder(self, self._shared_blocks())

    def _shared_blocks(self):
        """Returns the block of each layer, a list of `num_layers` with repetitions."""
        check_int("num_inner_layers", self.num_inner_layers, 1, self.num_layers)
        num_passes, remainder = divmod(self.num_layers, self.num_inner_layers)
        if remainder:
            raise ValueError(
                "`num_layers` must be a multiple of `num_inner_layers`, since groups are passed as "
                f"a whole. Received: {self.num_layers} and {self.num_inner_layers}."
            )
        advice = "Each group must have at least one layer."
        check_int("num_groups", self.num_groups, 1, num_passes, advice)
        groups = [
            [bert_block(self, f"group_{g}_layer_{j}") for j in range(self.num_inner_layers)]
            for g in range(self.num_groups)
        ]
        # In floats, as in Google's and Hugging Face's code: ints give other groups for some sizes.
        per_group = num_passes / self.num_groups
        return [block for i in range(num_passes) for block in groups[int(i / per_group)]]
