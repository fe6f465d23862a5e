"""What a task's labels are, and metrics that read them in the form that they expect.

A task's outputs are logits, and its labels may be class indices. Most of Keras's metrics expect
probabilities and one-hot labels. So `compile` passes each metric what it expects, as `READS` says,
or refuses it if no form of these labels fits.
"""

import numpy as np
from keras import metrics, ops
from keras.losses import Loss

from bert_keras.checks import check_choice
from bert_keras.engine.keras_internals import function_of

# The forms in which a metric may read labels and predictions, a pair of these.
FORMS = ("classes", "one_hot", "probabilities", "logits")

# Metrics of examples that have one class each -> the forms of labels and predictions.
_OF_CLASSES = {
    metrics.Accuracy: ("classes", "classes"),
    metrics.SparseCategoricalAccuracy: ("classes", "logits"),
    metrics.SparseTopKCategoricalAccuracy: ("classes", "logits"),
    metrics.SparseCategoricalCrossentropy: ("classes", "probabilities"),
    metrics.CategoricalAccuracy: ("one_hot", "logits"),
    metrics.TopKCategoricalAccuracy: ("one_hot", "logits"),
    metrics.CategoricalCrossentropy: ("probabilities", "probabilities"),
    metrics.FBetaScore: ("one_hot", "probabilities"),
}
# Metrics of labels that are each yes or no. These do not fit more than two classes.
_OF_TWO_CLASSES = {
    metrics.BinaryAccuracy: ("one_hot", "probabilities"),
    metrics.BinaryCrossentropy: ("probabilities", "probabilities"),
}
# These count each class of several.
_COUNTS = (
    metrics.AUC,
    metrics.Precision,
    metrics.Recall,
    metrics.TruePositives,
    metrics.TrueNegatives,
    metrics.FalsePositives,
    metrics.FalseNegatives,
    metrics.PrecisionAtRecall,
    metrics.RecallAtPrecision,
    metrics.SensitivityAtSpecificity,
    metrics.SpecificityAtSensitivity,
)
_OF_YES_OR_NO = _OF_TWO_CLASSES | dict.fromkeys(_COUNTS, ("one_hot", "probabilities"))
_OF_SCORES = (
    metrics.MeanSquaredError,
    metrics.RootMeanSquaredError,
    metrics.MeanAbsoluteError,
    metrics.MeanAbsolutePercentageError,
    metrics.MeanSquaredLogarithmicError,
    metrics.LogCoshError,
    metrics.Poisson,
    metrics.R2Score,
)
READS = {**_OF_CLASSES, **_OF_YES_OR_NO, **dict.fromkeys(_OF_SCORES, ("scores", "scores"))}
# These fit no labels of texts, or compare the values of one row with each other.
_OF_NONE = (metrics.Hinge, metrics.SquaredHinge, metrics.CategoricalHinge, metrics.IoU)
_OF_NONE += (metrics.CosineSimilarity, metrics.PearsonCorrelation, metrics.ConcordanceCorrelation)
READS |= dict.fromkeys((metrics.KLDivergence, *_OF_NONE))
# Functions of `keras.metrics` without a class of their name -> a class that reads the same.
_FUNCTIONS = {
    "huber": metrics.MeanSquaredError,
    "log_cosh": metrics.LogCoshError,
    "binary_focal_crossentropy": metrics.BinaryCrossentropy,
    "categorical_focal_crossentropy": metrics.CategoricalCrossentropy,
}

# Kind of labels -> what fits instead of a metric that does not.
_INSTEAD = {
    "classes": "'accuracy', 'categorical_crossentropy' or F1Score(); to predict numbers, make the "
    "task with problem_type='regression'",
    "several": "'binary_accuracy', 'binary_crossentropy' or F1Score(threshold=0.5), which counts "
    "each label that is likelier than not",
    "scores": "'mse', 'mae' or R2Score(), or scipy.stats.pearsonr on the outputs of `predict`",
    "places": "'accuracy', 'sparse_categorical_crossentropy' or SparseTopKCategoricalAccuracy(k)",
    "none": "a metric of your own, whose `update_state` gets the outputs as they are",
}


