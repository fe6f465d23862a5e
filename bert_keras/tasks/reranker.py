"""Scores of how well texts answer a query."""

from typing import TYPE_CHECKING, Any, Self, Unpack

import keras
import numpy as np
from numpy.typing import NDArray

from bert_keras.answers.probabilities import SCORES, activated
from bert_keras.checks import check_choice, check_int, refuse_first
from bert_keras.models.backbone import Backbone
from bert_keras.preprocessing.text_preprocessor import TextPreprocessor
from bert_keras.tasks.keyword_options import RerankerOptions, TaskOptions
from bert_keras.tasks.text_answer import TextAnswer
from bert_keras.tasks.text_classifier import TextClassifier
from bert_keras.tasks.user_columns import as_column
from bert_keras.types import (
    Frozen,
    HeadOptions,
    Hit,
    Path,
    Pooling,
    ScoreActivation,
    Texts,
    Verbose,
)


@keras.saving.register_keras_serializable(package="bert_keras")
class Reranker(TextClassifier):
    """Scores how well texts answer a query, and ranks them: a cross-encoder.

    The encoder reads the query and a text together, as a pair, so that each token of one attends to
    the other: `score = activation(logit(query, text))`. That is more accurate than the cosine of
    two vectors of a `TextEmbedder`, and slower, since each pair is computed. The usual search finds
    a hundred texts with an embedder and ranks them with a reranker.

    `fit` takes pairs, `(queries, texts)`, and their relevance from 0 to 1. The loss is binary
    cross-entropy of the logits. `predict` returns the logits.

    Args:
        backbone: a `Backbone`.
        preprocessor: a `TextPreprocessor`, or `None` for ready inputs only.
        activation: `"sigmoid"`, `"linear"` or `"tanh"`, from the logit to the score. Checkpoints of
            sentence-transformers bring their own; those without take `"sigmoid"`, as there.
        dropout, pooling, head_options, frozen: see `TextClassifier`.
        **kwargs: `name`, `dtype`, `trainable`, see `keras.Model`.

    Raises:
        ValueError: an argument is out of range.

    Example:
    ```python
    reranker = bert_keras.Reranker.from_preset("hf://cross-encoder/ms-marco-MiniLM-L6-v2")
    reranker.rank("Who eats?", ["It rains.", "A man is eating."], top_k=1)
    reranker.fit((["Who eats?"] * 2, ["It rains.", "A man is eating."]), [0, 1])
    ```

    Reference:
        [Nogueira and Cho, 2019](https://arxiv.org/abs/1901.04085).
    """

    head_arguments = ("num_classes", "pooling", "head_options")
    decided_arguments = {  # noqa: RUF012
        "num_classes": 1,
        "problem_type": "regression",
        "label_names": None,
        "temperature": 1.0,
    }
    text_answer = TextAnswer("scores", None, (2,))

    if TYPE_CHECKING:

        @classmethod
        def from_preset(cls, preset: Path, **kwargs: Unpack[RerankerOptions]) -> Self: ...

    def __init__(
        self,
        backbone: Backbone,
        preprocessor: TextPreprocessor | None = None,
        activation: ScoreActivation = "sigmoid",
        dropout: float | None = None,
        pooling: Pooling | None = None,
        head_options: HeadOptions | None = None,
        frozen: Frozen | None = None,
        **kwargs: Unpack[TaskOptions],
    ) -> None:
        kwargs |= {"pooling": pooling, "head_options": head_options, "frozen": frozen}
        kwargs |= {"preprocessor": preprocessor, "dropout": dropout}
        super().__init__(backbone, **self.decided_arguments, **kwargs)
        self.activation = check_choice("activation", activation, tuple(SCORES))

    def default_loss(self, label_smoothing):
        """Returns binary cross-entropy of the logits."""
        return keras.losses.BinaryCrossentropy(
            from_logits=True,
            label_smoothing=label_smoothing,
            reduction="mean_with_sample_weight",
        )

    def default_metrics(self):
        """Returns accuracy, for relevance of 0 or 1."""
        return [keras.metrics.BinaryAccuracy(threshold=0.0, name="accuracy")]

    def encode_labels(self, labels):
        """Returns relevance as float32 `(num_examples, 1)`, see `TextClassifier`.

        Raises:
            ValueError: it is not from 0 to 1. With another loss any finite number will do.
        """
        labels = super().encode_labels(labels)
        if self.recipe.is_own_loss:
            rule = "Relevance must be from 0 to 1"
            advice = "Scale it, or compile with a loss for other scores."
            refuse_first((labels < 0) | (labels > 1), labels, rule, advice)
        return labels

    def answer_config(self) -> dict[str, Any]:
        """Returns what an exported folder needs to know of the scores."""
        return {"activation": self.activation}

    def score(
        self,
        queries: str | Texts,
        texts: Texts,
        batch_size: int | None = None,
        verbose: Verbose = 0,
    ) -> NDArray[np.float32]:
        """Returns how well each text answers its query.

        Args:
            queries: a column of str, one for each text; or a str for all texts.
            texts: a column of str.
            batch_size: int, 32 by default.
            verbose: see `keras.Model.predict`.

        Returns:
            float32 array `(num_texts,)`, after the activation.

        Raises:
            TypeError: something is not text.
            ValueError: there are not as many queries as texts.
        """
        texts = as_column(texts, "texts")
        queries = [queries] * len(texts) if isinstance(queries, str) else queries
        logits = self.predict((as_column(queries, "queries"), texts), batch_size, verbose=verbose)
        return activated(logits[:, 0], self.activation)

    def rank(
        self,
        query: str,
        texts: Texts,
        top_k: int | None = None,
        batch_size: int | None = None,
        verbose: Verbose = 0,
    ) -> list[Hit]:
        """Returns the texts that answer a query best.

        Args:
            query: a str.
            texts: a column of str.
            top_k: int, the number of texts; `None` for all.
            batch_size: int, 32 by default.
            verbose: see `keras.Model.predict`.

        Returns:
            A list of `{"index": place of the text, "score": float}`, best first.

        Raises:
            TypeError: something is not text.
            ValueError: `top_k` is below 1.
        """
        if top_k is not None:
            check_int("top_k", top_k)
        scores = self.score(query, texts, batch_size, verbose)
        best = np.argsort(-scores, kind="stable")[:top_k]
        return [{"index": int(index), "score": float(scores[index])} for index in best]
