"""The head that turns each token of a text into a short vector of its own."""

from typing import Unpack

from keras import ops, saving

from bert_keras.heads.head import Head
from bert_keras.training.losses import l2_normalize
from bert_keras.types import LayerOptions, Outputs, Tensor


@saving.register_keras_serializable(package="bert_keras")
class TokenVectorsHead(Head):
    """A dense layer without bias on each token's vector, scaled to length 1.

    Args:
        dim: int, width of the vectors.
        hidden_dim: int, width of the backbone.
        initializer_range: float, standard deviation of the initial kernel.
        **kwargs: `name`, `dtype`, `trainable`, see `keras.layers.Layer`.

    Call arguments:
        outputs: dict of a backbone; only `sequence_output` is read.
        scoring_mask: `(batch, seq_len)`, 1 for the tokens that count; the others' vectors become
            zeros.

    Returns:
        float32 `(batch, seq_len, dim)`.

    Reference:
        [Khattab and Zaharia, 2020](https://arxiv.org/abs/2004.12832), section 3.2.
    """

    def __init__(
        self,
        dim: int,
        hidden_dim: int,
        initializer_range: float = 0.02,
        **kwargs: Unpack[LayerOptions],
    ) -> None:
        super().__init__(**kwargs)
        self.dense = self.make_dense(hidden_dim, dim, use_bias=False)

    def call(self, outputs: Outputs, scoring_mask: Tensor) -> Tensor:
        # Small differences between products need float32, so nothing is rounded after the layer.
        vectors = l2_normalize(ops.cast(self.dense(outputs["sequence_output"]), "float32"))
        return vectors * ops.cast(scoring_mask, "float32")[..., None]
