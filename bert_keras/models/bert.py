"""BERT: Pre-training of Deep Bidirectional Transformers for Language Understanding."""

from typing import Unpack

import keras

from bert_keras.layers.attention import SelfAttention
from bert_keras.layers.embeddings import BertEmbeddings
from bert_keras.layers.encoder import Encoder, EncoderBlock
from bert_keras.layers.feed_forward import FeedForward
from bert_keras.layers.layer_norm import LayerNorm
from bert_keras.models.backbone import Backbone
from bert_keras.models.model import layer_for
from bert_keras.types import LayerOptions


@keras.saving.register_keras_serializable(package="bert_keras")
class BertBackbone(Backbone):
    """BERT's encoder, from ids to one vector per token and one vector per sequence.

    Embeddings, `num_layers` blocks of bidirectional self-attention and feed-forward, and a pooler
    on the first token. There is no difference from the paper. Where checkpoints differ from it and
    from each other (activation, epsilon, number of segments and positions), there is an argument.

    Args:
        vocabulary_size: int, number of token ids.
        num_layers: int, number of encoder blocks. BERT-base has 12, BERT-large 24.
        num_heads: int, attention heads per block; must divide `hidden_dim`.
        hidden_dim: int, width of the hidden states.
        intermediate_dim: int, width inside the feed-forward networks, 4 times `hidden_dim` in BERT.
        dropout: float, rate after the embeddings and on each residual branch.
        attention_dropout: float, rate on attention probabilities; `None` takes `dropout`.
        activation: `"gelu"` (exact, as Hugging Face's "gelu"), `"gelu_tanh"` (Google's TF1 code),
            `"relu"`, or the name of any Keras activation.
        layer_norm_epsilon: float, added to the variance in every norm.
        max_sequence_length: int, number of learned positions.
        num_segments: int, number of segment ids. With 1, the same vector is added to all tokens;
            with 0, none. In both cases `segment_ids` are not an input.
        initializer_range: float, standard deviation of the initial weights.
        causal: bool, whether a token sees only itself and the tokens before it, as in the
            left-to-right model of the paper's table 5. The first token then sees only itself: use
            the pooling `"mean"`.
        remat: bool, whether training keeps only the input of each encoder block and computes the
            block again in the backward pass, which takes less memory, more time, and gives the same
            numbers. It is saved in `.keras` files but not in presets.
        has_pooler: bool, whether there is a pooler, and so a `pooled_output`. Pass `False` if
            nothing reads it: a layer that nothing reads has no gradients, of which Keras warns.
        **kwargs: `name`, `dtype` (a policy or its name), `trainable`, see `keras.Model`.

    Call arguments and what it returns: see `Backbone`.

    Raises:
        ValueError: a size or a rate is out of range, `num_heads` does not divide `hidden_dim`, or
            the inputs do not fit the tables.

    Example:
    ```python
    backbone = bert_keras.BertBackbone(
        vocabulary_size=30522, num_layers=2, num_heads=2, hidden_dim=128, intermediate_dim=512
    )
    outputs = backbone({"token_ids": np.array([[101, 7592, 102]])})
    outputs["sequence_output"].shape  # (1, 3, 128)
    ```

    Reference:
        [Devlin et al., 2019](https://arxiv.org/abs/1810.04805).
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
        layer_norm_epsilon: float = 1e-12,
        max_sequence_length: int = 512,
        num_segments: int = 2,
        initializer_range: float = 0.02,
        causal: bool = False,
        remat: bool = False,
        has_pooler: bool = True,
        **kwargs: Unpack[LayerOptions],
    ) -> None:
        super().__init__(**kwargs)
        self.embeddings = bert_embeddings(self)
        self.encoder = bert_encoder(self)


def bert_embeddings(backbone, embedding_dim=None, **options):
    """Returns BERT's embeddings with the settings of a backbone, for other families too.

    Args:
        backbone: a `Backbone`.
        embedding_dim: int, width of the tables before a projection, see `BertEmbeddings`; `None`
            for no projection.
        **options: further arguments of `BertEmbeddings`, such as `has_positions`.
    """
    shared = ("vocabulary_size", "max_sequence_length", "num_segments", "padding_id", "dropout")
    shared += ("layer_norm_epsilon",)
    options["embedding_dim"] = embedding_dim
    return layer_for(backbone, BertEmbeddings, "embeddings", *shared, **options)


def bert_encoder(backbone, blocks=None, **options):
    """Returns BERT's encoder with the settings of a backbone, for other families too.

    Args:
        backbone: a `Backbone`.
        blocks: list of layers, or `None` for BERT's.
        **options: further arguments of `Encoder`, such as `shared`.
    """
    blocks = blocks or [bert_block(backbone, f"layer_{i}") for i in range(backbone.num_layers)]
    dtype = backbone.dtype_policy
    return Encoder(blocks, remat=backbone.remat, dtype=dtype, name="encoder", **options)


def bert_norm(backbone, name, **options):
    """Returns a norm with the epsilon of a backbone, see `LayerNorm`."""
    options |= {"epsilon": backbone.layer_norm_epsilon, "dtype": backbone.dtype_policy}
    return LayerNorm(name=name, **options)


def bert_block(backbone, name, block_class=EncoderBlock, attention=None, feed_forward=FeedForward):
    """Returns a block of BERT's encoder with the settings of a backbone, for other families too.

    Args:
        backbone: a `Backbone`.
        name: str.
        block_class: `EncoderBlock`, or a callable with its arguments.
        attention: layer called as `SelfAttention` is, or `None` for BERT's.
        feed_forward: `FeedForward`, or a callable with its arguments.
    """
    if attention is None:
        attention = layer_for(
            backbone, SelfAttention, "attention", "num_heads", dropout=backbone.attention_dropout
        )
    return block_class(
        attention,
        layer_for(backbone, feed_forward, "feed_forward", "intermediate_dim", "activation"),
        bert_norm(backbone, "attention_norm"),
        bert_norm(backbone, "feed_forward_norm"),
        dropout=backbone.dropout,
        dtype=backbone.dtype_policy,
        name=name,
    )
