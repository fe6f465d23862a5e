"""Texts as sparse vectors: a weight for each token of the vocabulary."""

import types
from collections.abc import Mapping
from typing import Any, ClassVar, Unpack

import keras
import numpy as np
from keras import ops

from bert_keras.answers.text_vectors import SparseAnswerer
from bert_keras.checks import (
    as_array,
    check_bool,
    check_number,
    check_shape,
    check_type,
    raise_at_first,
    refuse_options,
    require,
)
from bert_keras.engine.keras_internals import schedule_of
from bert_keras.engine.train_step import inner_optimizer
from bert_keras.heads.masked_tokens import HEAD_OPTIONS, OF_VOCABULARY
from bert_keras.heads.splade import SpladeHead
from bert_keras.inputs import PADDING_MASK
from bert_keras.models.backbone import Backbone
from bert_keras.preprocessing.text_preprocessor import TextPreprocessor
from bert_keras.presets import families
from bert_keras.presets.formats import sentence_transformers
from bert_keras.tasks.embedder import Embedder
from bert_keras.tasks.validation import check_head_options, head_for
from bert_keras.training.contrastive import MultipleNegativesRanking
from bert_keras.types import EmbedderOptions, PredictOptions, Texts


@keras.saving.register_keras_serializable(package="bert_keras")
class SparseTextEmbedder(Embedder):
    """Gives each text a weight for each token of the vocabulary: SPLADE.

    The head for masked tokens says which tokens the text is about: tokens in it, and others that
    could be:

    `weight[v] = log(1 + relu(max over tokens t of logit[t, v]))`.

    Almost all weights are 0, so that an inverted index can search texts, and a person can read why
    a text was found. Two texts are compared by the dot product of their weights.

    Training takes the columns of texts and the objectives of `TextEmbedder`; in `"ranking"` the
    score is the dot product. A penalty keeps the weights sparse (Paria et al., 2020):

    `loss + ramp * sum over tokens v of (mean over the batch of weight[v])^2 * regularization`,

    with a factor for queries, the first column, and one for documents, the others. `ramp` rises as
    the square of the step, over the first third of the steps of `fit`, since a penalty from the
    beginning would drive all weights to 0. With an optimizer of your own, whose number of steps
    is unknown, it is 1.

    With `query_weights`, queries need no model: `embed(texts, "query")` gives each token that
    occurs in a query its weight, such as its inverse document frequency (IDF). Such an embedder
    answers, and does not train.

    Args:
        backbone: a `Backbone`.
        preprocessor: a `TextPreprocessor`, or `None` for ready inputs only.
        log_twice: bool, whether weights are `log(1 + weight)` once more, as OpenSearch's models
            have them.
        regularization: tuple of two floats from 0, for queries and for documents.
        prompts, default_prompt, objective, frozen: see `TextEmbedder`.
        head_options: dict, see `MaskedLM`.
        query_weights: dict, token -> weight from 0, such as the `idf.json` of OpenSearch's models;
            tokens that it lacks weigh 0. `None` for queries that the model reads.
        **kwargs: `name`, `dtype`, `trainable`, see `keras.Model`.

    Call arguments:
        inputs: dict of ints `(batch, seq_len)` or `(batch, num_texts, seq_len)`.
        training: bool, whether dropout is active.

    Returns:
        float32 `(batch, vocabulary_size)` or `(batch, num_texts, vocabulary_size)`.

    Raises:
        ValueError: an argument is out of range.

    Example:
    ```python
    embedder = bert_keras.SparseTextEmbedder.from_preset("hf://naver/splade-v3")
    embedder.token_weights("How do I cure a headache?", top_k=1)  # [("headache", 2.3)]
    documents = embedder.embed(["Aspirin helps.", "It rains."])  # scipy.sparse, (2, 30522)
    embedder.embed(["headache"]) @ documents.T
    ```

    Reference:
        [Formal et al., 2021](https://arxiv.org/abs/2109.10086);
        [Paria et al., 2020](https://arxiv.org/abs/2004.05665).
    """

    answerers = (SparseAnswerer,)
    # Family settings and presets treat this head as that of a `MaskedLM`.
    head_like = "MaskedLM"
    compatible_heads = types.MappingProxyType(
        {
            "MaskedLM": {"head/": "head/"},
            **{saved: {"head/": "head/masked_lm/"} for saved in ("Pretraining", "SpanBoundary")},
        }
    )
    similarity = "dot"
    write_hub_settings = staticmethod(sentence_transformers.write_sparse_settings)
    objectives: ClassVar[dict[str, tuple]] = {
        **Embedder.objectives,
        "ranking": (lambda: MultipleNegativesRanking(scale=1.0, similarity="dot"), 2, None),
    }

    def __init__(
        self,
        backbone: Backbone,
        preprocessor: TextPreprocessor | None = None,
        log_twice: bool = False,
        regularization: tuple[float, float] = (5e-5, 3e-5),
        head_options: dict[str, Any] | None = None,
        query_weights: Mapping[str, float] | None = None,
        **kwargs: Unpack[EmbedderOptions],
    ) -> None:
        super().__init__(backbone, preprocessor, **kwargs)
        self.log_twice = check_bool("log_twice", log_twice)
        self.query_weights = check_query_weights(query_weights, self.tokenizer)
        advice = "Pass two numbers, for queries and for documents; (0, 0) for none."
        factors = as_array("`regularization`", regularization, advice)
        check_shape("`regularization`", factors, (2,), "iuf", advice)
        self.regularization = tuple(check_number("regularization", float(x)) for x in factors)
        self.head_options = check_head_options(head_options, HEAD_OPTIONS)
        options = {**families.head_options(backbone, self), **(self.head_options or {})}
        self.head = head_for(self, SpladeHead, *OF_VOCABULARY, log_twice=log_twice, **options)
        # A seed generator counts the steps in its first value: its state is not a weight, and a
        # continued run restores it. Chunks advance only the second value, see `in_chunks`.
        self.step_counter = keras.random.SeedGenerator(0)

    @property
    def dim(self) -> int:
        """The number of values in a vector: the size of the vocabulary."""
        return self.backbone.vocabulary_size

    def _vectors(self, inputs, training):
        outputs = self.backbone_outputs(inputs, training=training)
        options = {"padding_mask": inputs.get(PADDING_MASK), "training": training}
        return self.head(outputs, token_embedding=self.backbone.token_embedding, **options)

    # Training

    def encode_labels(self, labels):
        """Returns the labels of the objective, see `Embedder`.

        Raises:
            ValueError: a label does not fit, or queries are not read by the model that trains.
        """
        rule = "An embedder with `query_weights` answers, and does not train"
        weights = self.query_weights and f"{len(self.query_weights)} weights"
        refuse_options(rule, {"query_weights": weights}, "Train it with query_weights=None.")
        return super().encode_labels(labels)

    def prepare_head(self, data):
        """Begins the penalty anew, in a new run."""
        self.step_counter.state.assign([0, 0])

    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
        """Returns the loss with its penalty, see `keras.Model.compute_loss`."""
        loss = super().compute_loss(x, y, y_pred, sample_weight, training)
        y_pred = y_pred[:, None] if len(y_pred.shape) == 2 else y_pred
        query_factor, document_factor = self.regularization
        penalty = query_factor * _flops(y_pred[:, :1]) + document_factor * _flops(y_pred[:, 1:])
        return loss + (self._ramp() if training else 1.0) * penalty

    def _ramp(self):
        """Returns the share of the penalty in this step, and counts the step."""
        state = self.step_counter.state
        step = ops.cast(state[0], "float32")
        state.assign(state + ops.cast([1, 0], state.dtype))
        schedule = schedule_of(inner_optimizer(self))
        num_steps = getattr(schedule, "total_steps", 0) / 3
        return ops.square(ops.minimum(step / num_steps, 1.0)) if num_steps else 1.0

    @property
    def compares_rows(self) -> bool:
        """Whether the loss has a penalty, which depends on all rows of the batch."""
        return any(self.regularization)

    def ignores_weight_0(self):
        """Returns `False`: rows that only fill up a batch would count in the penalty."""
        return False

    # Answers

    def embed(
        self,
        texts: str | Texts,
        prompt: str | None = None,
        **options: Unpack[PredictOptions],
    ) -> Any:
        """Returns the weights of texts as a sparse matrix.

        Args:
            texts: a str, or a column of str.
            prompt: see `TextEmbedder.embed`. With `query_weights`, `"query"` also means that the
                model is not used.
            batch_size: int, 32 by default.
            verbose: see `keras.Model.predict`.

        Returns:
            float32 `scipy.sparse.csr_array` `(num_texts, vocabulary_size)`; one row for a str.

        Raises:
            ImportError: SciPy is not installed.
            TypeError: something is not text.
            ValueError: there is no prompt of that name.
        """
        self.check_options(options, self.embed)
        sparse = require("scipy.sparse", "return sparse vectors")
        answerer = self.answerer(prompt=prompt)
        columns, _ = answerer.columns(texts)
        texts = answerer.texts(*columns)
        if not texts:
            return sparse.csr_array((0, self.dim), dtype="float32")
        if answerer.is_static:
            found = self.ask("token_weights", *columns, prompt=prompt)
            rows = np.repeat(np.arange(len(found)), [len(row) for row in found])
            ids = [self.tokenizer.token_to_id(token) for row in found for token, _ in row]
            weights = np.array([weight for row in found for _, weight in row], "float32")
            places = rows, np.array(ids, "int64")
            return sparse.csr_array((weights, places), shape=(len(found), self.dim))
        order, parts = [], []
        for indices, weights in self.predict_question(answerer, texts, **options)[1]:
            order.append(indices)
            parts.append(sparse.csr_array(weights))
        return sparse.vstack(parts, format="csr")[np.argsort(np.concatenate(order))]

    def token_weights(
        self,
        text: str | Texts,
        top_k: int | None = None,
        prompt: str | None = None,
        **options: Unpack[PredictOptions],
    ) -> Any:
        """Returns the tokens that a text has weights for.

        Args:
            text: a str, or a column of str.
            top_k: int, the number of tokens; `None` for all.
            prompt: see `TextEmbedder.embed`.
            batch_size: int, 32 by default.
            verbose: see `keras.Model.predict`.

        Returns:
            For a str a list of pairs (token, weight), the heaviest first; for a column a list of
            such lists.
        """
        return self.ask("token_weights", text, top_k=top_k, prompt=prompt, **options)

    def similarities(self, queries: Any, documents: Any) -> Any:
        """Returns the dot products of sparse vectors, an array `(num_queries, num_documents)`."""
        return (queries @ documents.T).toarray()

    def checked_vectors(self, vectors: Any) -> tuple[Any, bool]:
        """Returns sparse vectors, and `False`: there are several.

        Raises:
            ValueError: they are of another form or width.
        """
        if getattr(vectors, "shape", ())[1:] != (self.dim,) or not hasattr(vectors, "tocsr"):
            raise ValueError(
                f"Vectors must be a sparse matrix of width {self.dim}, as `embed` returns it. "
                f"Received: {type(vectors).__name__} of the shape {np.shape(vectors)}."
            )
        return vectors.tocsr(), False

    def embed_as(self, kind: str, texts: Texts, **options: Unpack[PredictOptions]) -> Any:
        """Returns the vectors of texts as queries or documents, see `embed`."""
        if kind == "query" and self.query_weights is not None:
            return self.embed(texts, kind, **options)
        return super().embed_as(kind, texts, **options)


