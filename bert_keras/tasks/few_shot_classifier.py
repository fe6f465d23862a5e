"""Classification from a handful of labelled texts."""

import copy
import math
import random
from collections.abc import Sequence
from typing import Any, Unpack

import keras
import numpy as np
from numpy.typing import NDArray

from bert_keras.answers.classes import softmax
from bert_keras.checks import as_texts, check_has_labels, check_int, check_same_length, describe
from bert_keras.models.backbone import Backbone
from bert_keras.preprocessing.text_preprocessor import TextPreprocessor
from bert_keras.tasks.encoded_labels import as_classes, learn_label_names
from bert_keras.tasks.text_classifier import TextClassifier
from bert_keras.tasks.text_embedder import TextEmbedder
from bert_keras.tasks.user_columns import is_columns, normalize_columns
from bert_keras.training.schedules import RATE
from bert_keras.types import Data, Labels, Pooling, TaskOptions, Verbose

# Pairs of an epoch by default: at BERT's rate of 5e-5, and the fewest at a higher rate.
_NUM_PAIRS, _LEAST_PAIRS = 640, 160


@keras.saving.register_keras_serializable(package="bert_keras")
class FewShotClassifier(TextClassifier):
    """Gives each text a class, and learns from a handful of labelled texts per class (SetFit).

    Eight texts give a head little to learn from, but many pairs. `fit` works in two phases:

    1. It pairs each text with texts of its own class, and trains the encoder so that the cosine of
       a pair is higher than those of texts of different classes, see `MultipleNegativesRanking`.
    2. It fits a logistic regression on the vectors of the texts, which becomes the head.

    The result is a `TextClassifier` in every other respect. It suits encoders of sentences best,
    such as MiniLM, whose vectors mean something before they have seen a label.

    Args:
        backbone: a `Backbone`.
        num_classes: int, the number of classes.
        preprocessor: a `TextPreprocessor`, or `None` for answers to ready inputs only.
        label_names: list of `num_classes` str, or `None` to use numbers.
        pooling: `"mean"`, `"cls"`, `"max"` or `"pooler"`: how a text becomes a vector.
            `from_preset` takes the pooling that the checkpoint was trained with.
        frozen: see `Task`; with `"backbone"` only the head is fitted.
        temperature: see `TextClassifier`.
        **kwargs: `name`, `dtype`, `trainable`, see `keras.Model`.

    Raises:
        ValueError: an argument is out of range.

    Example:
    ```python
    classifier = bert_keras.FewShotClassifier.from_preset(
        "minilm_l6_en_uncased", label_names=["negative", "positive"]
    )
    texts = ["What a film!", "I laughed and cried.", "Two hours too long.", "I left early."]
    classifier.fit(texts, ["positive", "positive", "negative", "negative"])
    classifier.classify("I would see it again.")
    ```

    Reference:
        [Tunstall et al., 2022](https://arxiv.org/abs/2209.11055).
    """

    # The head of the regression is one dense layer.
    decided_arguments = {  # noqa: RUF012
        "problem_type": "single_label",
        "head_options": {},
        "dropout": 0.0,
    }

    def __init__(
        self,
        backbone: Backbone,
        num_classes: int | None = None,
        preprocessor: TextPreprocessor | None = None,
        label_names: Sequence[str] | None = None,
        pooling: Pooling = "mean",
        temperature: float = 1.0,
        **kwargs: Unpack[TaskOptions],
    ) -> None:
        kwargs |= {"label_names": label_names, "pooling": pooling, "temperature": temperature}
        super().__init__(backbone, num_classes, preprocessor, **self.decided_arguments, **kwargs)

    def fit(
        self,
        x: Data | None = None,
        y: Labels | None = None,
        batch_size: int | None = None,
        epochs: int | None = None,
        verbose: Verbose = "auto",
        *,
        num_pairs: int | None = None,
        **kwargs: Any,
    ) -> keras.callbacks.History:
        """Trains the encoder on pairs of texts, and fits the head on its vectors.

        The result depends on `keras.utils.set_random_seed` alone. The optimizer and its settings
        are those of `compile`, for the first phase. The default learning rate is 5e-5, and higher
        for encoders less than 768 wide: 2e-4 for one 384 wide.

        Args:
            x: a column of str; a handful for each class is enough.
            y: labels, names or numbers. Each class needs at least one text.
            batch_size: int, how many pairs a step compares, 16 by default.
            epochs: int, passes over the pairs, 1 by default.
            num_pairs: int, how many pairs begin with each text, at least 1. By default there are
                about 640 pairs in all at a rate of 5e-5, and about 160 at 2e-4 or more.
            verbose: see `keras.Model.fit`.
            **kwargs: `callbacks`, see `keras.Model.fit`.

        Returns:
            The `keras.callbacks.History` of the first phase, empty for `frozen="backbone"`.

        Raises:
            TypeError: `x` is not one column of texts, or an argument is unknown.
            ValueError: a class has no text, or labels do not fit; before any compute.
        """
        if unknown := sorted(kwargs.keys() - {"callbacks"}):
            raise TypeError(
                "FewShotClassifier.fit takes texts, labels, `batch_size`, `epochs`, `num_pairs`, "
                f"`verbose` and `callbacks`. Received also: {', '.join(unknown)}. A TextClassifier "
                "takes them; to score held-out texts, call `evaluate`."
            )
        texts, labels = self._labelled_texts(x, y)
        if num_pairs is not None:
            check_int("num_pairs", num_pairs)
        trains_encoder = self.frozen != "backbone"
        embedder = TextEmbedder(
            self.backbone,
            self.preprocessor,
            pooling=self.pooling,
            normalize=False,  # The cosine of the loss does not depend on it.
            frozen=self.frozen if trains_encoder else None,
            dtype=self.dtype_policy,
        )
        embedder.is_fine_tuned = True  # Its rate is that of a short run.
        history = keras.callbacks.History()
        if trains_encoder:
            if num_pairs is None:
                num_pairs = default_num_pairs(len(texts), self.recipe.peak_rate(embedder, 1))
            first, second = pairs_of(labels, num_pairs, random.getrandbits(31))
            columns = [[texts[row] for row in rows] for rows in (first, second)]
            embedder.few_groups_are_meant = True
            embedder.recipe = copy.copy(self.recipe)
            embedder.compile_with(self.recipe.fresh_optimizer(self))
            sizes = (batch_size or 16, 1 if epochs is None else epochs)
            history = embedder.fit(tuple(columns), labels[first], *sizes, verbose, **kwargs)
        vectors = embedder.predict(texts, verbose=0)
        self.head.dense.set_weights(logistic_regression(vectors, labels, self.num_classes))
        return history

    def _labelled_texts(self, x, y):
        """Returns a list of str and labels, int32 `(num_texts,)`, with a text for each class."""
        self.check_has_preprocessor()
        texts, y, _, kind = normalize_columns(self, x, y)
        if kind != "texts" or is_columns(texts):
            raise TypeError(
                f"FewShotClassifier trains on one column of texts. Received: {describe(x)}. Pass a "
                "list of str. Join the texts of pairs, or use a `TextClassifier`."
            )
        check_has_labels(y, "FewShotClassifier", "Pass one label for each text.")
        if (note := learn_label_names(self, y)) and keras.config.is_interactive_logging_enabled():
            print(note)
        texts, labels = as_texts(texts), as_classes(self.encode_labels(y))
        check_same_length("Each text needs one label", texts=texts, labels=labels)
        missing = np.setdiff1d(np.arange(self.num_classes), labels)
        if missing.size:
            names = [self._names()[number] for number in missing]
            raise ValueError(
                f"Each class needs at least one text. Received none for {names}. Add texts, or "
                "make the classifier with the other labels."
            )
        return texts, labels


