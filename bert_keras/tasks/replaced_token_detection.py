"""ELECTRA's pre-training: a generator replaces tokens, a discriminator finds them."""

import os
from typing import Any, Unpack

import keras
import numpy as np
from keras import ops

from bert_keras.answers.tokens import ReplacedTokenAnswerer
from bert_keras.checks import check_number, check_shape, raise_at_first
from bert_keras.engine import variable_paths
from bert_keras.heads.replaced_token import ReplacedTokenHead
from bert_keras.inputs import MASK_POSITIONS, PADDING_MASK, TOKEN_IDS
from bert_keras.metrics.label_kinds import LabelKind
from bert_keras.models.electra import share_embeddings
from bert_keras.presets import families
from bert_keras.tasks.masked_lm import MaskedLM
from bert_keras.tasks.task import Task
from bert_keras.tasks.teacher_student import JointTask, have_one_vocabulary
from bert_keras.tasks.validation import head_for
from bert_keras.training.losses import SigmoidCrossentropy
from bert_keras.types import LayerOptions, Path, PredictOptions, Tensor, Texts

OUTPUTS = ("masked_lm", "detection")
# Attributes that must be equal in both backbones: the inputs, and what shared embeddings depend on.
_SHARED_SETTINGS = (
    "input_names",
    "compute_dtype",
    "vocabulary_size",
    "embedding_dim",
    "max_sequence_length",
    "num_segments",
    "padding_id",
    "layer_norm_epsilon",
)


def _fake_rate(labels, logits):
    """Returns which tokens are replaced."""
    return labels


_fake_rate.reads = ("one_hot", "one_hot")  # See `LabelKind.adapt`.


@keras.saving.register_keras_serializable(package="bert_keras")
class ReplacedTokenDetector(Task):
    """Predicts for each token whether it is original or replaced, section 2 of the paper.

    A dense layer with the backbone's activation and one output on each token. A generator replaces
    tokens, which gives the labels: `ReplacedTokenDetection` trains both together. Ready inputs with
    labels from another source train the detector alone.

    | what | form |
    |---|---|
    | ready x | dict of ints `(batch, seq_len)`, see `bert_keras.inputs` |
    | ready y | int `(batch, seq_len)`, 1 for a replaced token; padding has weight 0 |
    | output | float32 `(batch, seq_len)`, logits; of texts a list of float32 `(num_tokens,)` |

    Args:
        backbone: a `Backbone`.
        preprocessor: a `TextPreprocessor`, or `None` for ready inputs only.
        frozen: `None`, `"embeddings"`, `"backbone"`, or an int, see `Task`.
        **kwargs: `name`, `dtype`, `trainable`, see `keras.Model`.

    Example:
    ```python
    model = bert_keras.ReplacedTokenDetector.from_preset("electra")  # a folder
    model.is_replaced("The chef ate the meal that he had cooked.")
    model.save_to_preset("checked")
    bert_keras.TextClassifier.from_preset("checked", num_classes=2)
    ```

    Reference:
        [Clark et al., 2020](https://arxiv.org/abs/2003.10555), section 2.
    """

    answerers = (ReplacedTokenAnswerer,)
    form = "sentences"
    label_per_token = True
    has_classes = False
    label_kind = LabelKind("several", per_token=True)
    is_fine_tuned = False

    def make_head(self):
        """Returns a new head, not built yet."""
        options = families.head_options(self.backbone, "ReplacedTokenDetector")
        return head_for(self, ReplacedTokenHead, "activation", "layer_norm_epsilon", **options)

    def call(self, inputs, training=None):
        return self.head(self.backbone_outputs(inputs, training=training))

    def default_loss(self, label_smoothing):
        """Returns the mean cross-entropy over tokens, by weight."""
        return SigmoidCrossentropy(label_smoothing=label_smoothing)

    def default_metrics(self):
        """Returns the rate of replaced tokens, and the area under the ROC curve.

        Accuracy says little if few tokens are replaced: a model that finds none has a high one.
        """
        return [
            keras.metrics.MeanMetricWrapper(_fake_rate, name="fake_rate"),
            keras.metrics.AUC(name="auc"),
        ]

    def encode_labels(self, labels):
        """Returns labels of ready inputs as int32 `(batch, seq_len)`.

        Args:
            labels: int or bool `(batch, seq_len)`, 1 for a replaced token.

        Raises:
            ValueError: a label is anything else.
        """
        labels = check_shape("Labels of tokens", np.asarray(labels), ("batch", "seq_len"))
        rule = "Labels of tokens must be 0, or 1 for a replaced token"
        raise_at_first(~np.isin(labels, (0, 1)), labels, rule)
        return labels.astype("int32")

    def encode_texts(self, x, y=None, sample_weight=None, training=False):
        """Returns texts to predict as rows of token ids, see `Task`.

        Raises:
            ValueError: they are to train on.
        """
        if training:
            raise ValueError(
                "A detector learns from ready inputs, or from texts in which a generator replaces "
                "tokens. Received: texts. Train a `ReplacedTokenDetection`."
            )
        return super().encode_texts(x)

    def is_replaced(self, text: str | Texts, **options: Unpack[PredictOptions]) -> Any:
        """Returns how likely each token was replaced.

        Args:
            text: a str, or a column of str.
            batch_size: int, 32 by default.
            verbose: see `keras.Model.predict`.

        Returns:
            For a str a list of dicts, one per token: `{"token": str, "start": int, "end": int,
            "probability": float}`, where `text[start:end]` is what the token stands for. For a
            column, a list of such lists.

        Raises:
            TypeError, ValueError: something is not text, or longer than `max_length`.

        Example:
        ```python
        model.is_replaced("The chef ate the meal.")[2]
        # {"token": "ate", "start": 9, "end": 12, "probability": 0.71}
        ```
        """
        return self.ask("is_replaced", text, **options)


