"""The base class of embedders: columns of texts, the objectives of their training, and search."""

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Unpack

import numpy as np
from keras import ops
from numpy.typing import NDArray

from bert_keras.answers.prompts import check_prompts
from bert_keras.checks import (
    as_texts,
    check_choice,
    check_has_labels,
    check_int,
    check_same_length,
    check_shape,
    describe,
    raise_at_first,
    refuse_options,
    refuse_smoothing,
)
from bert_keras.engine.remat import in_chunks
from bert_keras.inputs import PADDING_MASK, TOKEN_IDS
from bert_keras.metrics.label_kinds import LabelKind
from bert_keras.models.backbone import Backbone
from bert_keras.models.model import flatten_texts
from bert_keras.preprocessing.collate import GroupRows, Rows, TextRows
from bert_keras.preprocessing.text_preprocessor import TextPreprocessor
from bert_keras.tasks.encoded_labels import as_label_array, one_column
from bert_keras.tasks.task import Task
from bert_keras.tasks.user_columns import is_columns, is_empty, is_text, num_examples
from bert_keras.training.contrastive import CosineRegression, MultipleNegativesRanking, TripletLoss
from bert_keras.training.similarities import cosine
from bert_keras.training.teacher_losses import EmbeddingMSE, MarginMSE
from bert_keras.types import AsArray, Data, Objective, PredictOptions, TaskOptions, Texts

# Objective that has a teacher -> what its labels are.
_TEACHER_LABELS = {
    "distillation": "a teacher's score for each text after the first",
    "vectors": "a teacher's vector for each row",
}


