"""The head that turns a text into one weight for each token of the vocabulary."""

from typing import Any, Unpack

import keras
from keras import ops

from bert_keras.engine.remat import with_gradient
from bert_keras.heads.masked_tokens import MaskedLMHead
from bert_keras.types import Activation, LayerOptions, Outputs, Tensor

# The logit of a token that is padding, which the activation turns into 0.
_PADDING_LOGIT = -1e9


@keras.saving.register_keras_serializable(package="bert_keras")
class SpladeHead(MaskedLMHead):
    """The largest logit that the tokens of a text give to each token of the vocabulary.

    `weight[v] = log(1 + relu(max over tokens t of logit[t, v]))`, with the logits of
    `MaskedLMHead`. The logarithm is monotonic, so that it needs to be computed only after the
    maximum. Special tokens count, padding does not.

    The logits `(batch, seq_len, vocabulary_size)` would take gigabytes, so that rows are computed
    one by one: one row's logits are in memory, in the backward pass too, which computes them again.
    An exported program with any number of rows computes them together.

    Args:
        vocabulary_size, hidden_dim, activation: see `MaskedLMHead`.
        layer_norm_epsilon, initializer_range: see `MaskedLMHead`.
        embedding_dim, use_bias: see `MaskedLMHead`.
        log_twice: bool, whether weights are `log(1 + weight)` once more, as OpenSearch's models
            have them.
        **kwargs: `name`, `dtype`, `trainable`, see `keras.layers.Layer`.

    Call arguments:
        outputs: dict of a backbone; only `sequence_output` is read.
        token_embedding: the backbone's `keras.layers.ReversibleEmbedding`.
        padding_mask: `(batch, seq_len)`, or `None`.
        training: bool, whether the gradient of the weights is needed.

    Returns:
        float32 `(batch, vocabulary_size)`, from 0.

    Reference:
        [Formal et al., 2021](https://arxiv.org/abs/2109.10086), equation 6.
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
        log_twice: bool = False,
        **kwargs: Unpack[LayerOptions],
    ) -> None:
        settings = (activation, layer_norm_epsilon, initializer_range, embedding_dim, use_bias)
        super().__init__(vocabulary_size, hidden_dim, *settings, **kwargs)
        self.log_twice = log_twice

    def call(
        self,
        outputs: Outputs,
        token_embedding: keras.layers.ReversibleEmbedding,
        padding_mask: Tensor | None = None,
        training: bool | None = None,
    ) -> Tensor:
        hidden_states = self.layer_norm(self.dense(outputs["sequence_output"]))
        if padding_mask is None:
            padding_mask = ops.ones_like(hidden_states[..., 0])
        padding_mask = ops.cast(padding_mask, "bool")
        logits = _largest_logits(hidden_states, token_embedding, padding_mask, training)
        # The bias is the same for all tokens of the text.
        logits = ops.cast(logits, "float32") + ops.cast(self.bias, "float32")
        weights = ops.log1p(ops.relu(logits))
        return ops.log1p(weights) if self.log_twice else weights


def _largest_logits(
    hidden_states: Tensor, token_embedding: Any, mask: Tensor, training: bool | None
) -> Tensor:
    """Returns the largest logits of each row, `(batch, vocabulary_size)`, row by row."""
    backend, num_rows = keras.backend.backend(), ops.shape(hidden_states)[0]

    def largest(states, is_token):
        logits = token_embedding(states, reverse=True)
        return ops.max(ops.where(is_token[..., None], logits, _PADDING_LOGIT), axis=-2)

    if backend != "tensorflow" and not isinstance(num_rows, int):  # An export for any number.
        return largest(hidden_states, mask)
    if backend == "torch" or not training:
        # PyTorch keeps the places of the largest logits for the gradient, and not the logits.
        return ops.map(lambda row: largest(*row), (hidden_states, mask))
    table = ops.cast(token_embedding.embeddings, hidden_states.dtype)
    with_places = with_gradient(_largest, _gradient_of_largest)
    return ops.map(lambda row: with_places(row[0], table, row[1]), (hidden_states, mask))


def _logits(states, table, is_token):
    logits = ops.matmul(states, ops.transpose(table))
    return ops.where(is_token[:, None], logits, ops.cast(_PADDING_LOGIT, logits.dtype))


def _largest(states, table, is_token):
    """Returns the largest logits of one row, `(vocabulary_size,)`.

    Args:
        states: float `(seq_len, embedding_dim)`.
        table: float `(vocabulary_size, embedding_dim)`.
        is_token: bool `(seq_len,)`.
    """
    return ops.max(_logits(states, table, is_token), axis=0)


def _gradient_of_largest(upstream, states, table, is_token):
    """Returns the gradients of `_largest`: each goes through the place of the largest logit."""
    places = ops.argmax(_logits(states, table, is_token), axis=0)
    states_gradient = ops.segment_sum(upstream[:, None] * table, places, ops.shape(states)[0])
    return states_gradient, upstream[:, None] * ops.take(states, places, axis=0), None
