"""The head that compares spans of words with labels."""

from typing import Literal, Unpack

import keras
from keras import ops
from keras.initializers import Constant

from bert_keras.checks import check_choice
from bert_keras.heads.bidirectional_lstm import BidirectionalLSTM
from bert_keras.heads.head import Head
from bert_keras.heads.masked_tokens import gather_positions
from bert_keras.layers.initializer import RandomNormal
from bert_keras.types import LayerOptions, Outputs, Tensor

SPAN_MODES = ("markerV0", "marker")


@keras.saving.register_keras_serializable(package="bert_keras")
class ZeroShotSpanHead(Head):
    """One logit for each span of words and each label that stands in the text's own row.

    With the vectors `H` of a backbone, `X` at the first tokens of words and `P` at the markers
    before labels, both projected from `hidden_dim` to `dim` where these differ:

    ```
    X = LSTM(X)
    span(s, e) = ReLU(ReLU([MLP_start(X_s); MLP_end(X_e)]) W + b) V + c
    logits[s, k, l] = span(s, s + k) . MLP_label(P_l)
    ```

    where each `MLP` has a hidden layer with ReLU, four times as wide. In the mode `"marker"` a span
    is `ReLU([MLP_start(X_s); MLP_end(X_e)]) W + b`, and those two have hidden layers twice as wide.

    Two products are computed in another order than in the reference code, which saves most of the
    head's time: `W` is applied to words before they are combined into spans, and `V` to labels
    instead of spans.

    Args:
        hidden_dim: int, width of the backbone.
        dim: int, even, width of the head; `None` for `hidden_dim`.
        max_width: int, the most words in a span.
        span_mode: `"markerV0"` or `"marker"`.
        lstm: bool, whether there is an LSTM over words.
        dropout: float, rate after each ReLU of a hidden layer.
        **kwargs: `name`, `dtype`, `trainable`, see `keras.layers.Layer`.

    Call arguments:
        outputs: dict of a backbone; only `sequence_output` is read.
        word_positions: int, `(batch, num_words)`, the first token of each word; then 0.
        label_positions: int, `(batch, num_labels)`, the marker before each label; then 0.
        training: bool, whether dropout is active.

    Returns:
        float32, `(batch, num_words, max_width, num_labels)`. A span that ends after the last word
        has the logits of the first word. Those of labels that are padding mean nothing.

    Reference:
        [Zaratiana et al., 2023](https://arxiv.org/abs/2311.08526), section 2; `SpanMarkerV0` in
        urchade/GLiNER.
    """

    def __init__(
        self,
        hidden_dim: int,
        dim: int | None = None,
        max_width: int = 12,
        span_mode: Literal["markerV0", "marker"] = "markerV0",
        lstm: bool = True,
        dropout: float = 0.1,
        **kwargs: Unpack[LayerOptions],
    ) -> None:
        super().__init__(**kwargs)
        dim = self.dim = hidden_dim if dim is None else dim
        check_choice("span_mode", span_mode, SPAN_MODES)
        wide, self.is_deep = 4 * dim, span_mode == "markerV0"
        middle, units = (wide, wide) if self.is_deep else (2 * dim, dim)
        # Few spans have a label: the two biases that meet in the logits make them -4.
        self.bias = 2 * dim**-0.5
        self.projection = self._dense("projection", hidden_dim, dim) if dim != hidden_dim else None
        options = {"width": dim, "name": "lstm"}
        self.words = self.make(BidirectionalLSTM, dim // 2, **options) if lstm else None
        self.start_hidden = self._dense("start_hidden", dim, middle, activation="relu")
        self.start = self._dense("start", middle, dim, activation="relu")
        options = {} if self.is_deep else {"bias_initializer": Constant(-self.bias)}
        self.start_to_span = self._dense("start_to_span", dim, units, fan_in=2 * dim, **options)
        self.end_hidden = self._dense("end_hidden", dim, middle, activation="relu")
        self.end = self._dense("end", middle, dim, activation="relu")
        self.end_to_span = self._dense("end_to_span", dim, units, fan_in=2 * dim, use_bias=False)
        self.label_hidden = self._dense("label_hidden", dim, wide, activation="relu")
        self.label = self._dense("label", wide, dim, bias_initializer=Constant(self.bias))
        options = {"fan_in": wide, "use_bias": False}
        self.label_to_span = (
            self._dense("label_to_span", dim, wide, **options) if self.is_deep else None
        )
        self.drop = self.make_dropout(dropout)

    def _dense(self, name, width, units, fan_in=None, **options):
        options["kernel_initializer"] = RandomNormal(stddev=(3 * (fan_in or width)) ** -0.5)
        return self.make_dense(width, units, name, **options)  # As in PyTorch.

    def build(self, input_shape=None):
        super().build()
        if self.is_deep:
            self.span_bias = self.add_weight((self.dim,), Constant(-self.bias), name="span_bias")

    def call(
        self,
        outputs: Outputs,
        word_positions: Tensor,
        label_positions: Tensor,
        training: bool | None = None,
    ) -> Tensor:
        hidden_states = outputs["sequence_output"]
        words, labels = (
            gather_positions(hidden_states, positions)
            for positions in (word_positions, label_positions)
        )
        if self.projection is not None:
            words, labels = self.projection(words), self.projection(labels)
        is_word = ops.cast(word_positions, "int32") > 0
        words = words * ops.cast(ops.expand_dims(is_word, 2), words.dtype)
        num_words = ops.sum(ops.cast(is_word, "int32"), axis=1)
        if self.words is not None:
            words = self.words(words, num_words)

        def drop(x):
            return self.drop(x, training=training)

        starts = self.start_to_span(self.start(drop(self.start_hidden(words))))
        ends = self.end_to_span(self.end(drop(self.end_hidden(words))))
        labels = self.label(drop(self.label_hidden(labels)))
        by_label = self.label_to_span(labels) if self.is_deep else labels
        by_label = ops.transpose(by_label, (0, 2, 1))
        count = ops.shape(words)[1]
        ends = ops.pad(ends, [[0, 0], [0, self.max_width - 1], [0, 0]])
        logits = []
        for width in range(self.max_width):
            spans = starts + ends[:, width : width + count]
            if self.is_deep:
                spans = drop(ops.relu(spans))
            logits.append(ops.cast(ops.matmul(spans, by_label), "float32"))
        logits = ops.stack(logits, axis=2)
        if self.is_deep:
            bias = ops.sum(labels * ops.cast(self.span_bias, labels.dtype), axis=-1)
            logits = logits + ops.cast(ops.expand_dims(bias, (1, 2)), "float32")
        first = ops.arange(count, dtype="int32")
        last = ops.expand_dims(first, 1) + ops.arange(self.max_width, dtype="int32")
        fits = last < ops.expand_dims(num_words, (1, 2))
        return ops.where(ops.expand_dims(fits, 3), logits, logits[:, :1, :1])