def _flops(weights):
    """Returns the expected number of multiplications of a search, up to a factor.

    Args:
        weights: float `(batch, num_texts, vocabulary_size)`; 0 for no texts.
    """
    batch, num_texts, _ = ops.shape(weights)
    count = ops.cast(ops.maximum(batch * num_texts, 1), weights.dtype)
    return ops.sum(ops.square(ops.sum(weights, axis=(0, 1)) / count))


# Queries without a model: each token has a weight of its own.


def check_query_weights(weights, tokenizer):
    """Returns weights as a dict of floats, without zeros; `None` for `None`.

    Args:
        weights: dict, token -> weight; or `None`.
        tokenizer: a `Tokenizer`, whose vocabulary may come later; or `None`.

    Raises:
        TypeError: it is no dict.
        ValueError: there is no tokenizer, a token is not in the vocabulary, or a weight is no
            number from 0.
    """
    if weights is None:
        return None
    check_type("query_weights", weights, Mapping, "a dict from tokens to weights")
    tokens, values = list(weights), np.array(list(weights.values()))
    check_shape("`query_weights`", values, ("num_tokens",), "iuf")
    raise_at_first(~(np.isfinite(values) & (values >= 0)), values, "Query weights must be from 0")
    if tokenizer is None:
        raise ValueError(
            "`query_weights` need the tokenizer whose tokens they name. Received: "
            "preprocessor=None. Pass a `TextPreprocessor`."
        )
    if tokenizer.has_vocabulary:
        vocabulary = set(tokenizer.vocabulary)
        is_unknown = [token not in vocabulary for token in tokens]
        advice = "Take the weights that came with this tokenizer."
        raise_at_first(is_unknown, tokens, "Each token of `query_weights` must be a token", advice)
    return {token: float(value) for token, value in weights.items() if value}
