"""BERT: Pre-training of Deep Bidirectional Transformers for Language Understanding."""

import keras
from keras import ops

from bert_keras.inputs import PADDING_MASK, SEGMENT_IDS, TOKEN_IDS
from bert_keras.layers.embeddings import BertEmbeddings
from bert_keras.layers.encoder import Encoder
from bert_keras.layers.pooler import Pooler
from bert_keras.models.backbone import (
    Backbone,
    check_layer_options,
    check_rates,
    check_sizes,
    dtype_config,
)
from bert_keras.models.quantized import quantized_config


@keras.saving.register_keras_serializable(package="bert_keras")
class BertBackbone(Backbone):
    """BERT's encoder: ids to one vector a token and one vector a sequence.

    Embeddings, `num_layers` blocks of bidirectional self-attention and feed-forward, and a pooler
    on the first token. Differences from the paper: none; where checkpoints differ from it and from
    one another (activation, epsilon, number of segments and positions), an argument says so.

    Args:
        vocabulary_size: int, number of token ids.
        num_layers: int, number of encoder blocks. BERT-base has 12, BERT-large 24.
        num_heads: int, attention heads a block; must divide `hidden_dim`.
        hidden_dim: int, width of the hidden states.
        intermediate_dim: int, width inside the feed-forward networks, 4 times `hidden_dim` in BERT.
        dropout: float, rate after the embeddings and on each residual branch.
        attention_dropout: float, rate on attention probabilities; `None` takes `dropout`.
        activation: `"gelu"` (exact, as Hugging Face's "gelu"), `"gelu_tanh"` (Google's TF1 code),
            `"relu"`, or the name of any Keras activation.
        layer_norm_epsilon: float, added to the variance in every norm.
        max_sequence_length: int, number of learned positions.
        num_segments: int, number of segment ids; 0 leaves segments out.
        initializer_range: float, standard deviation of the initial weights.
        causal: bool, whether a token sees only itself and the tokens before it, as in the
            left-to-right model of the paper's table 5. The first token then sees nothing else: pool
            by `"mean"`.
        remat: bool, whether training keeps the input of each encoder block only and computes the
            rest of the block again in the backward pass: less memory for more time, and the same
            numbers. A `.keras` file keeps it, a preset does not.
        **kwargs: `name`, `dtype` (a policy or its name), `trainable`, see `keras.Model`.

    Call arguments:
        inputs: dict of ints: `token_ids` `(batch, seq_len)`, and optional `segment_ids` and
            `padding_mask` of the same shape, see `bert_keras.inputs`.
        return_hidden_states: bool.
        return_attentions: bool; the explicit attention formula then replaces the fused kernel.
        token_vectors: float `(batch, seq_len, hidden_dim)` in place of the token table's rows, or
            `None`; see `BertEmbeddings`.
        training: bool, whether dropout is active.

    Returns:
        A dict: `sequence_output` float `(batch, seq_len, hidden_dim)`; `pooled_output` float
        `(batch, hidden_dim)`; on request `hidden_states`, a tuple of `num_layers + 1` floats
        `(batch, seq_len, hidden_dim)`, embeddings first, and `attentions`, a tuple of `num_layers`
        floats `(batch, num_heads, seq_len, seq_len)`.

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
        vocabulary_size,
        num_layers,
        num_heads,
        hidden_dim,
        intermediate_dim,
        dropout=0.1,
        attention_dropout=None,
        activation="gelu",
        layer_norm_epsilon=1e-12,
        max_sequence_length=512,
        num_segments=2,
        initializer_range=0.02,
        causal=False,
        remat=False,
        **kwargs,
    ):
        check_sizes(
            vocabulary_size=vocabulary_size,
            num_layers=num_layers,
            num_heads=num_heads,
            hidden_dim=hidden_dim,
            intermediate_dim=intermediate_dim,
            max_sequence_length=max_sequence_length,
            num_segments=num_segments,
        )
        attention_dropout = dropout if attention_dropout is None else attention_dropout
        check_rates(dropout=dropout, attention_dropout=attention_dropout)
        check_layer_options(activation, layer_norm_epsilon, initializer_range)
        if not isinstance(causal, bool):
            raise ValueError(f"`causal` must be True or False. Received: {causal!r}.")
        super().__init__(**kwargs)
        self.vocabulary_size = int(vocabulary_size)
        self.num_layers = int(num_layers)
        self.num_heads = int(num_heads)
        self.hidden_dim = int(hidden_dim)
        self.intermediate_dim = int(intermediate_dim)
        self.dropout = dropout
        self.attention_dropout = attention_dropout
        self.activation = activation
        self.layer_norm_epsilon = layer_norm_epsilon
        self.max_sequence_length = int(max_sequence_length)
        self.num_segments = int(num_segments)
        self.initializer_range = initializer_range
        self.causal = causal
        self.remat = bool(remat)
        self.embeddings = BertEmbeddings(
            vocabulary_size,
            hidden_dim,
            max_sequence_length=max_sequence_length,
            num_segments=num_segments,
            dropout=dropout,
            layer_norm_epsilon=layer_norm_epsilon,
            initializer_range=initializer_range,
            dtype=self.dtype_policy,
            name="embeddings",
        )
        self.encoder = Encoder(
            num_layers,
            remat=self.remat,
            num_heads=num_heads,
            hidden_dim=hidden_dim,
            intermediate_dim=intermediate_dim,
            dropout=dropout,
            attention_dropout=attention_dropout,
            activation=activation,
            layer_norm_epsilon=layer_norm_epsilon,
            initializer_range=initializer_range,
            dtype=self.dtype_policy,
            name="encoder",
        )
        self.pooler = Pooler(
            hidden_dim,
            initializer_range=initializer_range,
            dtype=self.dtype_policy,
            name="pooler",
        )
        self.build()

    def build(self, input_shape=None):
        for layer in (self.embeddings, self.encoder, self.pooler):
            if not layer.built:
                layer.build()

    def call(
        self,
        inputs,
        return_hidden_states=False,
        return_attentions=False,
        token_vectors=None,
        training=None,
    ):
        embedded = self.embeddings(
            inputs[TOKEN_IDS],
            segment_ids=inputs.get(SEGMENT_IDS),
            token_vectors=token_vectors,
            training=training,
        )
        hidden_states, attentions = self.encoder(
            embedded,
            attention_mask=self._attention_mask(inputs),
            return_attentions=return_attentions,
            training=training,
        )
        outputs = {
            "sequence_output": hidden_states[-1],
            "pooled_output": self.pooler(hidden_states[-1]),
        }
        if return_hidden_states:
            outputs["hidden_states"] = hidden_states
        if return_attentions:
            outputs["attentions"] = attentions
        return outputs

    def _attention_mask(self, inputs):
        """Returns which keys each query sees: bool, broadcastable to all heads; None for all."""
        mask = None
        if inputs.get(PADDING_MASK) is not None:
            # (batch, 1, 1, seq_len): every head and every query sees the same keys.
            mask = ops.cast(inputs[PADDING_MASK], "bool")[:, None, None, :]
        if self.causal:
            positions = ops.arange(ops.shape(inputs[TOKEN_IDS])[1])
            before = (positions[:, None] >= positions[None, :])[None, None]
            mask = before if mask is None else ops.logical_and(mask, before)
        return mask

    def get_config(self):
        return {
            "name": self.name,
            "trainable": self.trainable,
            "dtype": dtype_config(self),
            "vocabulary_size": self.vocabulary_size,
            "num_layers": self.num_layers,
            "num_heads": self.num_heads,
            "hidden_dim": self.hidden_dim,
            "intermediate_dim": self.intermediate_dim,
            "dropout": self.dropout,
            "attention_dropout": self.attention_dropout,
            "activation": self.activation,
            "layer_norm_epsilon": self.layer_norm_epsilon,
            "max_sequence_length": self.max_sequence_length,
            "num_segments": self.num_segments,
            "initializer_range": self.initializer_range,
            "causal": self.causal,
            "remat": self.remat,
            **quantized_config(self),
        }
