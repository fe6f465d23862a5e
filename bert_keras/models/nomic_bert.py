"""NomicBERT, GTE and Jina's third encoder: BERT with rotary positions, for long texts."""

import functools
from typing import Unpack

import keras

from bert_keras.layers.feed_forward import FeedForward, GatedFeedForward
from bert_keras.layers.rotary_attention import RotaryAttention
from bert_keras.models.backbone import Backbone
from bert_keras.models.bert import bert_block, bert_embeddings, bert_encoder
from bert_keras.models.model import layer_for
from bert_keras.types import LayerOptions


@keras.saving.register_keras_serializable(package="bert_keras")
class NomicBertBackbone(Backbone):
    """The encoder of NomicBERT, of GTE and of jina-embeddings-v3. Defaults are NomicBERT's.

    Differences from BERT:

    - Positions are rotations of queries and keys, see `bert_keras.layers.rotary`. There is no
      position table.
    - The feed-forward networks are gated, see `GatedFeedForward`, except in Jina's encoder.
    - NomicBERT's dense layers have no biases, GTE's only those of the attention and of the
      feed-forward networks' output.
    - Only Jina's encoder has a pooler.

    Args:
        vocabulary_size: int, number of token ids.
        num_layers: int, number of encoder blocks. NomicBERT has 12.
        num_heads: int, attention heads per block; `hidden_dim` must be an even multiple.
        hidden_dim: int, width of the hidden states.
        intermediate_dim: int, width inside the feed-forward networks, after the gate.
        dropout: float, rate after the embeddings, on each residual branch, and inside gated
            feed-forward networks.
        attention_dropout: float, rate on attention probabilities; `None` takes `dropout`.
        activation: see `BertBackbone`.
        layer_norm_epsilon: float, added to the variance in every norm.
        max_sequence_length: int, most tokens of a sequence.
        num_segments: int, see `BertBackbone`.
        rotary_base: float, see `bert_keras.layers.rotary_attention.apply_rope`.
        rotary_scale: float, which positions are divided by.
        has_biases: bool, whether the attention and the output of gated feed-forward networks have
            biases. Feed-forward networks without a gate always have them.
        is_gated: bool, whether the feed-forward networks have a gate.
        has_pooler: bool, whether there is a pooler on the first token.
        initializer_range: float, standard deviation of the initial weights.
        remat: bool, see `BertBackbone`.
        **kwargs: `name`, `dtype` (a policy or its name), `trainable`, see `keras.Model`.

    Call arguments and what it returns: see `Backbone`.

    Raises:
        ValueError: a size or a rate is out of range, or the inputs do not fit the tables.

    Example:
    ```python
    backbone = bert_keras.NomicBertBackbone(
        vocabulary_size=30528, num_layers=2, num_heads=2, hidden_dim=128, intermediate_dim=512
    )
    outputs = backbone({"token_ids": np.array([[101, 7592, 102]])})
    outputs["sequence_output"].shape  # (1, 3, 128)
    ```

    Reference:
        [Nussbaum et al., 2024](https://arxiv.org/abs/2402.01613) for NomicBERT;
        [Zhang et al., 2024](https://arxiv.org/abs/2407.19669) for GTE;
        [Sturua et al., 2024](https://arxiv.org/abs/2409.10173) for Jina's encoder.
    """

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
        activation: str = "silu",
        layer_norm_epsilon: float = 1e-12,
        max_sequence_length: int = 8192,
        num_segments: int = 2,
        rotary_base: float = 1000.0,
        rotary_scale: float = 1.0,
        has_biases: bool = False,
        is_gated: bool = True,
        has_pooler: bool = False,
        initializer_range: float = 0.02,
        remat: bool = False,
        **kwargs: Unpack[LayerOptions],
    ) -> None:
        super().__init__(**kwargs)
        self.embeddings = bert_embeddings(self, has_positions=False)
        self.encoder = bert_encoder(self, [self._block(f"layer_{i}") for i in range(num_layers)])

    def _block(self, name):
        shared = ("num_heads", "rotary_base", "rotary_scale")
        options = {"dropout": self.attention_dropout, "use_bias": self.has_biases}
        attention = layer_for(
            self, RotaryAttention, "attention", *shared, drops_output=False, **options
        )
        gated = functools.partial(GatedFeedForward, use_bias=self.has_biases, dropout=self.dropout)
        feed_forward = gated if self.is_gated else FeedForward
        return bert_block(self, name, attention=attention, feed_forward=feed_forward)
