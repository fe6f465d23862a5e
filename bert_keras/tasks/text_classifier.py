"""Classification and regression of texts and pairs of texts."""

from collections.abc import Sequence
from typing import Any, Unpack

import keras
import numpy as np
from keras import ops
from numpy.typing import NDArray

from bert_keras.answers.classes import ClassAnswerer, class_probabilities
from bert_keras.answers.entailment import ZeroShotAnswerer
from bert_keras.checks import check_choice, check_number, refuse_options, refuse_smoothing
from bert_keras.engine.keras_internals import tracker_of
from bert_keras.heads.sequence import SequenceHead
from bert_keras.inputs import PADDING_MASK
from bert_keras.layers.initializer import build_parts
from bert_keras.metrics.calibration import best_temperature, expected_calibration_error
from bert_keras.metrics.label_kinds import LabelKind
from bert_keras.models.backbone import Backbone
from bert_keras.preprocessing.text_preprocessor import TextPreprocessor
from bert_keras.tasks import encoded_labels
from bert_keras.tasks.task import ServingSignature, Task
from bert_keras.tasks.user_columns import is_empty
from bert_keras.tasks.validation import head_for, head_settings
from bert_keras.training.losses import SparseCrossentropy
from bert_keras.types import (
    Data,
    HeadOptions,
    Inputs,
    Labels,
    OneText,
    Outputs,
    Pooling,
    PredictOptions,
    ProblemType,
    TaskOptions,
    Tensor,
    Texts,
    Threshold,
)


