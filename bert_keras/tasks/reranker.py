"""Scores of how well texts answer a query."""

from collections.abc import Mapping
from typing import Any, Unpack

import keras
import numpy as np
from keras import ops
from numpy.typing import NDArray

from bert_keras.answers.classes import SCORES
from bert_keras.answers.prompts import check_prompts
from bert_keras.answers.ranked_texts import (
    PairClassAnswerer,
    RankAnswerer,
    ScoreAnswerer,
)
from bert_keras.checks import (
    as_column,
    check_choice,
    check_has_labels,
    check_shape,
    raise_at_first,
)
from bert_keras.inputs import TOKEN_IDS
from bert_keras.metrics.label_kinds import LabelKind
from bert_keras.models.backbone import Backbone
from bert_keras.models.model import flatten_texts
from bert_keras.preprocessing.collate import GroupRows
from bert_keras.preprocessing.text_preprocessor import TextPreprocessor
from bert_keras.presets.formats import sentence_transformers
from bert_keras.tasks.embedder import check_equally_long, refuse_equal_negatives
from bert_keras.tasks.task import ServingSignature
from bert_keras.tasks.text_classifier import TextClassifier
from bert_keras.tasks.user_columns import is_columns, is_text
from bert_keras.training.list_losses import RelevanceCrossentropy
from bert_keras.types import (
    HeadOptions,
    Hit,
    Pooling,
    PredictOptions,
    ScoreActivation,
    TaskOptions,
    Texts,
)