class Embedder(Task):
    """A task that gives each text vectors, and trains on texts that belong together.

    A subclass makes `self.head`, whose call takes a backbone's outputs, computes vectors
    (`_vectors`), compares them (`similarities`), and answers with them (`embed`).

    Args:
        backbone: a `Backbone`.
        preprocessor: a `TextPreprocessor`, or `None` for ready inputs only.
        objective: a key of `objectives`.
        prompts: dict, name -> text, that `embed` puts before texts; `None` for none.
        default_prompt: the name of the prompt of `embed` without `prompt`; `None` for none.
        frozen: see `Task`.
        **kwargs: `name`, `dtype`, `trainable`, see `keras.Model`.

    Attributes:
        objectives: dict, objective -> a function that returns its loss, the least and the most
            columns of texts.
        similarity: str, how vectors are compared.
        chunk_size: int or `None`, see `compile`.
    """

    chunk_size = None
    # Whether groups of one or two values are groups, and no scores.
    few_groups_are_meant = False
    has_classes = False
    is_fine_tuned = False
    may_have_several_texts = True
    needs_labels = False  # Only some objectives have labels.
    objectives: ClassVar[dict[str, tuple]] = {
        "ranking": (MultipleNegativesRanking, 2, None),
        "similarity": (CosineRegression, 2, 2),
        "triplet": (TripletLoss, 3, 3),
        "distillation": (MarginMSE, 3, None),
        "vectors": (EmbeddingMSE, 1, None),
    }

    def __init__(
        self,
        backbone: Backbone,
        preprocessor: TextPreprocessor | None = None,
        objective: Objective = "ranking",
        prompts: Mapping[str, str] | None = None,
        default_prompt: str | None = None,
        **kwargs: Unpack[TaskOptions],
    ) -> None:
        super().__init__(backbone, preprocessor=preprocessor, **kwargs)
        self.objective = check_choice("objective", objective, tuple(self.objectives))
        self.prompts = check_prompts(prompts, default_prompt)
        self.default_prompt = default_prompt

    def compile(
        self,
        optimizer: Any = "auto",
        loss: Any = "auto",
        *,
        chunk_size: int | None = None,
        **kwargs: Any,
    ) -> None:
        """Configures training, see `Task.compile`.

        Args:
            optimizer, loss: see `Task.compile`.
            chunk_size: int, how many texts a training step computes at a time, or `None` for all
                texts of a batch at once. In ranking each text of a batch is a negative of the
                others, and large batches teach more. With chunks, the memory of a step depends on
                `chunk_size`, and only the vectors of the whole batch are kept: first the vectors
                are computed chunk by chunk, then the loss, and then each chunk is computed again
                for its gradient, with the same dropout (GradCache). The gradient is that of the
                whole batch, for a third more compute.
            **kwargs: see `Task.compile`.

        Raises:
            ValueError: an argument is out of range, or would have no effect.

        Reference:
            [Gao et al., 2021](https://arxiv.org/abs/2101.06983).
        """
        if chunk_size is not None:
            chunk_size = check_int("chunk_size", chunk_size)
        self.chunk_size = chunk_size
        super().compile(optimizer, loss, **kwargs)

    def get_compile_config(self):
        return {**super().get_compile_config(), "chunk_size": self.chunk_size}

    def compile_from_config(self, config):
        super().compile_from_config(config)
        self.chunk_size = config.get("chunk_size")

    def call(self, inputs, training=None):
        num_axes = len(inputs[TOKEN_IDS].shape)
        merged = inputs if num_axes == 2 else flatten_texts(inputs)
        if training and self.chunk_size:
            vectors = in_chunks(self, self._vectors, merged, self.chunk_size)
        else:
            vectors = self._vectors(merged, training)
        if num_axes == 2:
            return vectors
        num_texts = ops.shape(inputs[TOKEN_IDS])[1]
        return ops.reshape(vectors, (-1, num_texts, *ops.shape(vectors)[1:]))

    def _vectors(self, inputs, training):
        """Returns the vectors of rows, float32 `(num_rows, ...)`."""
        first_only = self.reads_first_token_only
        outputs = self.backbone_outputs(inputs, training=training, first_token_only=first_only)
        return self.head(outputs, padding_mask=inputs.get(PADDING_MASK))

    def default_loss(self, label_smoothing):
        """Returns the loss of `objective`."""
        refuse_smoothing(label_smoothing, "Embeddings have no labels of classes to smooth")
        return self.objectives[self.objective][0]()

    @property
    def label_kind(self):
        """What the labels are, see `LabelKind`: scores of pairs, or nothing to measure."""
        if self.objective != "similarity":
            return LabelKind("none")
        return LabelKind("scores", scores_of=lambda x: cosine(x[:, 0], x[:, 1])[:, None])

    def encode_labels(self, labels):
        """Returns the labels of the objective.

        Args:
            labels: scores for `"similarity"`, groups for `"ranking"`, a teacher's scores or vectors
                for `"distillation"` and `"vectors"`; `"triplet"` has none.

        Returns:
            float32 or int32 `(num_examples,)`; float32 `(num_examples, num_values)` of a teacher.

        Raises:
            ValueError: the shape is wrong, a score is not a number from -1 to 1, a value of a
                teacher is not finite, or a group is missing or a number among names.
        """
        if self.objective in _TEACHER_LABELS:
            labels = as_label_array(labels, _TEACHER_LABELS[self.objective])
            check_shape("A teacher's labels", labels, ("num_examples", "num_values"), "iuf")
            raise_at_first(~np.isfinite(labels), labels, "A teacher's labels must be finite")
            return labels.astype("float32")
        what = "score" if self.objective == "similarity" else "group"
        labels = one_column(as_label_array(labels, what))
        kinds = "iuf" if self.objective == "similarity" else ""
        check_shape("Scores and groups", labels, ("num_examples",), kinds)
        if self.objective != "similarity":
            if labels.dtype.kind == "f":
                rule = "With objective='ranking' labels are groups, numbers or names"
                advice = "Scores are for objective='similarity'. Without `y` every row is a group."
                raise_at_first(labels != np.round(labels), labels, rule, advice)
            return np.unique(labels, return_inverse=True)[1].astype("int32")
        advice = "Divide the scores of STS-B, from 0 to 5, by 5."
        rule = "Scores must be cosines, numbers from -1 to 1"
        raise_at_first(~(np.abs(labels) <= 1), labels, rule, advice)
        return labels.astype("float32")

    def encode_texts(self, x, y=None, sample_weight=None, training=False):
        """Returns texts, or rows of texts, as rows of token ids, see `Task`."""
        columns = list(x) if is_columns(x) else [x]
        labels = self._labels_of(len(columns), y, num_examples(x)) if training else None
        columns = [as_texts(column) for column in columns]
        check_equally_long(columns)
        if training and self.objective in ("ranking", "triplet"):
            refuse_equal_negatives(columns)
        texts = [text for row in zip(*columns, strict=True) for text in row]
        counts = np.full(len(columns[0]), len(columns)) if is_columns(x) else None
        return self.rows_of(texts, counts).labelled(labels, sample_weight)

    def rows_of(self, texts: list[str], counts: NDArray[np.integer] | None) -> Rows:
        """Returns texts as rows.

        Args:
            texts: list of str, the texts of each example one after the other.
            counts: int `(num_examples,)`, the texts of each; `None` for single texts.
        """
        ids, _ = self.preprocessor.tokenize(texts)
        if counts is None:
            return TextRows(self.preprocessor, ids)
        return GroupRows(self.preprocessor, ids, None, counts)

    def encode_ready_labels(self, labels, inputs):
        """Returns the labels of ready inputs, see `encode_labels`; there may be none."""
        shape = np.shape(inputs[TOKEN_IDS])
        return self._labels_of(shape[1] if len(shape) == 3 else 1, labels, shape[0])

    def _labels_of(self, num_texts, labels, count):
        """Returns the labels of rows of texts; without labels, each row is a group."""
        _, least, most = self.objectives[self.objective]
        if not least <= num_texts <= (most or num_texts):
            required = f"{least}" if least == most else f"at least {least}"
            raise ValueError(
                f"The objective {self.objective!r} trains on {required} columns of texts. "
                f"Received: {num_texts}. Pass a tuple, such as `fit((anchors, positives))`."
            )
        required = {"similarity": "a score for each pair", **_TEACHER_LABELS}.get(self.objective)
        if required:
            check_has_labels(labels, type(self).__name__, f"Pass {required}.")
        if labels is not None and self.objective == "triplet":
            refuse_options("The objective 'triplet' has no labels", {"y": labels})
        if labels is not None and self.objective == "ranking" and num_texts == 2:
            self._check_are_groups(labels)
        labels = self.encode_labels(np.arange(count) if labels is None else labels)
        sizes = {"distillation": num_texts - 1, "vectors": self.dim}
        if self.objective in sizes:
            name = f"Labels of the objective {self.objective!r}"
            check_shape(name, labels, ("num_examples", sizes[self.objective]))
        return labels

    def _check_are_groups(self, labels):
        """Raises `ValueError` if the labels of pairs seem to say whether the pairs are similar."""
        values, count = np.unique(as_label_array(labels, "group")), len(labels)
        is_few = len(values) <= 2 and (count > 8 or set(values.tolist()) <= {0, 1})
        if is_few and not self.few_groups_are_meant:
            raise ValueError(
                "With objective='ranking' each pair is similar, and labels are groups: pairs of "
                "one group are not negatives of each other. Received labels with the values "
                f"{values.tolist()}. If they say how similar the texts of a pair are, make the "
                "embedder with objective='similarity'. If all pairs are similar, leave out `y`."
            )

    def ignores_weight_0(self):
        """Whether rows of weight 0 do not count, see `Task`.

        In ranking, rows that only fill up a batch would be negatives of the others.
        """
        return self.objective != "ranking" and super().ignores_weight_0()

    def predict(self, x: Data, batch_size: int | None = None, **kwargs: Any) -> NDArray[np.float32]:
        """Returns the vectors of texts, of columns of texts, or of ready inputs.

        Args:
            x: see the class.
            batch_size: int, 32 by default.
            **kwargs: `verbose`, `steps`, `callbacks`, see `keras.Model.predict`.

        Returns:
            float32 array `(num_examples, dim)`, or for columns `(num_examples, num_texts, dim)`.

        Raises:
            TypeError, ValueError: texts or inputs do not fit; before any compute.
        """
        predict = super().predict
        if is_columns(x):
            check_equally_long(x)
            return np.stack([predict(column, batch_size, **kwargs) for column in x], axis=1)
        if is_empty(x):
            return np.zeros((0, self.dim), "float32")
        if not isinstance(x, dict) or np.ndim(x.get(TOKEN_IDS)) != 3:
            return predict(x, batch_size, **kwargs)
        # After inputs of two ranks, TensorFlow would trace a graph of unknown rank.
        self.check_inputs(x)
        merged = {key: np.reshape(array, (-1, np.shape(array)[-1])) for key, array in x.items()}
        vectors = predict(merged, batch_size, **kwargs)
        return vectors.reshape(*np.shape(x[TOKEN_IDS])[:2], *vectors.shape[1:])

    def semantic_search(
        self,
        queries: str | AsArray | Texts,
        documents: Texts,
        top_k: int = 5,
        **options: Unpack[PredictOptions],
    ) -> Any:
        """Finds the documents most similar to each query, see `similarities`.

        Texts get the prompts `"query"` and `"document"` where the embedder has them.

        Args:
            queries: a str, a column of str, or vectors of `embed`.
            documents: a column of str, or vectors of `embed`, to compute them only once for many
                searches. For vectors that were cut by `embed(dim=...)`, cut the others too.
            top_k: int, the most documents per query.
            batch_size: int, 32 by default.
            verbose: see `keras.Model.predict`.

        Returns:
            For each query a list of `{"index": place of the document, "score": similarity}`, best
            first, with `"text"` where documents are texts; for a str, or one vector, that list
            alone.

        Raises:
            TypeError: `documents` is a str.
            ValueError: `top_k` is below 1, or vectors have the wrong shape.
        """
        self.check_options(options, self.semantic_search)
        check_int("top_k", top_k)
        if isinstance(documents, str):
            raise TypeError(
                "`documents` must be a column of str, or vectors. Received: "
                f"{describe(documents)}. Pass [document] to search a single one."
            )
        query_vectors, is_one = self._as_vectors(queries, "query", options)
        document_vectors, _ = self._as_vectors(documents, "document", options)
        answers = [
            [{"index": int(i), "score": float(row[i])} for i in best]
            for row, best in nearest(self, query_vectors, document_vectors, top_k)
        ]
        if is_text(documents):
            texts = as_texts(documents)
            for answer in answers:
                for hit in answer:
                    hit["text"] = texts[hit["index"]]
        return answers[0] if is_one else answers

    def _as_vectors(self, texts, kind, options):
        """Returns the vectors of several texts, and whether `texts` is one text, or one vector."""
        is_one = isinstance(texts, str)
        if is_one or is_text(texts):
            texts = [texts] if is_one else texts
            return self.embed_as(kind, texts, **options), is_one
        return self.checked_vectors(texts)

    def similarities_of_pairs(self, queries: Any, documents: Any) -> NDArray[np.float32]:
        """Returns the similarity of each query's vector and the document's in the same row.

        Args:
            queries, documents: vectors of `embed`, equally many.

        Returns:
            float array `(num_pairs,)`.
        """
        parts = [slice(start, start + 64) for start in range(0, _num_rows(queries), 64)]
        scores = [self.similarities(queries[x], documents[x]).diagonal() for x in parts]
        return np.concatenate([np.zeros(0, "float32"), *scores])

    # Prompts

    def embed_as(self, kind: str, texts: Texts, **options: Unpack[PredictOptions]) -> Any:
        """Returns the vectors of texts as queries or documents, see `embed`.

        Args:
            kind: `"query"` or `"document"`: the prompt, if the embedder has one of that name.
            texts, batch_size, verbose: see `embed`.
        """
        return self.embed(texts, kind if kind in self.prompts else None, **options)