@keras.saving.register_keras_serializable(package="bert_keras")
class TextClassifier(Task):
    """Gives each text, or pair of texts, a class, several labels, or a score.

    Dropout and a dense layer on the pooled output, section 4.1 of the paper. `problem_type`
    determines labels and loss.

    | problem_type | labels | loss | output |
    |---|---|---|---|
    | `"single_label"` | int `(batch,)`, names, or probabilities `(batch, num_classes)` | \
cross-entropy | logits `(batch, num_classes)` |
    | `"multi_label"` | 0 to 1, `(batch, num_classes)`, or names | binary cross-entropy | as above |
    | `"regression"` | float `(batch,)`, `(batch, num_classes)` | squared error | scores |

    Args:
        backbone: a `Backbone`.
        num_classes: int, the number of classes, labels, or scores; by default that of
            `label_names`, or else 2, and 1 for a regression.
        preprocessor: a `TextPreprocessor`, or `None` for ready inputs only.
        dropout: float, rate before the dense layer; `None` takes the backbone's.
        problem_type: `"single_label"`, `"multi_label"` or `"regression"`.
        label_names: list of `num_classes` str, or `None` to use numbers. A new head without them
            learns them from the names in `y` of `fit`, in their order in the alphabet; without
            `num_classes` it gets as many classes.
        pooling: `"pooler"` as in the paper, `"cls"`, `"mean"` or `"max"`; `None` takes the whole
            head of the backbone's family, for RoBERTa a tanh layer on the first token. By default
            `from_preset` gives a new head the pooling that the checkpoint was trained with, such
            as the mean for a sentence encoder, whose pooler was left as it was.
        head_options: dict with `hidden_activation`, `dropout_first` and `norm` of `SequenceHead`,
            for a head with more than dropout and a dense layer; `None` for those of the family if
            `pooling` is `None`.
        frozen: `None`, `"embeddings"`, `"backbone"`, or an int, see `Task`.
        temperature: float above 0, by which `probabilities` and `classify` divide logits; see
            `calibrate`. `predict`, `fit` and `evaluate` do not read it.
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

    head_config_keys = ("num_classes", "pooling", "head_options")
    answerers = (ClassAnswerer, ZeroShotAnswerer)
    # What `integrated_gradients` has compiled, and for which variables.
    _gradients = (None, None)

    def __init__(
        self,
        backbone: Backbone,
        num_classes: int | None = None,
        preprocessor: TextPreprocessor | None = None,
        dropout: float | None = None,
        problem_type: ProblemType = "single_label",
        label_names: Sequence[str] | None = None,
        pooling: Pooling | None = None,
        head_options: HeadOptions | None = None,
        temperature: float = 1.0,
        **kwargs: Unpack[TaskOptions],
    ) -> None:
        super().__init__(backbone, preprocessor=preprocessor, **kwargs)
        self.temperature = check_number("temperature", temperature, above=0.0)
        if problem_type == "regression" and temperature != 1:
            rule = "`temperature` is for probabilities, which a regression does not have"
            refuse_options(rule, {"temperature": temperature})
        self.problem_type = check_choice("problem_type", problem_type, encoded_labels.PROBLEM_TYPES)
        self.has_classes = problem_type == "single_label"
        self.has_imbalanced_targets = problem_type == "multi_label"
        # Whether `fit` may make the head anew for as many classes as it finds names.
        self._may_count_classes = num_classes is None and label_names is None
        if num_classes is None:
            default = 1 if problem_type == "regression" else 2
            num_classes = max(default, len(() if label_names is None else tuple(label_names)))
        self.num_classes = encoded_labels.check_num_classes(num_classes, problem_type)
        self.label_names = encoded_labels.check_label_names(label_names, num_classes)
        settings = head_settings(self, pooling, head_options, dropout)
        self.pooling, self.head_options, self.dropout = settings
        self.head = self.make_head()

    def make_head(self) -> keras.layers.Layer:
        """Returns a new head, not built yet."""
        options = {"dropout": self.dropout, "pooling": self.pooling, **self.head_options}
        options["num_outputs"] = self.num_classes
        return head_for(self, SequenceHead, "layer_norm_epsilon", **options)

    def call(self, inputs, token_vectors=None, training=None):
        options = {"token_vectors": token_vectors, "first_token_only": self.reads_first_token_only}
        outputs = self.backbone_outputs(inputs, training=training, **options)
        return self.head_outputs(outputs, inputs, training)

    def head_outputs(
        self, outputs: Outputs, inputs: Inputs, training: bool | None = None
    ) -> Tensor:
        """Returns the logits for a backbone's outputs."""
        logits = self.head(outputs, padding_mask=inputs.get(PADDING_MASK), training=training)
        return ops.cast(logits, "float32")

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
        refuse_smoothing(label_smoothing, "A regression has no labels to smooth")
        return keras.losses.MeanSquaredError(reduction="mean_with_sample_weight")

    def default_metrics(self):
        """Returns accuracy, or the root of the mean squared error."""
        if self.problem_type == "single_label":
            return [keras.metrics.SparseCategoricalAccuracy(name="accuracy")]
        if self.problem_type == "multi_label":
            return [keras.metrics.BinaryAccuracy(name="accuracy")]
        return [keras.metrics.RootMeanSquaredError(name="rmse")]

    @property
    def label_kind(self):
        """What the labels are, see `LabelKind`."""
        kinds = {"single_label": "classes", "multi_label": "several", "regression": "scores"}
        return LabelKind(kinds[self.problem_type], self.num_classes)

    def prepare_head(self, data):
        """Sets the bias of a new head for several labels to `log(p / (1 - p))`.

        With `p` the share of texts with each label, the head begins by predicting these shares.
        From a bias of 0, which predicts one half, a short run would only learn that labels are
        rare. A frozen or trained head is not changed.

        Reference:
            [Lin et al., 2017](https://arxiv.org/abs/1708.02002), section 4.1, "Initialization".
        """
        labels = getattr(data, "labels", None)  # A stream does not know them beforehand.
        if not self.has_imbalanced_targets or labels is None:
            return
        bias = encoded_labels.bias_of_new(self.head)
        if bias is not None and bias.trainable:
            share = (np.sum(labels, axis=0) + 1) / (len(labels) + 2)
            bias.assign(np.log(share / (1 - share)))

    @property
    def serving_signature(self) -> ServingSignature:
        """The answer to a text in a program, see `ServingSignature`."""
        if self.problem_type == "regression":
            return ServingSignature("scores", None, (1, 2))
        return ServingSignature("logits", self._names(), (1, 2))

    def encode_labels(self, labels):
        """Returns labels as the array that the loss takes, see `tasks.encoded_labels`."""
        labels = encoded_labels.encode_labels(
            labels, self.problem_type, self.num_classes, self.label_names
        )
        if self.has_classes and labels.ndim == 2:
            self.recipe.check_takes_probabilities()
        return labels

    def set_num_classes(self, num_classes: int) -> None:
        """Makes a new head for another number of classes, and compiles for it.

        Raises:
            ValueError: a metric is for the present number of classes; nothing was changed.
        """
        before, self.num_classes = self.num_classes, num_classes
        try:
            self.recipe.arguments(self)
        except ValueError:
            self.num_classes = before
            raise
        old, new = self.head, self.make_head()
        build_parts([new], (None, self.backbone.hidden_dim))
        tracker_of(self).replace_tracked_value("layers", old, new)
        self.head = new
        self.compile_with(self.recipe.fresh_optimizer(self))

    def predict(self, x: Data, batch_size: int | None = None, **kwargs: Any) -> NDArray[np.float32]:
        """Returns logits or scores, see `Task.predict`; for no texts float32 `(0, num_classes)`."""
        if is_empty(x):
            return np.zeros((0, self.num_classes), "float32")
        return super().predict(x, batch_size=batch_size, **kwargs)

    def probabilities(self, x: Data, **options: Unpack[PredictOptions]) -> NDArray[np.float32]:
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
        self.check_options(options, self.probabilities)
        self._check_has_probabilities()
        logits = self.predict(x, **{"verbose": 0, **options})
        return class_probabilities(logits / self.temperature, self.problem_type)

    def calibrate(self, x: Data, y: Labels, **options: Unpack[PredictOptions]) -> dict[str, float]:
        """Sets `temperature` so that probabilities say how often the classifier is right.

        Fine-tuned classifiers are too sure. `softmax(logits / temperature)` with the temperature
        that gives the lowest cross-entropy on held-out texts corrects this; for `"multi_label"` it
        is the sigmoid. The most probable class and the labels above a threshold of 0.5 stay the
        same. The temperature is saved with the classifier; `export_to_huggingface` and exported
        programs return logits without it. Calibrate again after another `fit`.

        Args:
            x: texts or ready inputs, see `Task`, that `fit` has not seen; a few hundred or more.
            y: labels, see `fit`.
            batch_size: int, 32 by default.
            verbose: see `keras.Model.predict`.

        Returns:
            dict of floats: `temperature`, and the expected calibration error `before` and `after`
            on these texts, see `bert_keras.metrics.expected_calibration_error`. A warning says when
            the temperature stops at its limit, 0.05 or 20.

        Raises:
            ValueError: the task is a regression, there are no texts, or labels do not fit.

        Example:
        ```python
        classifier.calibrate(dev_texts, dev_labels)
        # {"temperature": ..., "before": ..., "after": ...}
        ```

        Reference:
            [Guo et al., 2017](https://arxiv.org/abs/1706.04599).
        """
        self.check_options(options, self.calibrate)
        self._check_has_probabilities()
        labels = self.encode_labels(y)
        labels = encoded_labels.as_classes(labels) if self.has_classes else labels
        logits = self.predict(x, **{"verbose": 0, **options})
        before, self.temperature = self.temperature, best_temperature(logits, labels)
        found = {"temperature": self.temperature}
        for name, temperature in (("before", before), ("after", self.temperature)):
            probabilities = class_probabilities(logits / temperature, self.problem_type)
            found[name] = expected_calibration_error(probabilities, labels)
        return found

    def _check_has_probabilities(self):
        advice = "A regression has scores, no probabilities. Use `predict`."
        check_choice("problem_type", self.problem_type, ("single_label", "multi_label"), advice)

    def classify(
        self,
        texts: OneText | Texts,
        *,
        threshold: Threshold = 0.5,
        **options: Unpack[PredictOptions],
    ) -> Any:
        """Returns answers that a person can read.

        Args:
            texts: a str, a column of str, or a tuple of two such for pairs.
            batch_size: int, 32 by default.
            threshold: float, or one per label, as a sequence or as a dict with the labels' names:
                the least probability of a label that counts, for `"multi_label"`.
            verbose: see `keras.Model.predict`.

        Returns:
            For a str, or a pair of str, one dict; for columns, a list of dicts:
            `{"label": name, "probabilities": {name: float}}` for `"single_label"`,
            `{"labels": [name, ...], "probabilities": {name: float}}` for `"multi_label"`,
            `{"score": float}` (`"scores"` where there are several) for `"regression"`.

        Raises:
            TypeError, ValueError: texts do not fit, or `threshold` is neither a number from 0 to 1
                nor one for each label.
        """
        return self.ask("classify", texts, threshold=threshold, **options)

    def _names(self):
        return list(self.label_names or range(self.num_classes))