@keras.saving.register_keras_serializable(package="bert_keras")
class Reranker(TextClassifier):
    """Scores how well texts answer a query, and ranks them: a cross-encoder.

    The encoder reads the query and a text together, as a pair, so that each token of one attends to
    the other: `score = activation(logit(query, text))`. That is more accurate than the cosine of
    two vectors of a `TextEmbedder`, and slower, since each pair is computed. The usual search finds
    a hundred texts with an embedder and ranks them with a reranker.

    `fit` takes any of these; the loss is binary cross-entropy of each text's relevance:

    | x | y |
    |---|---|
    | `(queries, texts)`, pairs | relevance from 0 to 1, one for each pair |
    | `(queries, lists)`, a list of texts for each query | a list of relevance for each query |
    | `(queries, positives, negatives)`, further columns of negatives | none, or a score for each \
text, `(num_examples, num_texts)` |

    The last two have further losses, which compare the texts of a query:
    `compile(loss=ListwiseCrossentropy())`, `LambdaLoss()` for graded relevance, and with a
    teacher's scores as `y` `MarginMSE()` and `TeacherDivergence()`. For relevance that is rare,
    `RelevanceCrossentropy(pos_weight=...)`. With another loss, relevance may be any finite number.
    `predict` takes pairs and returns the logits.

    Args:
        backbone: a `Backbone`.
        preprocessor: a `TextPreprocessor`, or `None` for ready inputs only.
        activation: `"sigmoid"`, `"linear"` or `"tanh"`, from the logit to the score. Checkpoints of
            sentence-transformers bring their own; those without take `"sigmoid"`, as there.
        dropout, pooling, head_options, frozen: see `TextClassifier`.
        prompts: dict, name -> text, that go before queries; `None` for none.
        default_prompt: the name of the prompt of all queries, in training too; `None` for none.
            Checkpoints of sentence-transformers bring both.
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

    answerers = (RankAnswerer, ScoreAnswerer, PairClassAnswerer)
    form = "candidates"
    may_have_several_texts = True
    needs_labels = False  # Positives and negatives are labels themselves.
    head_config_keys = ("num_classes", "pooling", "head_options")
    decided_arguments = {  # noqa: RUF012
        "num_classes": 1,
        "problem_type": "regression",
        "label_names": None,
        "temperature": 1.0,
    }
    serving_signature = ServingSignature("scores", None, (2,))

    def __init__(
        self,
        backbone: Backbone,
        preprocessor: TextPreprocessor | None = None,
        activation: ScoreActivation = "sigmoid",
        dropout: float | None = None,
        pooling: Pooling | None = None,
        head_options: HeadOptions | None = None,
        prompts: Mapping[str, str] | None = None,
        default_prompt: str | None = None,
        **kwargs: Unpack[TaskOptions],
    ) -> None:
        kwargs |= {"pooling": pooling, "head_options": head_options}
        kwargs |= {"preprocessor": preprocessor, "dropout": dropout}
        super().__init__(backbone, **self.decided_arguments, **kwargs)
        self.activation = check_choice("activation", activation, tuple(SCORES))
        self.prompts = check_prompts(prompts, default_prompt)
        self.default_prompt = default_prompt

    def call(self, inputs, token_vectors=None, training=None):
        if len(inputs[TOKEN_IDS].shape) == 2:
            return super().call(inputs, token_vectors, training)
        logits = super().call(flatten_texts(inputs), training=training)
        return ops.reshape(logits, (-1, ops.shape(inputs[TOKEN_IDS])[1]))

    def default_loss(self, label_smoothing):
        """Returns binary cross-entropy of the logits."""
        return RelevanceCrossentropy(label_smoothing=label_smoothing)

    def default_metrics(self):
        """Returns accuracy, for relevance of 0 or 1."""
        return [LabelKind("several", per_token=True).adapt("accuracy")]

    @property
    def label_kind(self):
        """What the labels are, see `LabelKind`: with another loss they may be any numbers."""
        return LabelKind("several" if self.recipe.uses_task_loss else "none", per_token=True)

    @property
    def write_hub_settings(self) -> Any:
        """What `export_to_huggingface` adds: without prompts the config says all."""
        return sentence_transformers.write_cross_encoder_settings if self.prompts else None

    # Labels

    def encode_labels(self, labels):
        """Returns relevance as float32 `(num_examples, 1)`, see `TextClassifier`.

        Raises:
            ValueError: there is none, or it is not from 0 to 1. With another loss any finite
                number will do.
        """
        advice = "Pass the relevance of each pair, or `(queries, positives, negatives)`."
        check_has_labels(labels, "Reranker", advice)
        labels = super().encode_labels(labels)
        self._check_relevance(labels)
        return labels

    def _check_relevance(self, labels):
        if self.recipe.uses_task_loss:
            rule = "Relevance must be from 0 to 1"
            advice = "Scale it, or compile with a loss for other scores."
            raise_at_first((labels < 0) | (labels > 1), labels, rule, advice)

    def _list_labels(self, labels, counts):
        """Returns the labels of lists of texts, float32 `(num_queries, num_texts)`.

        Args:
            labels: a list of numbers for each query, or an array.
            counts: list of int, the number of texts of each query.

        Raises:
            ValueError: lists differ in length from those of the texts, or a label does not fit.
        """
        labels = [np.asarray(row) for row in labels]
        wrong = [row.shape != (count,) for row, count in zip(labels, counts, strict=True)]
        raise_at_first(wrong, labels, "Each text of a query needs a label, and no others")
        flat = np.concatenate(labels) if labels else np.zeros(0)
        check_shape("Relevance", flat, ("num_texts",), "iufb")
        raise_at_first(~np.isfinite(flat), flat, "Each text needs a label that is a finite number")
        self._check_relevance(flat)
        exists = np.arange(max(counts, default=1)) < np.asarray(counts, int)[:, None]
        padded = np.full(exists.shape, -np.inf, "float32")
        padded[exists] = flat
        return padded

    def encode_ready_labels(self, labels, inputs):
        """Returns the labels of ready inputs, see `encode_labels`."""
        shape = np.shape(inputs[TOKEN_IDS])
        if len(shape) == 2 or labels is None:
            return self.encode_labels(labels)
        return self._list_labels(labels, [shape[1]] * shape[0])

    def encode_texts(self, x, y=None, sample_weight=None, training=False):
        """Returns pairs, or lists of pairs, as rows of token ids, see `Task`."""
        has_columns = is_columns(x)
        if not has_columns or (len(x) == 2 and is_text(x[1])):
            return super().encode_texts(x, y, sample_weight, training)
        if not training:
            raise ValueError(
                "`predict` takes pairs of a query and a text. Received: several texts a query. "
                "Call `score(query, texts)` or `rank(query, texts)`."
            )
        queries, *columns = map(as_column, x)
        queries = self.answerer("score").prompted(queries)
        check_equally_long([queries, *columns])
        lists = columns[0] if len(columns) == 1 else list(zip(*columns, strict=True))
        if len(columns) > 1 and y is None:
            refuse_equal_negatives([queries, *columns])
            y = [[1.0, *[0.0] * (len(columns) - 1)]] * len(queries)
        counts = [len(texts) for texts in lists]
        raise_at_first(np.equal(counts, 0), lists, "Each query needs at least one text")
        labels = self.encode_labels(None) if y is None else self._list_labels(y, counts)
        rows = GroupRows.of_lists(self.preprocessor, queries, lists)
        return rows.labelled(labels, sample_weight)

    def score(
        self,
        queries: str | Texts,
        texts: Texts,
        *,
        prompt: str | None = None,
        **options: Unpack[PredictOptions],
    ) -> NDArray[np.float32]:
        """Returns how well each text answers its query.

        Args:
            queries: a column of str, one for each text; or a str for all texts.
            texts: a column of str.
            batch_size: int, 32 by default.
            verbose: see `keras.Model.predict`.
            prompt: what goes before each query: a name in `prompts`, a text such as `"query: "`, or
                `""` for nothing. `None` takes `default_prompt`.

        Returns:
            float32 array `(num_texts,)`, after the activation.

        Raises:
            TypeError: something is not text.
            ValueError: there are not as many queries as texts, or no prompt of that name.
        """
        return self.ask("score", queries, texts, prompt=prompt, **options)

    def rank(
        self,
        query: str,
        texts: Texts,
        top_k: int | None = None,
        *,
        prompt: str | None = None,
        **options: Unpack[PredictOptions],
    ) -> list[Hit]:
        """Returns the texts that answer a query best.

        Args:
            query: a str.
            texts: a column of str.
            top_k: int, the number of texts; `None` for all.
            batch_size: int, 32 by default.
            verbose: see `keras.Model.predict`.
            prompt: see `score`.

        Returns:
            A list of `{"index": place of the text, "score": float}`, best first.

        Raises:
            TypeError: something is not text.
            ValueError: `top_k` is below 1, or there is no prompt of that name.
        """
        return self.ask("rank", query, texts, top_k=top_k, prompt=prompt, **options)
