"""Classification of documents that are too long for a backbone to read at once."""

from collections.abc import Sequence
from typing import Unpack

import numpy as np
from keras import ops
from keras.saving import register_keras_serializable

from bert_keras.answers.classes import DocumentAnswerer
from bert_keras.checks import check_choice, check_int, raise_at_first
from bert_keras.heads.sequence import SequenceHead
from bert_keras.inputs import PADDING_MASK, TOKEN_IDS
from bert_keras.layers.pooler import FIRST_TOKEN_POOLINGS, POOLINGS, pool
from bert_keras.models.backbone import Backbone
from bert_keras.models.model import flatten_texts
from bert_keras.preprocessing.text_preprocessor import TextPreprocessor
from bert_keras.tasks.text_classifier import TextClassifier
from bert_keras.tasks.validation import head_for
from bert_keras.types import Combination, Pooling, ProblemType, TaskOptions

_MOST_WINDOWS = 2**16


@register_keras_serializable(package="bert_keras")
class LongTextClassifier(TextClassifier):
    """Gives each document a class, several labels, or a score, by reading it in windows.

    The preprocessor's `max_length` is that of a window. Each window is `[CLS] part [SEP]`. The
    backbone turns each window into a vector, `combine` turns the vectors of a document into one,
    and dropout and a dense layer follow. Labels, losses and answers are those of `TextClassifier`.

    A document of more than `num_windows` windows is not read in full. The preprocessor's
    `truncation` determines which windows stay: `"head"` (and the default) the first ones, `"tail"`
    the last ones, `"head_tail"` equally many of both, see
    `bert_keras.preprocessing.windows.document_windows`.

    A batch costs as much as `batch_size * number of windows` sequences. Documents of similar length
    share a batch, and those of a single window are padded to few different lengths.

    In ready inputs `(batch, num_windows, seq_len)` a missing window is all padding, and there may
    be any number of windows.

    Args:
        backbone: a `Backbone`.
        num_classes: int, the number of classes, labels, or scores.
        preprocessor: a `TextPreprocessor`, or `None` for ready inputs only.
        num_windows: int, the most windows that are read from a text.
        stride: int, tokens between the beginnings of two windows; `None` for no overlap.
        combine: `"mean"` or `"max"` of the windows' vectors.
        dropout: float, rate before the dense layer; `None` takes the backbone's.
        problem_type: `"single_label"`, `"multi_label"` or `"regression"`, see `TextClassifier`.
        label_names: list of `num_classes` str, or `None` to use numbers.
        pooling: how a window becomes a vector: `"pooler"`, `"cls"` as in the paper, `"mean"` or
            `"max"`; `None` for the pooler, or `"cls"` if the backbone has none.
        frozen: `None`, `"embeddings"`, `"backbone"`, or an int, see `Task`.
        **kwargs: `name`, `dtype`, `trainable`, see `keras.Model`.

    Call arguments:
        inputs: dict of ints `(batch, num_windows, seq_len)`, see `bert_keras.inputs`.
        training: bool, whether dropout is active.

    Returns:
        float32 `(batch, num_classes)`, logits or scores.

    Raises:
        ValueError: an argument is out of range.

    Example:
    ```python
    classifier = bert_keras.LongTextClassifier.from_preset(
        "minilm_l6_en_uncased", num_classes=2, max_length=256, num_windows=4
    )
    classifier.fit(reviews, labels, epochs=3, batch_size=8)
    classifier.classify(reviews[0])
    ```

    Reference:
        [Sun et al., 2019](https://arxiv.org/abs/1905.05583), section 5.3.1, "Hierarchical methods".
    """

    head_config_keys = ("num_classes", "pooling", "combine")
    answerers = (DocumentAnswerer,)
    decided_arguments = {"head_options": None}  # noqa: RUF012
    num_input_axes = 3  # Texts, windows, tokens.

    def __init__(
        self,
        backbone: Backbone,
        num_classes: int | None = None,
        preprocessor: TextPreprocessor | None = None,
        num_windows: int = 4,
        stride: int | None = None,
        combine: Combination = "mean",
        dropout: float | None = None,
        problem_type: ProblemType = "single_label",
        label_names: Sequence[str] | None = None,
        pooling: Pooling | None = None,
        temperature: float = 1.0,
        **kwargs: Unpack[TaskOptions],
    ) -> None:
        # First, since the parent's constructor makes the head.
        self.combine = check_choice("combine", combine, ("mean", "max"))
        self.num_windows = check_int("num_windows", num_windows, 1, _MOST_WINDOWS)
        self.stride = None if stride is None else check_int("stride", stride, 1, _MOST_WINDOWS)
        check_choice("pooling", pooling, (None, *POOLINGS))
        kwargs |= {"label_names": label_names, "pooling": pooling, "temperature": temperature}
        super().__init__(backbone, num_classes, preprocessor, dropout, problem_type, **kwargs)

    def make_head(self):
        """Returns a new head, not built yet."""
        options = {"pooling": self.combine, "dropout": self.dropout}
        return head_for(self, SequenceHead, num_outputs=self.num_classes, **options)

    def call(self, inputs, training=None):
        merged = flatten_texts(inputs)
        options = {"training": training, "first_token_only": self.pooling in FIRST_TOKEN_POOLINGS}
        outputs = self.backbone_outputs(merged, **options)
        vectors = pool(outputs, merged.get(PADDING_MASK), self.pooling)
        num_windows = ops.shape(inputs[TOKEN_IDS])[1]
        vectors = ops.reshape(vectors, (-1, num_windows, self.backbone.hidden_dim))
        exists = None
        if PADDING_MASK in inputs:
            exists = ops.any(ops.cast(inputs[PADDING_MASK], "bool"), axis=-1)
        windows = {"sequence_output": vectors}
        return ops.cast(self.head(windows, exists, training=training), "float32")

    def check_arrays(self, inputs):
        """Raises when NumPy inputs are not `(batch, num_windows, seq_len)` or do not fit."""
        super().check_arrays(inputs)
        if PADDING_MASK not in inputs:
            return
        mask = np.asarray(inputs[PADDING_MASK])
        rule = "Every document needs a window that is not all padding"
        raise_at_first(~mask.any(axis=(1, 2)), mask.sum(axis=(1, 2)), rule)
