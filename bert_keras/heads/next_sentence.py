"""The head that predicts whether the second text follows the first."""

from typing import Unpack

import keras
from keras import ops

from bert_keras.heads.head import Head
from bert_keras.types import LayerOptions, Outputs, Tensor


@keras.saving.register_keras_serializable(package="bert_keras")
class NextSentenceHead(Head):
    """Two logits on the pooled output: 0 for "is next", 1 for "is random".

    `logits = p W + b`, section 3.1, task 2 of the paper. As in Google's code, there is no dropout
    before it. ALBERT has the same head for the order of two segments: 0 for "in order", 1 for
    "swapped".

    Args:
        hidden_dim: int, width of the backbone.
        initializer_range: float, standard deviation of the initial kernel.
        **kwargs: `name`, `dtype`, `trainable`, see `keras.layers.Layer`.

    Call arguments:
        outputs: dict of a backbone; only `pooled_output` is read.

    Returns:
        float32 `(batch, 2)`.

    Reference:
        [Devlin et al., 2019](https://arxiv.org/abs/1810.04805), section 3.1;
        `get_next_sentence_output` in google-research/bert, `run_pretraining.py`.
    """

    def __init__(
        self, hidden_dim: int, initializer_range: float = 0.02, **kwargs: Unpack[LayerOptions]
    ) -> None:
        super().__init__(**kwargs)
        self.dense, self.output_shape = self.make_dense(hidden_dim, 2), (None, 2)

    def call(self, outputs: Outputs) -> Tensor:
        return ops.cast(self.dense(outputs["pooled_output"]), "float32")