def nearest(
    embedder: Embedder, queries: Any, documents: Any, top_k: int
) -> Iterator[tuple[NDArray[np.float32], NDArray[np.int64]]]:
    """Yields for each query its similarities and the places of the highest, best first.

    Args:
        embedder: an `Embedder`.
        queries, documents: vectors of its `embed`.
        top_k: int, the most places.
    """
    for start in range(0, _num_rows(queries), 256):  # Keeps the matrix of similarities small.
        similarities = embedder.similarities(queries[start : start + 256], documents)
        best = np.argsort(-similarities, axis=1, kind="stable")[:, :top_k]
        yield from zip(similarities, best, strict=True)


def _num_rows(vectors):
    """Returns the number of vectors of `embed`; a sparse matrix has no `len`."""
    return vectors.shape[0] if hasattr(vectors, "shape") else len(vectors)


def refuse_equal_negatives(columns):
    """Raises `ValueError` if a hard negative, after the second column, equals its positive."""
    for negatives in columns[2:]:
        pairs = zip(columns[1], negatives, strict=True)
        wrong = [one.strip() == other.strip() for one, other in pairs]
        rule = "A negative must differ from the positive of its row in more than white space"
        raise_at_first(wrong, negatives, rule, "Drop the row, or mine other negatives.")


def check_equally_long(columns):
    """Raises `ValueError` unless columns of texts have the same length."""
    named = {f"in column {number}": column for number, column in enumerate(columns)}
    check_same_length("Columns of texts must be equally long", **named)
