"""ModernBERT: smarter, better, faster, longer."""

from typing import Unpack

import keras

from bert_keras.layers.encoder import EncoderBlock
from bert_keras.layers.feed_forward import GatedFeedForward
from bert_keras.layers.rotary_attention import RotaryAttention
from bert_keras.models.backbone import Backbone
from bert_keras.models.bert import bert_embeddings, bert_encoder, bert_norm
from bert_keras.models.model import layer_for
from bert_keras.types import LayerOptions


@keras.saving.register_keras_serializable(package="bert_keras")
class ModernBertBackbone(Backbone):
    """ModernBERT's encoder for long texts, most of whose layers see nearby tokens only.

    Differences from BERT:

    - Positions are rotations of queries and keys, see `bert_keras.layers.RotaryAttention`. There
      are no position table, no segments and no pooler.
    - The first of every `global_attention_every` blocks attends to the whole text, the others to a
      window. Each kind has its own rotary base.
    - Blocks begin with their norms, and a final norm follows the last block. The first block has no
      norm before its attention, since the embeddings end with one.
    - The feed-forward networks are gated, see `GatedFeedForward`.
    - Dense layers and norms have no biases.

    Args:
        vocabulary_size: int, number of token ids.
        num_layers: int, number of encoder blocks. ModernBERT-base has 22, ModernBERT-large 28.
        num_heads: int, attention heads per block; `hidden_dim` must be an even multiple.
        hidden_dim: int, width of the hidden states.
        intermediate_dim: int, width inside the feed-forward networks, after the gate.
        dropout: float, rate inside the feed-forward networks.
        attention_dropout: float, rate on attention probabilities and on the attention's output;
            `None` takes `dropout`.
        embedding_dropout: float, rate after the embeddings; `None` takes `dropout`.
        activation: see `BertBackbone`.
        layer_norm_epsilon: float, added to the variance in every norm.
        max_sequence_length: int, most tokens of a sequence.
        local_attention: int, width of the window: a token sees those at most
            `local_attention // 2` positions away.
        global_attention_every: int; with 1, all layers attend to the whole text.
        global_rotary_base: float, for layers that attend to the whole text.
        local_rotary_base: float, for layers that attend to a window.
        initializer_range: float, standard deviation of the initial weights.
        remat: bool, see `BertBackbone`.
        **kwargs: `name`, `dtype` (a policy or its name), `trainable`, see `keras.Model`.

    Call arguments: those of `BertBackbone`, without `segment_ids`.

    Returns:
        The dict of `BertBackbone`, without `pooled_output`. The last of the `hidden_states` is
        the output of the final norm.

    Raises:
        ValueError: a size or a rate is out of range, or the inputs do not fit the tables.

    Example:
    ```python
    backbone = bert_keras.ModernBertBackbone(
        vocabulary_size=50368, num_layers=3, num_heads=2, hidden_dim=128, intermediate_dim=192
    )
    outputs = backbone({"token_ids": np.array([[50281, 12092, 50282]])})
    outputs["sequence_output"].shape  # (1, 3, 128)
    ```

    Reference:
        [Warner et al., 2024](https://arxiv.org/abs/2412.13663).
    """

    num_segments = 0
    default_targets = ("query_key_value",)

    def __init__(
        self,
        vocabulary_size: int,
        num_layers: int,
        num_heads: int,
        hidden_dim: int,
        intermediate_dim: int,
        dropout: float = 0.0,
        attention_dropout: float | None = None,
        embedding_dropout: float | None = None,
        activation: str = "gelu",
        layer_norm_epsilon: float = 1e-5,
        max_sequence_length: int = 8192,
        local_attention: int = 128,
        global_attention_every: int = 3,
        global_rotary_base: float = 160_000.0,
        local_rotary_base: float = 10_000.0,
        initializer_range: float = 0.02,
        remat: bool = False,
        **kwargs: Unpack[LayerOptions],
    ) -> None:
        super().__init__(**kwargs)
        self.embeddings = bert_embeddings(
            self, dropout=self.embedding_dropout, has_positions=False, center=False
        )
        blocks = [self._block(i) for i in range(num_layers)]
        norm = bert_norm(self, "final_norm", center=False)
        self.encoder = bert_encoder(self, blocks, norm=norm)

    def _block(self, i):
        is_global = i % self.global_attention_every == 0
        attention = layer_for(
            self,
            RotaryAttention,
            "attention",
            "num_heads",
            rotary_base=self.global_rotary_base if is_global else self.local_rotary_base,
            window=None if is_global else self.local_attention,
            dropout=self.attention_dropout,
        )
        return ModernBertBlock(
            attention,
            layer_for(
                self, GatedFeedForward, "feed_forward", "intermediate_dim", "activation", "dropout"
            ),
            bert_norm(self, "attention_norm", center=False) if i else None,
            bert_norm(self, "feed_forward_norm", center=False),
            norm_first=True,
            dtype=self.dtype_policy,
            name=f"layer_{i}",
        )


@keras.saving.register_keras_serializable(package="bert_keras")
class ModernBertBlock(EncoderBlock):
    """An `EncoderBlock` with the name that `.keras` files give to ModernBERT's blocks."""
