"""The head that turns a text into one vector."""

from typing import Unpack

import keras
from keras import ops

from bert_keras.checks import check_choice, check_int
from bert_keras.heads.head import Head
from bert_keras.layers.activations import get_activation
from bert_keras.layers.pooler import POOLINGS, pool
from bert_keras.training.losses import l2_normalize
from bert_keras.types import DenseOptions, LayerOptions, Outputs, Pooling, Tensor


@keras.saving.register_keras_serializable(package="bert_keras")
class EmbeddingHead(Head):
    """Pools the tokens' vectors into one, projects it, and scales the result to length 1.

    `vector = activation(pool(outputs) W + b) / length`. Without a projection the head has no
    weights, and only the backbone learns.

    Args:
        pooling: `"mean"`, `"cls"`, `"max"` or `"pooler"`, see `bert_keras.layers.pooler.pool`.
        normalize: bool, whether vectors have length 1, so that dot products are cosines.
        projection: dict with `units`, and maybe `activation`, `"tanh"` by default, and `use_bias`,
            for a dense layer after the pooling as in LaBSE; `None` for none.
        **kwargs: `name`, `dtype`, `trainable`, see `keras.layers.Layer`.

    Call arguments:
        outputs: dict of a backbone.
        padding_mask: `(batch, seq_len)`, or `None`.

    Returns:
        float32 `(batch, hidden_dim)`, with a projection `(batch, units)`.

    Raises:
        ValueError: `pooling`, or an option of `projection`, is unknown.

    Reference:
        [Reimers and Gurevych, 2019](https://arxiv.org/abs/1908.10084), section 3.
    """

    def __init__(
        self,
        pooling: Pooling = "mean",
        normalize: bool = True,
        projection: DenseOptions | None = None,
        **kwargs: Unpack[LayerOptions],
    ) -> None:
        super().__init__(**kwargs)
        check_choice("pooling", pooling, POOLINGS)
        self.projection = None
        if projection is not None:
            options = {"activation": "tanh", "use_bias": True, **projection}
            for name in options:
                check_choice("projection", name, ("units", "activation", "use_bias"))
            check_int("projection['units']", options.get("units"))
            self.projection = options
            function = get_activation(options["activation"])
            # In float32 like the pooling, for the same reason.
            options = {**options, "activation": function, "dtype": "float32"}
            self.dense = keras.layers.Dense(**options, name="dense")

    def build(self, input_shape):
        if self.projection:
            self.dense.build((None, input_shape[-1]))

    def call(self, outputs: Outputs, padding_mask: Tensor | None = None) -> Tensor:
        # Small differences between cosines need float32, so nothing is rounded after pooling.
        outputs = {
            key: ops.cast(outputs[key], "float32")
            for key in ("sequence_output", "pooled_output")
            if key in outputs
        }
        vectors = pool(outputs, padding_mask, self.pooling)
        vectors = self.dense(vectors) if self.projection else vectors
        return l2_normalize(vectors) if self.normalize else vectors
