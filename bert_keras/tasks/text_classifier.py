"""Classification and regression of texts and pairs of texts."""

import keras
import numpy as np
from keras import ops

from bert_keras.heads.sequence import SequenceHead
from bert_keras.inputs import PADDING_MASK
from bert_keras.layers.pooler import pool
from bert_keras.metrics.labels import as_label_array
from bert_keras.presets import families
from bert_keras.tasks.columns import is_empty
from bert_keras.tasks.label_names import check_label_names
from bert_keras.tasks.task import Task
from bert_keras.training.losses import SparseCrossentropy, consistency_loss

PROBLEM_TYPES = ("single_label", "multi_label", "regression")


@keras.saving.register_keras_serializable(package="bert_keras")
class TextClassifier(Task):
    """Gives each text, or pair of texts, a class, several labels, or a score.

    Dropout and a dense layer on the pooled output, section 4.1 of the paper; the loss follows from
    `problem_type`.

    | problem_type | labels | loss | output |
    |---|---|---|---|
    | `"single_label"` | int `(batch,)`, or names | cross-entropy | logits `(batch, num_classes)` |
    | `"multi_label"` | 0 or 1, `(batch, num_classes)` | binary cross-entropy | logits, likewise |
    | `"regression"` | float `(batch,)`, `(batch, num_classes)` | squared error | scores, likewise |

    Args:
        backbone: a `Backbone`.
        num_classes: int, classes, labels, or scores.
        preprocessor: a `TextPreprocessor`, or `None` for ready inputs only.
        dropout: float, rate before the dense layer; `None` takes the backbone's.
        problem_type: `"single_label"`, `"multi_label"` or `"regression"`.
        label_names: list of `num_classes` str, or `None` to use numbers.
        pooling: `"pooler"` as in the paper, `"cls"`, `"mean"` or `"max"`. Checkpoints trained for
            sentence embeddings have an untrained pooler: `"mean"` suits them better.
        frozen: `None`, `"embeddings"`, `"backbone"`, or an int, see `Task`.
        **kwargs: `name`, `dtype`, `trainable`, see `keras.Model`.

    Raises:
        ValueError: an argument is out of range.

    Example:
    ```python
    classifier = bert_keras.TextClassifier.from_preset(
        "minilm_l6_en_uncased", num_classes=2, label_names=["negative", "positive"]
    )
    classifier.fit(["What a film!", "Two hours too long."], ["positive", "negative"], epochs=3)
    classifier.classify("I would see it again.")
    classifier.save("sentiment.keras")
    ```

    Reference:
        [Devlin et al., 2019](https://arxiv.org/abs/1810.04805), section 4.1.
    """

    head_arguments = ("num_classes", "pooling")
    has_dropout_samples = True

    def __init__(
        self,
        backbone,
        num_classes=2,
        preprocessor=None,
        dropout=None,
        problem_type="single_label",
        label_names=None,
        pooling=None,
        head_options=None,
        frozen=None,
        **kwargs,
    ):
        super().__init__(backbone, preprocessor=preprocessor, frozen=frozen, **kwargs)
        _check_classes(num_classes, problem_type, label_names)
        self.num_classes = int(num_classes)
        self.problem_type = problem_type
        self.label_names = None if label_names is None else tuple(map(str, label_names))
        default = "cls" if backbone.pooler is None else "pooler"
        options = {"pooling": default, **families.head_options(backbone, "TextClassifier")}
        rate = options.pop("dropout", backbone.dropout)
        if pooling is not None and pooling != options["pooling"]:
            options = {"pooling": pooling}
        self.pooling = options.pop("pooling")
        self.head_options = options if head_options is None else head_options
        self.dropout = rate if dropout is None else dropout
        self.head = self._make_head()
        self.build()
        self.compile()

    def _make_head(self):
        return SequenceHead(
            self.num_classes,
            self.backbone.hidden_dim,
            dropout=self.dropout,
            pooling=self.pooling,
            **self.head_options,
            initializer_range=self.backbone.initializer_range,
            dtype=self.dtype_policy,
            name="head",
        )

    def call(self, inputs, token_vectors=None, training=None):
        options = {} if token_vectors is None else {"token_vectors": token_vectors}
        outputs = self.encode(inputs, training=training, **options)
        self.head.num_masks = self.masks_now
        logits = self.head(outputs, padding_mask=inputs.get(PADDING_MASK), training=training)
        return ops.cast(logits, "float32")

    def features(self, inputs):
        """Returns what the head reads of a frozen encoder, see `Task.fit`.

        Args:
            inputs: dict of ints `(batch, seq_len)`, see `bert_keras.inputs`.

        Returns:
            float `(batch, hidden_dim)`, the pooled vectors.
        """
        return pool(self.encode(inputs, training=False), inputs.get(PADDING_MASK), self.pooling)

    def disagreement(self, first, second):
        """Returns how much two passes disagree on each text, as the loss measures it.

        Symmetric Kullback-Leibler divergences: of the classes; of each label, which is there or
        not, their mean; of normal distributions about each score, with the variance 1/2 for which
        the squared error is a log-likelihood: the squared differences, their mean.

        Args:
            first: float `(batch, num_classes)`, logits or scores.
            second: float, the same shape.

        Returns:
            float `(batch,)`.
        """
        if self.problem_type == "single_label":
            return consistency_loss(first, second)
        if self.problem_type == "regression":
            return ops.mean(ops.square(first - second), axis=-1)
        return 0.5 * ops.mean(
            (ops.sigmoid(first) - ops.sigmoid(second)) * (first - second), axis=-1
        )

    def default_loss(self, label_smoothing):
        """Returns cross-entropy, binary cross-entropy or squared error."""
        if self.problem_type == "single_label":
            return SparseCrossentropy(label_smoothing=label_smoothing)
        if self.problem_type == "multi_label":
            return keras.losses.BinaryCrossentropy(
                from_logits=True,
                label_smoothing=label_smoothing,
                reduction="mean_with_sample_weight",
            )
        if label_smoothing:
            raise ValueError(
                "A regression has no labels to smooth. Received: "
                f"label_smoothing={label_smoothing}."
            )
        return keras.losses.MeanSquaredError(reduction="mean_with_sample_weight")

    def default_metrics(self):
        """Returns accuracy, or the root of the mean squared error."""
        if self.problem_type == "single_label":
            return [keras.metrics.SparseCategoricalAccuracy(name="accuracy")]
        if self.problem_type == "multi_label":
            # The outputs are logits: 0 stands for a probability of one half.
            return [keras.metrics.BinaryAccuracy(threshold=0.0, name="accuracy")]
        return [keras.metrics.RootMeanSquaredError(name="rmse")]

    @property
    def has_classes(self):
        return self.problem_type == "single_label"

    def encode_labels(self, labels):
        """Returns labels as the array that the loss takes.

        Args:
            labels: see the class.

        Returns:
            int32 `(n,)`, float32 `(n, num_classes)`, or float32 `(n,)` or `(n, num_classes)`.

        Raises:
            ValueError: a label is missing, not a number, no class, or of the wrong shape.
        """
        labels = as_label_array(labels)
        if labels.dtype.kind in "OUS" and self.problem_type == "single_label":
            labels = self._numbers_of(labels)
        if labels.dtype.kind not in "iufb":
            raise ValueError(
                f"Labels of a {self.problem_type} problem must be numbers. Received the dtype "
                f"{labels.dtype}."
            )
        if not np.isfinite(labels).all():
            row = int(np.argwhere(~np.isfinite(labels))[0, 0])
            raise ValueError(
                f"Every example needs a label. Received {labels[row]} at the index {row}. Drop "
                "examples without a label first."
            )
        if self.problem_type == "regression":
            return self._scores(labels)
        if self.problem_type == "multi_label":
            return self._label_sets(labels)
        return self._classes(labels)

    def _numbers_of(self, names):
        if self.label_names is None:
            raise ValueError(
                "Labels given by name need `label_names`. Received the label "
                f"{names.flat[0]!r}. Pass label_names=[...] when making the classifier."
            )
        if names.ndim == 2 and names.shape[1] == 1:
            names = names[:, 0]
        if names.ndim != 1:
            raise ValueError(
                "Labels of a single_label problem must be one name an example. Received the shape "
                f"{names.shape}. Several labels an example: problem_type='multi_label', and a "
                "matrix of 0 and 1 with a column a label."
            )
        numbers = {name: i for i, name in enumerate(self.label_names)}
        for row, name in enumerate(names.tolist()):
            if name not in numbers:
                raise ValueError(
                    f"Every label must be one of {list(self.label_names)}. Received {name!r} at "
                    f"the index {row}."
                )
        return np.array([numbers[name] for name in names.tolist()])

    def _classes(self, labels):
        if labels.ndim != 1:
            raise ValueError(
                "Labels of a single_label problem must have the shape (num_examples,), one class "
                f"each. Received {labels.shape}. Several labels an example: problem_type="
                "'multi_label'."
            )
        wrong = (labels < 0) | (labels >= self.num_classes) | (labels != np.floor(labels))
        if wrong.any():
            row = int(np.argmax(wrong))
            raise ValueError(
                f"Labels must be the ints 0 to {self.num_classes - 1}, num_classes="
                f"{self.num_classes}. Received {labels[row]} at the index {row}."
            )
        return labels.astype("int32")

    def _label_sets(self, labels):
        if labels.ndim != 2 or labels.shape[1] != self.num_classes:
            raise ValueError(
                "Labels of a multi_label problem must have the shape (num_examples, "
                f"{self.num_classes}). Received {labels.shape}."
            )
        wrong = (labels != 0) & (labels != 1)
        if wrong.any():
            row = int(np.argwhere(wrong)[0, 0])
            raise ValueError(
                f"Labels of a multi_label problem must be 0 or 1. Received {labels[row]} at the "
                f"index {row}."
            )
        return labels.astype("float32")

    def _scores(self, labels):
        shapes = [(len(labels), self.num_classes)] + [(len(labels),)] * (self.num_classes == 1)
        if labels.shape not in shapes:
            raise ValueError(
                f"Labels of a regression with num_classes={self.num_classes} scores must have the "
                f"shape {' or '.join(map(str, shapes))}. Received {labels.shape}. One score an "
                "example: num_classes=1."
            )
        return labels.reshape(-1, self.num_classes).astype("float32")

    def predict(self, x, batch_size=None, **kwargs):
        """Returns logits or scores, see `Task.predict`; of no texts float32 `(0, num_classes)`."""
        if is_empty(x):
            return np.zeros((0, self.num_classes), "float32")
        return super().predict(x, batch_size=batch_size, **kwargs)

    def probabilities(self, x, batch_size=None, verbose=0):
        """Returns class probabilities: softmax of the logits, or sigmoid for `"multi_label"`.

        Args:
            x: texts or ready inputs, see `Task`.
            batch_size: int, 32 by default.
            verbose: see `keras.Model.predict`.

        Returns:
            float32 array `(num_examples, num_classes)`.

        Raises:
            ValueError: the task is a regression.
        """
        if self.problem_type == "regression":
            raise ValueError("A regression has scores, no probabilities. Use `predict`.")
        logits = self.predict(x, batch_size=batch_size, verbose=verbose)
        if self.problem_type == "multi_label":
            return 1 / (1 + np.exp(-logits))
        exponentials = np.exp(logits - logits.max(axis=-1, keepdims=True))
        return exponentials / exponentials.sum(axis=-1, keepdims=True)

    def classify(self, texts, batch_size=None, threshold=0.5, verbose=0):
        """Answers as a person would read it.

        Args:
            texts: a str, a column of str, or a tuple of two such for pairs.
            batch_size: int, 32 by default.
            threshold: float, or one a label, in a sequence or a dict of their names: the least
                probability of a label that counts, for `"multi_label"`.
            verbose: see `keras.Model.predict`.

        Returns:
            For a str, or a pair of str, one dict; for columns, a list of dicts:
            `{"label": name, "probabilities": {name: float}}` for `"single_label"`,
            `{"labels": [name, ...], "probabilities": {name: float}}` for `"multi_label"`,
            `{"score": float}` (`"scores"` where there are several) for `"regression"`.

        Raises:
            TypeError, ValueError: texts do not fit, or there is not one threshold for all labels
                or one for each, a finite number.
        """
        threshold = self._thresholds(threshold)
        is_one_pair = (
            isinstance(texts, tuple)
            and len(texts) == 2
            and all(isinstance(text, str) for text in texts)
        )
        is_one = isinstance(texts, str) or is_one_pair
        if is_one_pair:
            texts = tuple([text] for text in texts)
        if self.problem_type == "regression":
            answers = [
                _score_answer(row) for row in self.predict(texts, batch_size, verbose=verbose)
            ]
        else:
            rows = self.probabilities(texts, batch_size, verbose=verbose)
            answers = [self._label_answer(row, threshold) for row in rows]
        return answers[0] if is_one else answers

    def _thresholds(self, threshold):
        """Returns `threshold` as float64, `()` or `(num_classes,)`."""
        if isinstance(threshold, dict):
            names = list(self.label_names or range(self.num_classes))
            if set(threshold) != set(names):
                wrong = sorted(map(str, set(threshold) ^ set(names)))
                raise ValueError(
                    f"`threshold` must have each label's name, {names[:20]}. Missing or unknown: "
                    f"{wrong[:20]}."
                )
            threshold = [threshold[name] for name in names]
        values = np.asarray(threshold)
        if values.shape not in ((), (self.num_classes,)):
            raise ValueError(
                f"`threshold` must be one number, or one for each of the {self.num_classes} "
                f"labels. Received the shape {values.shape}."
            )
        if values.dtype.kind not in "iuf" or not np.isfinite(values).all():
            raise ValueError(f"`threshold` must be finite numbers. Received: {threshold!r}.")
        return values.astype("float64")

    def _label_answer(self, probabilities, threshold):
        names = self.label_names or range(self.num_classes)
        named = {name: float(p) for name, p in zip(names, probabilities, strict=True)}
        if self.problem_type == "single_label":
            return {"label": max(named, key=named.get), "probabilities": named}
        chosen = probabilities >= threshold
        labels = [name for name, is_chosen in zip(names, chosen, strict=True) if is_chosen]
        return {"labels": labels, "probabilities": named}

    def get_config(self):
        return {
            **super().get_config(),
            "num_classes": self.num_classes,
            "dropout": self.dropout,
            "problem_type": self.problem_type,
            "label_names": None if self.label_names is None else list(self.label_names),
            "pooling": self.pooling,
            "head_options": self.head_options,
        }


def _score_answer(row):
    if len(row) == 1:
        return {"score": float(row[0])}
    return {"scores": [float(score) for score in row]}


def _check_classes(num_classes, problem_type, label_names):
    if problem_type not in PROBLEM_TYPES:
        raise ValueError(
            f"`problem_type` must be one of {PROBLEM_TYPES}. Received: {problem_type!r}."
        )
    least = 2 if problem_type == "single_label" else 1
    is_int = isinstance(num_classes, (int, np.integer)) and not isinstance(num_classes, bool)
    if not is_int or not least <= num_classes <= 2**20:
        raise ValueError(
            f"`num_classes` of a {problem_type} problem must be an int from {least}. Received: "
            f"{num_classes!r}."
        )
    check_label_names(label_names, num_classes)
