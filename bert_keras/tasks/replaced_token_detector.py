"""Finding the tokens of a text that were replaced: ELECTRA's discriminator."""

from typing import TYPE_CHECKING, Any, Self, Unpack

import keras
import numpy as np

from bert_keras.answers.tokens import ReplacedTokenAnswerer
from bert_keras.checks import check_shape, refuse_first
from bert_keras.heads.replaced_token import ReplacedTokenHead
from bert_keras.metrics.label_kinds import LabelKind
from bert_keras.metrics.streaming import TokenRate
from bert_keras.models.backbone import Backbone
from bert_keras.preprocessing.text_preprocessor import TextPreprocessor
from bert_keras.presets import families
from bert_keras.tasks.compatibility import head_for
from bert_keras.tasks.keyword_options import PresetOptions, TaskOptions
from bert_keras.tasks.task import Task
from bert_keras.training.losses import SigmoidCrossentropy
from bert_keras.types import Frozen, Path, Texts, Verbose


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

    if TYPE_CHECKING:

        @classmethod
        def from_preset(cls, preset: Path, **kwargs: Unpack[PresetOptions]) -> Self: ...

    def __init__(
        self,
        backbone: Backbone,
        preprocessor: TextPreprocessor | None = None,
        frozen: Frozen | None = None,
        **kwargs: Unpack[TaskOptions],
    ) -> None:
        super().__init__(backbone, preprocessor=preprocessor, frozen=frozen, **kwargs)
        options = families.head_options(backbone, "ReplacedTokenDetector")
        self.head = head_for(self, ReplacedTokenHead, **options)
        self.build()

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
            TokenRate("fake_rate"),
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
        refuse_first(~np.isin(labels, (0, 1)), labels, rule)
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

    def is_replaced(
        self, text: str | Texts, batch_size: int | None = None, verbose: Verbose = 0
    ) -> Any:
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
        return self.ask("is_replaced", text, batch_size=batch_size, verbose=verbose)
