"""The head that detects replaced tokens."""

from typing import Unpack

import keras
from keras import ops

from bert_keras.heads.head import Head
from bert_keras.types import Activation, LayerOptions, Outputs, Tensor


@keras.saving.register_keras_serializable(package="bert_keras")
class ReplacedTokenHead(Head):
    """One logit per token: above 0 if the token was probably replaced.

    `logits = activation(H W_h + b_h) w + b`. Equation 2 of the paper has only the linear layer, on
    the encoder's output. Its code, which checkpoints follow, has the hidden layer too.

    With `from_first`, as in DeBERTa-v3, `H` is replaced by `LayerNorm(H + first)`, where `first` is
    the vector of the first token.

    Args:
        hidden_dim: int, width of the backbone.
        activation: name or callable, see `bert_keras.layers.activations.get_activation`.
        initializer_range: float, standard deviation of the initial kernels.
        from_first: bool, whether each token is compared with the first one.
        layer_norm_epsilon: float, added to the variance of that norm.
        **kwargs: `name`, `dtype`, `trainable`, see `keras.layers.Layer`.

    Call arguments:
        outputs: dict of a backbone; only `sequence_output` is read.

    Returns:
        float32 `(batch, seq_len)`.

    Reference:
        [Clark et al., 2020](https://arxiv.org/abs/2003.10555), section 2;
        `_get_discriminator_output` in google-research/electra, `run_pretraining.py`;
        `LMMaskPredictionHead` in microsoft/DeBERTa, `apps/models/replaced_token_detection_model.py`
        for `from_first`.
    """

    def __init__(
        self,
        hidden_dim: int,
        activation: Activation = "gelu",
        initializer_range: float = 0.02,
        from_first: bool = False,
        layer_norm_epsilon: float = 1e-12,
        **kwargs: Unpack[LayerOptions],
    ) -> None:
        super().__init__(**kwargs)
        self.hidden = self.make_dense(hidden_dim, hidden_dim, "hidden", activation)
        self.dense = self.make_dense(hidden_dim, 1)
        self.layer_norm = self.make_norm(hidden_dim, layer_norm_epsilon) if from_first else None

    def call(self, outputs: Outputs) -> Tensor:
        vectors = outputs["sequence_output"]
        if self.layer_norm is not None:
            vectors = self.layer_norm(vectors + vectors[:, :1])
        logits = self.dense(self.through_hidden(vectors))
        return ops.cast(ops.squeeze(logits, -1), "float32")
