"""From one vector per token to one vector per sequence."""

from typing import Unpack

import keras
from keras import ops

from bert_keras.checks import check_choice
from bert_keras.layers.bert_layer import BertLayer
from bert_keras.types import LayerOptions, Outputs, Pooling, Tensor


@keras.saving.register_keras_serializable(package="bert_keras")
class Pooler(BertLayer):
    """Turns the first token's vector, `[CLS]`, into one for the whole sequence.

    `output = tanh(x_0 W + b)`. Pre-training by next sentence prediction trains it. Checkpoints
    without that objective leave it at its initial values.

    Args:
        hidden_dim: int, width of input and output.
        initializer_range: float, standard deviation of the initial kernel.
        **kwargs: `name`, `dtype`, `trainable`, see `keras.layers.Layer`.

    Call arguments:
        hidden_states: float, `(batch, seq_len, hidden_dim)`.

    Returns:
        float, `(batch, hidden_dim)`.

    Reference:
        [Devlin et al., 2019](https://arxiv.org/abs/1810.04805), section 3.1; `pooler` in
        google-research/bert, `modeling.py`.
    """

    def __init__(
        self, hidden_dim: int, initializer_range: float = 0.02, **kwargs: Unpack[LayerOptions]
    ) -> None:
        super().__init__(**kwargs)
        self.dense = self.make_dense(hidden_dim, hidden_dim, activation="tanh")
        self.output_shape = (None, hidden_dim)

    def call(self, hidden_states: Tensor) -> Tensor:
        return self.dense(hidden_states[:, 0])


POOLINGS = ("pooler", "cls", "mean", "max")
# Those that need the first token's vector only.
FIRST_TOKEN_POOLINGS = ("pooler", "cls")


def pool(outputs: Outputs, padding_mask: Tensor | None, pooling: Pooling) -> Tensor:
    """Reduces a backbone's outputs to one vector per sequence, without padding.

    Args:
        outputs: dict of a backbone: `sequence_output` `(batch, seq_len, hidden_dim)`,
            `pooled_output` `(batch, hidden_dim)`.
        padding_mask: `(batch, seq_len)`, 1 or `True` for real tokens, or `None` for all.
        pooling: one of `POOLINGS`: `"pooler"` for `pooled_output`, `"cls"` for the first token's
            vector, `"mean"` and `"max"` over the real tokens.

    Returns:
        float, `(batch, hidden_dim)`.

    Raises:
        ValueError: `pooling` is unknown, or needs a pooler that the backbone does not have.
    """
    check_choice("pooling", pooling, POOLINGS)
    if pooling == "pooler":
        if "pooled_output" not in outputs:
            raise ValueError(
                "pooling='pooler' needs a backbone with a pooler. Use 'cls', 'mean' or 'max'."
            )
        return outputs["pooled_output"]
    x = outputs["sequence_output"]
    if pooling == "cls":
        return x[:, 0]
    if pooling == "max":
        if padding_mask is not None:
            is_real = ops.expand_dims(ops.cast(padding_mask, "bool"), -1)
            x = ops.where(is_real, x, ops.cast(-3e4, x.dtype))
        return ops.max(x, axis=1)
    # A sum of hundreds of tokens would lose digits in bfloat16 and overflow in float16.
    wide = ops.cast(x, "float32")
    if padding_mask is None:
        return ops.cast(ops.mean(wide, axis=1), x.dtype)
    weights = ops.expand_dims(ops.cast(padding_mask, "float32"), -1)
    mean = ops.sum(wide * weights, axis=1) / ops.maximum(ops.sum(weights, axis=1), 1)
    return ops.cast(mean, x.dtype)