class LabelKind:
    """What the labels of one output of a task are.

    Args:
        name: `"classes"`: one of `size` classes; `"several"`: `size` labels, each yes or no;
            `"scores"`: `size` numbers; `"places"`: one of several places or ids, whose number may
            differ from batch to batch; `"none"`: nothing that metrics could compare with outputs.
        size: int, see `name`.
        per_token: bool, whether there is a label per token, or per text of a list, so that padding
            must not count.
        scores_of: function from the outputs to scores, or `None` if they are the scores.
    """

    def __init__(self, name, size=1, per_token=False, scores_of=None):
        self.name, self.size = check_choice("name", name, tuple(_INSTEAD)), size
        self.per_token, self.scores_of = per_token, scores_of

    def __str__(self):
        return {
            "classes": f"one of {self.size} classes each",
            "several": f"{self.size} labels, each yes or no",
            "scores": f"{self.size} numbers each" if self.size > 1 else "one number each",
            "places": "one of several places each",
            "none": "no classes and no scores",
        }[self.name]

    def adapt(self, metric, is_weighted=True):
        """Returns a metric that passes another one labels and predictions as that one reads them.

        Args:
            metric: what `compile` takes: a name, a `keras.metrics.Metric`, its class, or a function
                of labels and predictions. Its attribute `reads`, a pair of `FORMS`, says what it
                reads. Without it, one that is not Keras's is returned as it is: it gets the labels
                as the loss takes them, and the outputs.
            is_weighted: bool, whether `sample_weight` counts. If not, padding still does not count.

        Raises:
            ValueError: the metric cannot read these labels.
        """
        if isinstance(metric, Adapted):
            return metric
        metric, known = _resolved(metric, self), None
        function = function_of(metric)
        reads, config = getattr(metric, "reads", getattr(function, "reads", None)), {}
        if reads is not None:
            self._check_forms(type(metric).__name__ if function is None else metric.name, reads)
        else:
            known = _known(metric, function)
            if known is None:
                return metric
            config = metric.get_config()
            reads = self._reads(metric, known, config)
        is_binary = known in _OF_YES_OR_NO and self.name == "classes" and self.size == 2
        chooses = any(config.get(name) is not None for name in ("class_id", "top_k"))
        reads_second = is_binary and not (chooses or config.get("multi_label"))
        return Adapted(metric, self, reads, reads_second, counts_once=not is_weighted)

    def _check_forms(self, name, reads):
        """Raises `ValueError` unless a metric reads forms that these labels have."""
        for form in reads:
            check_choice(f"reads of {name}", form, FORMS)
        has_no_classes = self.name == "several" and "classes" in reads
        if has_no_classes or self.name in ("scores", "none"):
            self._refuse(name, f"It reads {reads}. Use {_INSTEAD[self.name]}")

    def _reads(self, metric, known, config):
        """Returns the forms that a metric of Keras reads; raises if none of them fits."""
        name, labels, predictions = type(metric).__name__, *(READS[known] or (None, None))
        is_binary, kind = known in _OF_YES_OR_NO, self.name
        most = self.size if kind in ("classes", "several") else None
        fits = {
            "classes": known in _OF_CLASSES
            or (is_binary and (self.size == 2 or known not in _OF_TWO_CLASSES)),
            "several": is_binary
            or (known is metrics.FBetaScore and config["threshold"] is not None),
            "scores": known in _OF_SCORES,
            "places": labels == "classes" and known is not metrics.Accuracy,
            "none": False,
        }[kind]
        if not fits or config.get("from_sorted_ids"):
            self._refuse(name, f"Use {_INSTEAD[kind]}")
        if _takes_logits(config):
            self._refuse(
                name, "Leave out `from_logits` and a threshold of 0: it gets probabilities"
            )
        for setting in ("k", "top_k"):
            if most is not None and (config.get(setting) or 0) > most:
                self._refuse(name, f"`{setting}` must be at most {most}, the number of classes")
        class_id = config.get("class_id")
        if class_id is not None and not 0 <= class_id < self.size:
            self._refuse(name, f"`class_id` must be from 0 to {self.size - 1}, not {class_id}")
        has_limit = config.get("thresholds", 0) is not None or config.get("top_k") is not None
        if kind == "classes" and self.size > 2 and not has_limit:
            predictions = "one_hot"  # Without a threshold it counts the likeliest class.
        return labels, predictions

    def _refuse(self, name, advice):
        raise ValueError(f"`{name}` does not fit these labels: {self}. {advice}.")

    # Labels and predictions in a form

    def labels(self, y_true, y_pred, form):
        """Returns labels in one of `FORMS`; rows of probabilities are labels too."""
        if self.name == "several":
            y_true = ops.cast(y_true, y_pred.dtype)
            return y_true if form == "probabilities" else ops.cast(y_true > 0.5, y_pred.dtype)
        if self.name in ("classes", "places"):
            is_soft = len(y_true.shape) == len(y_pred.shape)
            if is_soft and form == "probabilities":
                return ops.cast(y_true, y_pred.dtype)
            classes = ops.argmax(y_true, axis=-1) if is_soft else ops.cast(y_true, "int32")
            if form == "classes":
                return classes
            return ops.one_hot(classes, y_pred.shape[-1], dtype=y_pred.dtype)
        return ops.reshape(y_true, ops.shape(y_pred))

    def predictions(self, logits, form):
        """Returns predictions in one of `FORMS`."""
        if self.name == "several":
            if form == "probabilities":
                return ops.sigmoid(logits)
            return logits if form == "logits" else ops.cast(logits > 0, logits.dtype)
        if self.name in ("classes", "places") and form != "logits":
            if form == "probabilities":
                return ops.softmax(logits)
            classes = ops.argmax(logits, axis=-1)
            if form == "classes":
                return classes
            return ops.one_hot(classes, logits.shape[-1], dtype=logits.dtype)
        return logits


