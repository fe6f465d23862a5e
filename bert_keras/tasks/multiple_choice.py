"""Choosing the text that fits a context best."""

from collections.abc import Iterable
from typing import Any, Unpack

import keras
import numpy as np
from keras import ops

from bert_keras.answers.classes import ChoiceAnswerer
from bert_keras.checks import as_array, check_shape, raise_at_first, refuse_smoothing
from bert_keras.heads.sequence import SequenceHead
from bert_keras.inputs import PADDING_MASK, TOKEN_IDS
from bert_keras.metrics.label_kinds import LabelKind
from bert_keras.models.backbone import Backbone
from bert_keras.models.model import flatten_texts
from bert_keras.preprocessing.text_preprocessor import TextPreprocessor
from bert_keras.tasks.encoded_labels import one_column, shares
from bert_keras.tasks.task import Task
from bert_keras.tasks.validation import head_for, head_settings
from bert_keras.training.losses import SparseCrossentropy
from bert_keras.types import HeadOptions, Pooling, PredictOptions, TaskOptions, Texts

# The logit of a missing choice: its probability is 0, and every number stays finite.
NO_CHOICE = -1e9


@keras.saving.register_keras_serializable(package="bert_keras")
class MultipleChoice(Task):
    """Picks the choice that fits a context: the ending of a story, the answer to a question.

    Each choice becomes the pair `[CLS] context [SEP] choice [SEP]`. Dropout and a dense layer turn
    its pooled output into a score, and the softmax over the choices gives their probabilities,
    section 4.4 of the paper.

    `fit`, `evaluate` and `predict` take `(contexts, choices)`: a column of str, and a list with a
    list of str for each context. If the numbers of choices differ, shorter lists are filled up with
    choices that are all padding. Such a choice, also in ready inputs `(batch, num_choices,
    seq_len)`, has the logit -1e9 and the probability 0. Label smoothing would give it a share, and
    is refused if the numbers of choices differ.

    Args:
        backbone: a `Backbone`.
        preprocessor: a `TextPreprocessor`, or `None` for ready inputs only.
        dropout: float, rate before the dense layer; `None` takes the backbone's.
        pooling: `"pooler"` as in the paper, `"cls"`, `"mean"` or `"max"`; `None` takes the whole
            head of the backbone's family.
        head_options: dict, see `TextClassifier`.
        frozen: `None`, `"embeddings"`, `"backbone"`, or an int, see `Task`.
        **kwargs: `name`, `dtype`, `trainable`, see `keras.Model`.

    Call arguments:
        inputs: dict of ints `(batch, num_choices, seq_len)`, see `bert_keras.inputs`.
        training: bool, whether dropout is active.

    Returns:
        float32 `(batch, num_choices)`, logits.

    Example:
    ```python
    model = bert_keras.MultipleChoice.from_preset("minilm_l6_en_uncased")
    contexts = ["She opens the hood of the car.", "He dives into the pool."]
    choices = [["She looks at the engine.", "She eats it."], ["He burns.", "He gets wet."]]
    model.fit((contexts, choices), [0, 1], epochs=3)
    model.choose(contexts[0], choices[0])
    ```

    Reference:
        [Devlin et al., 2019](https://arxiv.org/abs/1810.04805), section 4.4.
    """

    head_config_keys = ("pooling", "head_options")
    num_input_axes = 3  # Texts, choices, tokens.
    answerers = (ChoiceAnswerer,)
    form = "choices"
    label_kind = LabelKind("places")

    def __init__(
        self,
        backbone: Backbone,
        preprocessor: TextPreprocessor | None = None,
        dropout: float | None = None,
        pooling: Pooling | None = None,
        head_options: HeadOptions | None = None,
        **kwargs: Unpack[TaskOptions],
    ) -> None:
        super().__init__(backbone, preprocessor=preprocessor, **kwargs)
        settings = head_settings(self, pooling, head_options, dropout)
        self.pooling, self.head_options, self.dropout = settings
        options = {"dropout": self.dropout, "pooling": self.pooling, **self.head_options}
        self.head = head_for(self, SequenceHead, "layer_norm_epsilon", num_outputs=1, **options)

    def call(self, inputs, training=None):
        merged = flatten_texts(inputs)
        outputs = self.backbone_outputs(
            merged, training=training, first_token_only=self.reads_first_token_only
        )
        scores = self.head(outputs, padding_mask=merged.get(PADDING_MASK), training=training)
        num_choices = ops.shape(inputs[TOKEN_IDS])[1]
        logits = ops.reshape(ops.cast(scores, "float32"), (-1, num_choices))
        if PADDING_MASK not in inputs:
            return logits
        exists = ops.any(ops.cast(inputs[PADDING_MASK], "bool"), axis=-1)
        return ops.where(exists, logits, NO_CHOICE)

    def default_loss(self, label_smoothing):
        """Returns cross-entropy over the choices."""
        return SparseCrossentropy(label_smoothing=label_smoothing)

    def default_metrics(self):
        """Returns accuracy."""
        return [keras.metrics.SparseCategoricalAccuracy(name="accuracy")]

    def encode_labels(self, labels):
        """Returns the positions of the right choices, counted from 0, or their probabilities.

        Args:
            labels: int `(num_examples,)`, or float `(num_examples, num_choices)`.

        Returns:
            int32 `(num_examples,)`, or float32 `(num_examples, num_choices)`.

        Raises:
            ValueError: a label is not an int, or probabilities do not sum to 1.
        """
        labels = one_column(as_array("Labels", labels))
        if labels.ndim == 2:
            return shares(labels)
        advice = "Each is the position of the right choice."
        check_shape("Labels", labels, ("num_examples",), "iu", advice)
        return labels.astype("int32")

    def encode_texts(self, x, y=None, sample_weight=None, training=False):
        """Returns contexts with their choices as rows of pairs, see `Task`."""
        rows = super().encode_texts(x, sample_weight=sample_weight)
        if training:
            rows.labels = self._checked_labels(y, rows.exists)
        return rows

    def encode_ready_labels(self, labels, inputs):
        """Returns the labels of ready inputs, each of which must be one of the choices."""
        return self._checked_labels(labels, _existing(inputs))

    def _checked_labels(self, labels, exists):
        """Returns labels, each of which is one of the choices that exist."""
        labels, num_choices = self.encode_labels(labels), exists.shape[1]
        if labels.ndim == 2:
            check_shape("Labels", labels, ("num_examples", num_choices))
            inside = ((labels == 0) | exists).all(axis=1)
        else:
            inside = (labels >= 0) & (labels < num_choices)
            inside &= exists[np.arange(len(labels)), np.clip(labels, 0, num_choices - 1)]
        counts = exists.sum(axis=1)
        if not inside.all():
            last = counts[np.argmin(inside)] - 1
            rule = f"A label must be the position of one of the example's choices, from 0 to {last}"
            raise_at_first(~inside, labels, rule)
        if counts.min() < counts.max():
            rule = "`label_smoothing` needs the same number of choices for each context"
            advice = "Compile with label_smoothing=0.0."
            refuse_smoothing(self.recipe.label_smoothing, rule, advice)
        return labels

    def choose(
        self,
        context: str | Texts,
        choices: Texts | Iterable[Texts],
        **options: Unpack[PredictOptions],
    ) -> Any:
        """Returns the best choice for each context.

        Args:
            context: a str, or a column of str.
            choices: for one context a list of str, for a column a list of as many such lists.
            batch_size: int, 32 by default.
            verbose: see `keras.Model.predict`.

        Returns:
            For a str one dict, for a column a list of dicts: `{"choice": text, "index": its
            position, "probabilities": [float, ...]}`, one probability for each choice given.
        """
        return self.ask("choose", context, choices, **options)


def _existing(inputs):
    """Returns which choices exist in ready inputs: bool `(batch, num_choices)`."""
    key = PADDING_MASK if PADDING_MASK in inputs else TOKEN_IDS
    array = ops.convert_to_numpy(inputs[key])
    return (array != 0).any(axis=-1) if key == PADDING_MASK else np.ones(array.shape[:2], bool)