@keras.saving.register_keras_serializable(package="bert_keras")
class ReplacedTokenDetection(JointTask):
    """Trains a generator and a discriminator on the same texts, section 2 of the paper.

    The generator, a masked language model, draws a token for each masked position from its own
    distribution. The discriminator reads the text with these tokens and predicts for every token
    whether it is the original one. If the drawn token equals the original, it is not a replacement.

    `loss = mean over masked positions of -log p(token) + detection_weight * mean over all real
    tokens of the detector's cross-entropy`, including `[CLS]` and `[SEP]`. No gradient passes
    through the drawing: the generator learns as a `MaskedLM`. Both share their embeddings (tables
    and norm, but not a projection), which start as the discriminator's. The paper's generators are
    as deep as their discriminators and a quarter to a half as wide, see `embedding_dim` of
    `ElectraBackbone`.

    `fit` and `evaluate` take what `generator` takes: texts, which are masked anew in each epoch, or
    `PretrainingBatches(has_next_sentence=False)`. The `Masking` is the generator's. A token is
    drawn for every chosen position, also where the masking keeps the token or puts a random one.
    The paper hides 85 % of the chosen tokens and keeps the rest, `masking={"mask_share": 0.85,
    "random_share": 0.0}`, and draws positions with replacement, so that fewer are masked than here.

    `fit` draws new tokens in each step; `evaluate` always draws the same. After training, fine-tune
    the discriminator: `model.discriminator.save_to_preset(folder)`.

    | what | form |
    |---|---|
    | raw x, ready x, y and sample_weight | see `MaskedLM`; `mask_positions` are required. Those |
    | | at 0 do not count: the first token is never replaced |
    | output | dict: `masked_lm` float32 `(batch, num_predictions, vocabulary_size)`, |
    | | `detection` float32 `(batch, seq_len)`, logits, |
    | | `drawn_ids` int32 `(batch, num_predictions)` |

    Args:
        generator: a `MaskedLM`.
        discriminator: a `ReplacedTokenDetector` on a backbone of the same family.
        detection_weight: float, see the loss; the paper has 50.
        **kwargs: `name`, `dtype` (by default the discriminator's), `trainable`, see
            `keras.Model`.

    Raises:
        TypeError: a task is of another class.
        ValueError: their vocabularies differ, or their embeddings cannot be shared.

    Example:
    ```python
    sizes = {"vocabulary_size": 30522, "num_layers": 12, "embedding_dim": 128}
    small = bert_keras.ElectraBackbone(
        num_heads=1, hidden_dim=64, intermediate_dim=256, **sizes
    )
    large = bert_keras.ElectraBackbone(
        num_heads=4, hidden_dim=256, intermediate_dim=1024, **sizes
    )
    model = bert_keras.ReplacedTokenDetection(
        bert_keras.MaskedLM(small, preprocessor),
        bert_keras.ReplacedTokenDetector(large, preprocessor),
    )
    model.fit(texts, epochs=3)
    model.discriminator.save_to_preset("electra")
    bert_keras.TextClassifier.from_preset("electra", num_classes=2)
    ```

    Reference:
        [Clark et al., 2020](https://arxiv.org/abs/2003.10555), sections 2 and 3.2;
        google-research/electra, `run_pretraining.py`, `pretrain/pretrain_helpers.py`.
    """

    part_names = ("generator", "discriminator")
    reader_name = "generator"
    further_inputs = (MASK_POSITIONS,)

    def __init__(
        self,
        generator: MaskedLM,
        discriminator: ReplacedTokenDetector,
        detection_weight: float = 50.0,
        **kwargs: Unpack[LayerOptions],
    ) -> None:
        _check_parts(generator, discriminator)
        super().__init__(generator, discriminator, **kwargs)
        self.detection_weight = check_number("detection_weight", detection_weight)
        self.seed_generator = keras.random.SeedGenerator()
        share_embeddings(generator.backbone, discriminator.backbone)
        # Functions that were compiled before are dropped.
        variable_paths.changed(generator.backbone.embeddings, generator.backbone, generator)
        generator.compile_with(generator.recipe.fresh_optimizer(generator))

    @property
    def tasks(self) -> tuple[MaskedLM, ReplacedTokenDetector]:
        """The tasks that are trained."""
        return (self.generator, self.discriminator)

    def call(self, inputs, training=None):
        masked_lm = self.generator(inputs, training=training)
        # Outside training the drawing is always the same.
        seed = self.seed_generator if training else 0
        logits = ops.stop_gradient(masked_lm)
        flat = ops.reshape(logits, (-1, logits.shape[-1]))
        drawn = keras.random.categorical(flat, 1, dtype="int32", seed=seed)
        inputs, positions = dict(inputs), inputs[MASK_POSITIONS]
        drawn = ops.reshape(drawn, ops.shape(positions))
        del inputs[MASK_POSITIONS]
        inputs[TOKEN_IDS] = put_at(inputs[TOKEN_IDS], positions, drawn)
        detection = self.discriminator(inputs, training=training)
        return {"masked_lm": masked_lm, "detection": detection, "drawn_ids": drawn}

    # Loss and metrics: the drawn tokens decide which are replaced.

    def default_loss_weights(self):
        """Returns the weights of the losses of `masked_lm` and `detection`."""
        return {"masked_lm": 1.0, "detection": self.detection_weight}

    def default_loss(self, label_smoothing):
        """Returns the loss of each task."""
        losses = (task.default_loss(label_smoothing) for task in self.tasks)
        return dict(zip(OUTPUTS, losses, strict=True))

    def default_metrics(self):
        """Returns the metrics of each task."""
        metrics = (task.default_metrics() for task in self.tasks)
        return dict(zip(OUTPUTS, metrics, strict=True))

    @property
    def label_kind(self):
        """What the labels of each task are, see `LabelKind`."""
        return dict(zip(OUTPUTS, (task.label_kind for task in self.tasks), strict=True))

    def loss_arguments(self, x, y, y_pred, sample_weight):
        """Returns labels, outputs and weights, each a dict of both tasks."""
        positions, token_ids = x[MASK_POSITIONS], x[TOKEN_IDS]
        labels = ops.cast(y, "int32")
        weights = ops.ones(ops.shape(labels)) if sample_weight is None else sample_weight
        weights = ops.cast(weights, "float32")
        differs = ops.cast(ops.not_equal(y_pred["drawn_ids"], labels), "int32")
        is_replaced = put_at(ops.zeros_like(token_ids), positions, differs)
        # In a row of weight 0, every prediction has weight 0.
        is_real = ops.cast(x.get(PADDING_MASK, ops.ones_like(token_ids)), "float32")
        token_weights = is_real * ops.max(weights, axis=1, keepdims=True)
        return (
            {"masked_lm": labels, "detection": is_replaced},
            {name: y_pred[name] for name in OUTPUTS},
            {"masked_lm": weights, "detection": token_weights},
        )

    def encode_texts(self, x, y=None, sample_weight=None, training=False):
        """Returns texts as rows to mask, see `MaskedLM`.

        Raises:
            ValueError: they are neither to train nor to evaluate on.
        """
        if not training:
            raise ValueError(
                "Predictions for texts depend on the task that reads them. Received: texts. Use "
                "`discriminator.is_replaced(texts)`, or `generator.fill_mask(texts)`."
            )
        return super().encode_texts(x, y, sample_weight, training)

    # Files

    def get_config(self):
        return {**super().get_config(), "detection_weight": self.detection_weight}

    def save_to_preset(self, folder: Path) -> None:
        """Writes the discriminator into `folder`, the generator into `folder/generator`.

        Args:
            folder: str or path.
        """
        self.discriminator.save_to_preset(folder)
        self.generator.save_to_preset(os.path.join(folder, "generator"))