class Adapted(metrics.Metric):
    """Passes a metric labels and predictions in the forms that it reads, see `LabelKind.adapt`.

    Args:
        metric: a `keras.metrics.Metric`.
        kind: a `LabelKind`.
        reads: the forms of labels and predictions.
        reads_second: bool, whether the metric reads the column of class 1 alone, as yes or no.
        counts_once: bool, whether each label of a weight above 0 counts once.
    """

    def __init__(self, metric, kind, reads, reads_second, counts_once):
        super().__init__(name=metric.name, dtype=metric.dtype)
        self.metric, self.kind, self.reads = metric, kind, reads
        self.result, self.reset_state = metric.result, metric.reset_state
        self.reads_second, self.counts_once = reads_second, counts_once
        if hasattr(metric, "_direction"):  # Callbacks with mode="auto" look it up.
            self._direction = metric._direction

    def update_state(self, y_true, y_pred, sample_weight=None):
        """Adds a batch."""
        y_true, y_pred = ops.convert_to_tensor(y_true), ops.convert_to_tensor(y_pred)
        if self.kind.per_token:
            y_true, y_pred, sample_weight = self._flat(y_true, y_pred, sample_weight)
        if self.kind.scores_of is not None:
            y_pred = self.kind.scores_of(y_pred)
        labels = self.kind.labels(y_true, y_pred, self.reads[0])
        predictions = self.kind.predictions(y_pred, self.reads[1])
        if self.reads_second:
            labels, predictions = labels[..., 1:], predictions[..., 1:]
        if sample_weight is not None:
            if self.counts_once:
                sample_weight = ops.not_equal(sample_weight, 0)
            sample_weight = ops.cast(sample_weight, self.dtype)
        self.metric.update_state(labels, predictions, sample_weight=sample_weight)

    def _flat(self, y_true, y_pred, sample_weight):
        """Returns the labels of all tokens, their predictions and weights, without the batch."""
        are_shares = self.kind.name != "several" and len(y_true.shape) == len(y_pred.shape)
        of_tokens = y_true[..., 0] if are_shares else y_true
        weights = ops.ones(ops.shape(of_tokens), "float32")
        if sample_weight is not None:
            sample_weight = ops.cast(sample_weight, "float32")
            if len(sample_weight.shape) < len(of_tokens.shape):
                sample_weight = sample_weight[:, None]
            weights = weights * sample_weight
        width = y_pred.shape[-1]
        if self.kind.name == "several":
            y_true, are_shares, width = ops.cast(y_true, y_pred.dtype), True, 1
            exists = ops.isfinite(y_true)  # A text that does not exist has the relevance -inf.
            y_true, weights = ops.where(exists, y_true, 0.0), ops.where(exists, weights, 0.0)
        y_true = ops.reshape(y_true, (-1, width) if are_shares else (-1,))
        return y_true, ops.reshape(y_pred, (-1, width)), ops.reshape(weights, (-1,))


def _resolved(metric, kind):
    """Returns a metric as an object, with the name that Keras would show.

    Raises:
        ValueError: there is none of that name, or it reads no labels and predictions.
    """
    name = metric if isinstance(metric, str) else None
    if name in ("accuracy", "acc"):
        by_kind = {"several": metrics.BinaryAccuracy, "scores": metrics.Accuracy}
        metric = by_kind.get(kind.name, metrics.SparseCategoricalAccuracy)
    try:
        metric = metrics.get(metric)
    except ValueError:
        raise ValueError(
            f"There is no metric {metric!r} in keras.metrics. Names are such as 'accuracy', "
            "'precision', 'recall', 'f1_score', 'auc' and 'mse'; or pass an object."
        ) from None
    if type(metric) in (metrics.Mean, metrics.Sum, metrics.Metric) or isinstance(metric, Loss):
        raise ValueError(
            f"`{type(metric).__name__}` is not a metric of labels and predictions. Pass a function "
            "of both, or a metric such as keras.metrics.BinaryCrossentropy()."
        )
    if not isinstance(metric, metrics.Metric):
        name = getattr(metric, "__name__", type(metric).__name__)
        metric = metrics.MeanMetricWrapper(metric, name=name)
    if name is not None:
        metric.name = name
    return metric


def _known(metric, function):
    """Returns the class in `READS` that a metric belongs to, or `None` for a user's own.

    Args:
        metric: a `keras.metrics.Metric`.
        function: the function of a `MeanMetricWrapper`, or `None`.
    """
    cls = type(metric)
    if function is not None and getattr(function, "__module__", "").startswith("keras."):
        name = function.__name__
        cls = _FUNCTIONS.get(name) or type(metrics.get(name))
    return next((base for base in cls.__mro__ if base in READS), None)


def _takes_logits(config):
    """Whether a metric's settings say that it reads logits, as Keras's documentation advises."""
    threshold = config.get("thresholds")
    threshold = config.get("threshold") if threshold is None else threshold
    is_beyond = threshold is not None and (
        np.all(np.less_equal(threshold, 0)) or np.all(np.greater(threshold, 1))
    )
    return bool(config.get("from_logits")) or bool(is_beyond)
