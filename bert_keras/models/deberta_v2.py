"""DeBERTa-v2 and v3: Decoding-enhanced BERT with Disentangled Attention."""

import functools
import warnings
from collections.abc import Sequence
from typing import Unpack

import keras
import numpy as np
from keras import ops

from bert_keras.checks import check_choice, check_int
from bert_keras.engine.kernels import dense
from bert_keras.inputs import TOKEN_IDS
from bert_keras.layers.activations import get_activation
from bert_keras.layers.bert_layer import BertLayer
from bert_keras.layers.disentangled_attention import TERMS, DisentangledAttention, RelativeVectors
from bert_keras.layers.encoder import EncoderBlock
from bert_keras.layers.initializer import TruncatedNormal
from bert_keras.models.backbone import Backbone
from bert_keras.models.bert import bert_block, bert_embeddings, bert_encoder
from bert_keras.models.model import layer_for
from bert_keras.types import Activation, LayerOptions, Tensor


@keras.saving.register_keras_serializable(package="bert_keras")
class DebertaV2Backbone(Backbone):
    """DeBERTa's encoder as in the files of v2, v3 and mDeBERTa-v3. Defaults are those of v3.

    Differences from BERT:

    - Attention is disentangled: the score of two tokens depends on their vectors and, separately,
      on the distance between them, see `DisentangledAttention`. All layers share one table with a
      vector for each distance, see `RelativeVectors`.
    - There is no pooler, and in most checkpoints there are no positions in the embeddings and no
      segments.
    - The largest v2 checkpoints add a convolution of the embeddings to the first layer's output,
      see `ConvolutionBlock`.

    Without a position table, the model computes sequences of any length. It warns of more than
    `max_distance` tokens, for which checkpoints were not trained.

    Args:
        vocabulary_size: int, number of token ids.
        num_layers: int, number of encoder blocks. DeBERTa-v3-base has 12.
        num_heads: int, attention heads per block; must divide `hidden_dim`.
        hidden_dim: int, width of the hidden states.
        intermediate_dim: int, width inside the feed-forward networks.
        embedding_dim: int, width of the token table; `None` for `hidden_dim`. With another width
            the embeddings are projected before their norm.
        dropout: float, rate after the embeddings, on each residual branch, and on the vectors of
            distances.
        attention_dropout: float, rate on attention probabilities; `None` takes `dropout`.
        activation: see `BertBackbone`.
        layer_norm_epsilon: float, added to the variance in every norm.
        max_sequence_length: int, number of learned positions; `None` for no position table and no
            limit.
        num_segments: int, see `BertBackbone`.
        relative_attention: bool, whether attention depends on distances.
        relative_terms: sequence of `"c2p"` and `"p2c"`, the terms of the scores that depend on
            distances, see `DisentangledAttention`.
        share_projections: bool, whether vectors of distances are projected by the layers that
            project tokens, instead of by layers of their own.
        num_buckets: int, even, half the rows of the table; `None` for a row for each distance.
        max_distance: int, see `RelativeVectors`.
        relative_norm: bool, whether a norm follows the table.
        convolution_size: int, odd, width of the first layer's convolution; 0 for none.
        convolution_activation: str, its activation, see `activation`.
        initializer_range: float, standard deviation of the initial weights.
        remat: bool, see `BertBackbone`.
        **kwargs: `name`, `dtype` (a policy or its name), `trainable`, see `keras.Model`.

    Call arguments and what it returns: see `Backbone`.

    Raises:
        ValueError: a size or a rate is out of range, `num_heads` does not divide `hidden_dim`, a
            term is unknown, or the inputs do not fit the tables.

    Example:
    ```python
    backbone = bert_keras.DebertaV2Backbone(
        vocabulary_size=128100, num_layers=2, num_heads=2, hidden_dim=128, intermediate_dim=512
    )
    outputs = backbone({"token_ids": np.array([[1, 5365, 2]])})
    outputs["sequence_output"].shape  # (1, 3, 128)
    ```

    Reference:
        [He et al., 2020](https://arxiv.org/abs/2006.03654);
        [He et al., 2021](https://arxiv.org/abs/2111.09543) for v3.
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
        layer_norm_epsilon: float = 1e-7,
        max_sequence_length: int | None = None,
        num_segments: int = 0,
        relative_attention: bool = True,
        relative_terms: Sequence[str] = TERMS,
        share_projections: bool = True,
        num_buckets: int | None = 256,
        max_distance: int = 512,
        relative_norm: bool = True,
        convolution_size: int = 0,
        convolution_activation: str = "tanh",
        initializer_range: float = 0.02,
        remat: bool = False,
        **kwargs: Unpack[LayerOptions],
    ) -> None:
        for term in relative_terms:
            check_choice("relative_terms", term, TERMS)
        most = 2 * check_int("max_distance", max_distance, 1, 2**20) - 4
        if num_buckets is not None and check_int("num_buckets", num_buckets, 2, most) % 2:
            raise ValueError(f"`num_buckets` must be even. Received: {num_buckets}.")
        if check_int("convolution_size", convolution_size, 0, 99) % 2 == 0 < convolution_size:
            raise ValueError(
                f"`convolution_size` must be odd, or 0 for none. Received: {convolution_size}."
            )
        super().__init__(**kwargs)
        is_projected = self.embedding_dim != hidden_dim
        self.embeddings = bert_embeddings(
            self,
            embedding_dim if is_projected else None,
            has_positions=max_sequence_length is not None,
            project_first=True,
        )
        names = ("num_buckets", "max_distance", "relative_norm", "layer_norm_epsilon")
        shared = []
        if relative_attention:
            shared = [layer_for(self, RelativeVectors, "relative_vectors", *names)]
        blocks = [self._block(i) for i in range(num_layers)]
        self.encoder = bert_encoder(self, blocks, shared=shared)

    def _block(self, i):
        attention = layer_for(
            self,
            DisentangledAttention,
            "attention",
            "num_heads",
            "relative_terms",
            dropout=self.attention_dropout,
            relative_dropout=self.dropout,
            share_projections=self.share_projections or not self.relative_attention,
        )
        block_class = EncoderBlock
        if i == 0 and self.convolution_size:
            names = ("convolution_size", "convolution_activation", "dropout", "layer_norm_epsilon")
            convolution = layer_for(self, TokenConvolution, "convolution", *names)
            block_class = functools.partial(ConvolutionBlock, convolution=convolution)
        return bert_block(self, f"layer_{i}", block_class, attention)

    def check_arrays(self, inputs, num_axes=2):
        """Raises as `Backbone.check_arrays` does, and warns of more tokens than were trained."""
        super().check_arrays(inputs, num_axes)
        length = np.shape(inputs[TOKEN_IDS])[-1]
        if self.max_sequence_length is None and length > self.max_distance:
            warnings.warn(
                f"Sequences should have at most {self.max_distance} tokens, as in training. "
                f"Received: {length}. The model computes them, but treats all longer distances as "
                "equal. Truncate texts, or cut long documents into windows.",
                stacklevel=2,
            )


@keras.saving.register_keras_serializable(package="bert_keras")
class ConvolutionBlock(EncoderBlock):
    """An `EncoderBlock` whose output is combined with a convolution of its input.

    Args:
        *args: those of `EncoderBlock`.
        convolution: layer called as `TokenConvolution` is.
        **kwargs: those of `EncoderBlock`.
    """

    arguments = (*EncoderBlock.arguments, "convolution")

    def __init__(self, *args, convolution, **kwargs):
        super().__init__(*args, **kwargs)
        self.convolution = convolution

    def call(
        self,
        hidden_states: Tensor,
        attention_mask: Tensor | None = None,
        return_attentions: bool = False,
        training: bool | None = None,
        **shared: Tensor,
    ) -> tuple[Tensor, Tensor | None]:
        options = {"return_attentions": return_attentions, "training": training, **shared}
        output, attentions = super().call(hidden_states, attention_mask, **options)
        combined = self.convolution(hidden_states, output, attention_mask, training=training)
        return combined, attentions


@keras.saving.register_keras_serializable(package="bert_keras")
class TokenConvolution(BertLayer):
    """Adds a convolution of a block's input to the block's output.

    `LayerNorm(output_i + activation(Dropout(b + sum over o of W_o x_(i + o))))`, where `o` goes
    from `-(size // 2)` to `size // 2` and padding counts as 0.

    Args:
        hidden_dim: int, width of input and output.
        convolution_size: odd int, number of tokens that are combined.
        convolution_activation: name or callable, see
            `bert_keras.layers.activations.get_activation`.
        dropout: float.
        layer_norm_epsilon: float, added to the variance.
        initializer_range: float, standard deviation of the initial kernel.
        **kwargs: `name`, `dtype`, `trainable`, see `keras.layers.Layer`.

    Call arguments:
        hidden_states, output: float, `(rows, seq_len, hidden_dim)`, a block's input and output.
        is_token: bool, `(rows, 1, 1, seq_len)`, `False` for padding, or `None` for all tokens.
        training: bool, whether dropout is active.

    Returns:
        float, `(rows, seq_len, hidden_dim)`.

    Reference:
        `ConvLayer` in microsoft/DeBERTa, `DeBERTa/deberta/bert.py`.
    """

    def __init__(
        self,
        hidden_dim: int,
        convolution_size: int = 3,
        convolution_activation: Activation = "tanh",
        dropout: float = 0.1,
        layer_norm_epsilon: float = 1e-7,
        initializer_range: float = 0.02,
        **kwargs: Unpack[LayerOptions],
    ) -> None:
        super().__init__(**kwargs)
        self.kernel_shape = (convolution_size, hidden_dim, hidden_dim)
        self.activation = get_activation(convolution_activation)
        self.dropout = self.make_dropout(dropout)
        self.norm = self.make_norm(hidden_dim, layer_norm_epsilon, "norm")

    def build(self, input_shape=None):
        initializer = TruncatedNormal(stddev=self.initializer_range)
        self.kernel = self.add_weight(self.kernel_shape, initializer, name="kernel")
        self.bias = self.add_weight(self.kernel_shape[-1:], "zeros", name="bias")
        super().build()

    def call(
        self,
        hidden_states: Tensor,
        output: Tensor,
        is_token: Tensor | None = None,
        training: bool | None = None,
    ) -> Tensor:
        size, hidden_dim = self.kernel_shape[:2]
        if is_token is not None:
            is_token = ops.cast(is_token, self.compute_dtype)
            hidden_states = hidden_states * ops.transpose(is_token[:, 0], (0, 2, 1))
        vectors = _around(hidden_states, size)
        kernel = ops.reshape(self.kernel, (size * hidden_dim, hidden_dim))
        combined = dense(ops.concatenate(vectors, axis=-1), kernel, self.bias)
        return self.norm(output + self.activation(self.dropout(combined, training=training)))


def _around(x, size):
    """Returns `x` `(rows, seq_len, width)` moved by each of `size` places, with zeros beyond."""
    length, padding = ops.shape(x)[1], size // 2
    padded = ops.pad(x, [[0, 0], [padding, padding], [0, 0]])
    return [padded[:, start : start + length] for start in range(size)]
