"""Predicting whether one text follows another."""

import types
from typing import Any, Unpack

import keras
from numpy.typing import ArrayLike, NDArray

from bert_keras.answers.classes import NextSentenceAnswerer
from bert_keras.checks import as_array, check_shape, raise_at_first
from bert_keras.heads.sequence import SequenceHead
from bert_keras.metrics.label_kinds import LabelKind
from bert_keras.tasks.encoded_labels import one_column, shares
from bert_keras.tasks.task import ServingSignature, Task
from bert_keras.tasks.validation import head_for
from bert_keras.training.losses import SparseCrossentropy
from bert_keras.types import PredictOptions, Texts


@keras.saving.register_keras_serializable(package="bert_keras")
class NextSentencePrediction(Task):
    """Predicts whether a text follows another or is random, section 3.1, task 2 of the paper.

    A dense layer with two outputs on the pooled output of `[CLS] first [SEP] second [SEP]`, without
    dropout, as in Google's code. Labels have BERT's order: 0 is next, 1 is random. ALBERT's
    sentence order prediction is the same task on other pairs, 0 in order and 1 swapped, see
    `create_pretraining_data`.

    Args:
        backbone: a `Backbone` with a pooler.
        preprocessor: a `TextPreprocessor`, or `None` for ready inputs only.
        frozen: `None`, `"embeddings"`, `"backbone"`, or an int, see `Task`.
        **kwargs: `name`, `dtype`, `trainable`, see `keras.Model`.

    Call arguments:
        inputs: dict of ints `(batch, seq_len)`, see `bert_keras.inputs`.
        training: bool, whether the backbone's dropout is active.

    Returns:
        float32 `(batch, 2)`, logits.

    Example:
    ```python
    model = bert_keras.NextSentencePrediction.from_preset("bert_base_en_uncased")
    model.is_next("She opened the door.", "The room was empty.")
    model.fit((first_texts, second_texts), labels, epochs=2)  # 0 is next, 1 is random
    ```

    Reference:
        [Devlin et al., 2019](https://arxiv.org/abs/1810.04805), section 3.1.
    """

    reads_pooled_output = True
    answerers = (NextSentenceAnswerer,)
    label_kind = LabelKind("classes", 2)
    serving_signature = ServingSignature("logits", ("next", "random"), (2,))
    is_fine_tuned = False
    compatible_heads = types.MappingProxyType({"Pretraining": {"head/": "head/next_sentence/"}})

    def make_head(self):
        """Returns a new head, not built yet."""
        return head_for(self, SequenceHead, "layer_norm_epsilon", num_outputs=2, dropout=0.0)

    def call(self, inputs, training=None):
        outputs = self.backbone_outputs(inputs, training=training, first_token_only=True)
        return keras.ops.cast(self.head(outputs), "float32")

    def default_loss(self, label_smoothing):
        """Returns cross-entropy."""
        return SparseCrossentropy(label_smoothing=label_smoothing)

    def default_metrics(self):
        """Returns accuracy."""
        return [keras.metrics.SparseCategoricalAccuracy(name="accuracy")]

    def encode_labels(self, labels):
        """Returns labels as the array that the loss takes, see `encode_next_labels`."""
        return encode_next_labels(labels)

    def is_next(
        self,
        first: str | Texts,
        second: str | Texts,
        **options: Unpack[PredictOptions],
    ) -> Any:
        """Returns whether texts follow others.

        Args:
            first: a str or a column of str.
            second: a str or a column of str, the texts that may follow.
            batch_size: int, 32 by default.
            verbose: see `keras.Model.predict`.

        Returns:
            For two str a dict, for columns a list of dicts: `{"is_next": bool, "probability":
            float}`, the probability that the second follows the first.
        """
        return self.ask("is_next", first, second, **options)


def encode_next_labels(labels: ArrayLike) -> NDArray[Any]:
    """Returns labels of next sentences as int32 `(num_examples,)`, or their probabilities.

    Args:
        labels: int `(num_examples,)`, 0 for "is next", 1 for "is random"; or float
            `(num_examples, 2)`, a probability of each.

    Raises:
        ValueError: a label is anything else; bools too, since `True` would mean "is random".
    """
    labels = one_column(as_array("Labels of next sentences", labels))
    if labels.ndim == 2 and labels.shape[1] == 2:
        return shares(labels)
    name, advice = "Labels of next sentences", "0 is next, 1 is random."
    check_shape(name, labels, ("num_examples",), "iu", advice)
    raise_at_first((labels != 0) & (labels != 1), labels, f"{name} must be 0 or 1", advice)
    return labels.astype("int32")