def put_at(rows: Tensor, positions: Tensor, values: Tensor) -> Tensor:
    """Returns rows with values put at some positions.

    Args:
        rows: int `(batch, seq_len)`.
        positions: int `(batch, num_positions)`; nothing is put at 0, the first token.
        values: int `(batch, num_positions)`, at least 0.

    Returns:
        int32 `(batch, seq_len)`.
    """
    columns = ops.arange(ops.shape(rows)[1], dtype="int32")
    positions = ops.cast(positions, "int32")[:, :, None]
    is_here = ops.logical_and(ops.equal(positions, columns), positions > 0)
    new = ops.max(ops.where(is_here, values[:, :, None], -1), axis=1)
    return ops.where(new >= 0, new, ops.cast(rows, "int32"))


def _check_parts(generator, discriminator):
    """Raises `TypeError` or `ValueError` unless both tasks can train together."""
    is_pair = isinstance(discriminator, ReplacedTokenDetector)
    if not is_pair or not isinstance(generator, MaskedLM) or generator.has_next_sentence:
        raise TypeError(
            "A ReplacedTokenDetection needs a MaskedLM as generator and a ReplacedTokenDetector as "
            f"discriminator. Received: {type(generator).__name__} and "
            f"{type(discriminator).__name__}."
        )
    backbones = [task.backbone for task in (generator, discriminator)]
    settings = {name: [getattr(x, name) for x in backbones] for name in _SHARED_SETTINGS}
    settings["family"] = [type(x.embeddings).__name__ for x in backbones]
    differing = {name: pair for name, pair in settings.items() if pair[0] != pair[1]}
    if differing or not have_one_vocabulary(generator, discriminator):
        raise ValueError(
            "Generator and discriminator must have the same vocabulary, inputs and embeddings, "
            f"which they share. They differ in: {differing or 'vocabulary'}. A generator narrower "
            "than its discriminator needs `embedding_dim`."
        )
