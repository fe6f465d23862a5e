"""The head that predicts the tokens of a span from its borders."""

from typing import Unpack

import keras
from keras import ops

from bert_keras.heads.masked_tokens import MaskedLMHead, gather_positions
from bert_keras.types import Activation, LayerOptions, Outputs, Tensor


@keras.saving.register_keras_serializable(package="bert_keras")
class SpanBoundaryHead(MaskedLMHead):
    """One logit for each token of the vocabulary, at the masked positions, from span borders only.

    A span is a run of masked positions. For a token at position `i` of a span from `s` to `e`, the
    head sees only the two vectors next to the span and the token's place in it:

    ```
    h = [H[s-1]; H[e+1]; P[i-s]]
    y = LayerNorm(gelu(LayerNorm(gelu(h W1 + b1)) W2 + b2))
    logits = y E^T + c
    ```

    `E` is the backbone's own token table, an argument of the call, and `c` has a bias per token.
    Differences from SpanBERT's code: tokens beyond the last place of `P` get the vector of that
    place, while the code leaves them out. And all rows begin and end with special tokens, so that
    every span has both borders.

    Args:
        vocabulary_size: int, rows of the token table.
        hidden_dim: int, width of the backbone.
        activation: name or callable, see `bert_keras.layers.activations.get_activation`.
        layer_norm_epsilon: float, added to the variance.
        initializer_range: float, standard deviation of the initial kernels and of `P`.
        embedding_dim: int, width of the token table; `None` for `hidden_dim`.
        num_places: int, rows of `P`.
        place_dim: int, width of `P`.
        **kwargs: `name`, `dtype`, `trainable`, see `keras.layers.Layer`.

    Call arguments:
        outputs: dict of a backbone; only `sequence_output` is read.
        token_embedding: the backbone's `keras.layers.ReversibleEmbedding`.
        mask_positions: int, `(batch, num_predictions)`, increasing, then 0.

    Returns:
        float32 `(batch, num_predictions, vocabulary_size)`.

    Reference:
        [Joshi et al., 2020](https://arxiv.org/abs/1907.10529), section 3.2; `SpanBERTHeads` in
        facebookresearch/SpanBERT, `pretraining/fairseq/models/pair_bert.py`.
    """

    def __init__(
        self,
        vocabulary_size: int,
        hidden_dim: int,
        activation: Activation = "gelu",
        layer_norm_epsilon: float = 1e-12,
        initializer_range: float = 0.02,
        embedding_dim: int | None = None,
        num_places: int = 15,
        place_dim: int = 200,
        **kwargs: Unpack[LayerOptions],
    ) -> None:
        settings = (activation, layer_norm_epsilon, initializer_range, embedding_dim)
        super().__init__(vocabulary_size, hidden_dim, *settings, **kwargs)
        self.place_embedding = self.make_table(num_places, place_dim, "place_embedding")
        width = 2 * hidden_dim + place_dim
        self.hidden = self.make_dense(width, hidden_dim, "hidden", activation)
        self.hidden_norm = self.make_norm(hidden_dim, layer_norm_epsilon, "hidden_norm")

    def call(
        self,
        outputs: Outputs,
        token_embedding: keras.layers.ReversibleEmbedding,
        mask_positions: Tensor,
    ) -> Tensor:
        positions = ops.cast(mask_positions, "int32")
        first, last = spans_of(positions)
        hidden_states = outputs["sequence_output"]
        end = ops.shape(hidden_states)[1] - 1
        before = gather_positions(hidden_states, ops.maximum(first - 1, 0))
        after = gather_positions(hidden_states, ops.where(last < end, last + 1, last))
        places = self.place_embedding(ops.minimum(positions - first, self.num_places - 1))
        vectors = self.through_hidden(ops.concatenate([before, after, places], axis=-1))
        return self.decode(vectors, token_embedding)


def spans_of(positions: Tensor) -> tuple[Tensor, Tensor]:
    """Returns the first and the last position of the run that each position is in.

    Adjacent spans are one run.

    Args:
        positions: int32 `(batch, num_positions)`, increasing, then 0.

    Returns:
        Two int32 of the same shape.
    """
    before = ops.pad(positions, [[0, 0], [1, 0]])[:, :-1]
    runs = ops.cumsum(ops.cast(positions != before + 1, "int32"), axis=1)
    is_same = ops.expand_dims(runs, 2) == ops.expand_dims(runs, 1)
    candidates = ops.expand_dims(positions, 1)
    # Positions are at most the last one, and at least 0.
    last = ops.expand_dims(ops.max(positions, axis=1), (1, 2))
    first = ops.min(ops.where(is_same, candidates, last), axis=2)
    return first, ops.max(ops.where(is_same, candidates, 0), axis=2)
