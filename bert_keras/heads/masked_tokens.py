"""The head that predicts masked tokens."""

from typing import Unpack

import keras
from keras import ops

from bert_keras.heads.head import Head
from bert_keras.types import Activation, LayerOptions, Outputs, Tensor

# Its arguments that take the value of the backbone, beside its width.
OF_VOCABULARY = ("vocabulary_size", "embedding_dim", "activation", "layer_norm_epsilon")
# Its arguments that a user may set by `head_options`.
HEAD_OPTIONS = ("activation", "layer_norm_epsilon", "use_bias")


@keras.saving.register_keras_serializable(package="bert_keras")
class MaskedLMHead(Head):
    """One logit for each token of the vocabulary, at the masked positions only.

    `logits = LayerNorm(activation(H_m W + b)) E^T + c`, where `H_m` are the vectors at the masked
    positions, `E` is the backbone's own token table, and `c` has one bias per token: section 3.1,
    task 1 of the paper. Positions are gathered first, so that the product with the table, the
    largest of the model, is computed for about 15 % of the tokens only.

    The table belongs to the backbone and is an argument of the call.

    Args:
        vocabulary_size: int, rows of the token table.
        hidden_dim: int, width of the backbone.
        activation: name or callable, see `bert_keras.layers.activations.get_activation`.
        layer_norm_epsilon: float, added to the variance.
        initializer_range: float, standard deviation of the initial kernel.
        embedding_dim: int, width of the token table; `None` for `hidden_dim`.
        use_bias: bool, whether the dense layer and the norm have biases.
        **kwargs: `name`, `dtype`, `trainable`, see `keras.layers.Layer`.

    Call arguments:
        outputs: dict of a backbone; only `sequence_output` is read.
        token_embedding: the backbone's `keras.layers.ReversibleEmbedding`.
        mask_positions: int, `(batch, num_predictions)`, where to predict, or `None` for all
            positions.

    Returns:
        float32 `(batch, num_predictions, vocabulary_size)`, or `(batch, seq_len, vocabulary_size)`
        without `mask_positions`.

    Reference:
        [Devlin et al., 2019](https://arxiv.org/abs/1810.04805), section 3.1;
        `get_masked_lm_output` in google-research/bert, `run_pretraining.py`.
    """

    def __init__(
        self,
        vocabulary_size: int,
        hidden_dim: int,
        activation: Activation = "gelu",
        layer_norm_epsilon: float = 1e-12,
        initializer_range: float = 0.02,
        embedding_dim: int | None = None,
        use_bias: bool = True,
        **kwargs: Unpack[LayerOptions],
    ) -> None:
        super().__init__(**kwargs)
        self.embedding_dim = hidden_dim if embedding_dim is None else embedding_dim
        options = {"activation": activation, "use_bias": use_bias}
        self.dense = self.make_dense(hidden_dim, self.embedding_dim, **options)
        self.layer_norm = self.make_norm(self.embedding_dim, layer_norm_epsilon, center=use_bias)

    def build(self, input_shape=None):
        super().build()
        self.bias = self.add_weight((self.vocabulary_size,), initializer="zeros", name="bias")

    def call(
        self,
        outputs: Outputs,
        token_embedding: keras.layers.ReversibleEmbedding,
        mask_positions: Tensor | None = None,
    ) -> Tensor:
        hidden_states = outputs["sequence_output"]
        if mask_positions is not None:
            hidden_states = gather_positions(hidden_states, mask_positions)
        return self.decode(hidden_states, token_embedding)

    def decode(self, vectors: Tensor, token_embedding: keras.layers.ReversibleEmbedding) -> Tensor:
        """Returns the logits of float vectors `(..., hidden_dim)`, see the class."""
        logits = token_embedding(self.layer_norm(self.dense(vectors)), reverse=True)
        return ops.cast(logits, "float32") + ops.cast(self.bias, "float32")


def gather_positions(hidden_states: Tensor, positions: Tensor) -> Tensor:
    """Returns the vectors at some positions of each row.

    Args:
        hidden_states: float, `(batch, seq_len, hidden_dim)`.
        positions: int, `(batch, num_positions)`, each from 0 to `seq_len - 1`.

    Returns:
        float, `(batch, num_positions, hidden_dim)`.
    """
    batch, seq_len = ops.shape(hidden_states)[:2]
    # Indices into the flat batch, since PyTorch exports `take_along_axis` for one size only.
    firsts = ops.expand_dims(ops.arange(batch, dtype="int32") * seq_len, 1)
    flat = ops.reshape(hidden_states, (-1, hidden_states.shape[-1]))
    return ops.take(flat, ops.cast(positions, "int32") + firsts, axis=0)