def default_num_pairs(num_texts: int, learning_rate: float) -> int:
    """Returns how many pairs begin with each text: the higher the rate, the fewer.

    Args:
        num_texts: int.
        learning_rate: float, the highest rate of the run.

    Example:
        >>> [default_num_pairs(16, rate) for rate in (0.0, 5e-5, 1e-4, 2e-4, 5e-4)]
        [40, 40, 20, 10, 10]
        >>> default_num_pairs(1000, 5e-5)
        1
    """
    num_pairs = _NUM_PAIRS * RATE / max(learning_rate, RATE)
    return math.ceil(max(num_pairs, _LEAST_PAIRS) / num_texts)


def pairs_of(labels: NDArray[np.integer], num_pairs: int, seed: int) -> tuple[Any, Any]:
    """Returns pairs of rows with the same label, which begin with each row equally often.

    Args:
        labels: int `(num_texts,)`.
        num_pairs: int, how many pairs begin with each row.
        seed: int.

    Returns:
        Two int arrays `(num_pairs * num_texts,)`. The second row of a pair differs from the first,
        unless the label has no other.
    """
    rng, first, second = np.random.default_rng(seed), [], []
    for label in np.unique(labels):
        (rows,) = np.nonzero(labels == label)
        count = len(rows)
        places = np.repeat(np.arange(count), num_pairs)
        steps = rng.integers(1, count, len(places)) if count > 1 else 0
        first.append(rows[places])
        second.append(rows[(places + steps) % count])
    return np.concatenate(first), np.concatenate(second)


def logistic_regression(
    vectors: NDArray[np.float32], labels: NDArray[np.integer], num_classes: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Returns kernel and bias of a logistic regression, `logits = vectors @ kernel + bias`.

    On vectors with the mean 0 and the mean squared length 1, it minimizes the sum of the
    cross-entropies plus half the sum of the squared kernel. `X^T X / 2` bounds the second
    derivatives from above, so Newton's steps with it in their place need no step size.

    Args:
        vectors: float `(num_texts, dim)`.
        labels: int `(num_texts,)`.
        num_classes: int.

    Returns:
        Float arrays `(dim, num_classes)` and `(num_classes,)`.

    Reference:
        [Böhning, 1992](https://doi.org/10.1007/BF00048682).
    """
    vectors = np.asarray(vectors, "float64")
    center = vectors.mean(axis=0)
    scale = max(1e-12, np.sqrt(np.square(vectors - center).sum(axis=1).mean()))
    inputs = np.column_stack([(vectors - center) / scale, np.ones(len(vectors))])
    penalty = np.append(np.ones(len(center)), 0.0)[:, None]  # None for the bias.
    inverse = np.linalg.inv(inputs.T @ inputs / 2 + np.diagflat(penalty))
    targets, weights = np.eye(num_classes)[labels], np.zeros((len(center) + 1, num_classes))
    for _ in range(1000):
        errors = targets - softmax(inputs @ weights)
        step = inverse @ (inputs.T @ errors - penalty * weights)
        weights += step
        if np.abs(step).max() < 1e-8:
            break
    kernel = weights[:-1] / scale
    return kernel, weights[-1] - center @ kernel
