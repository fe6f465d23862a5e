"""Texts as vectors whose cosine measures how similar the texts are."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, Unpack, overload

import keras
import numpy as np
from keras import ops
from numpy.typing import NDArray

from bert_keras.answers.prompts import check_prompts, prompt_text
from bert_keras.checks import (
    as_texts,
    check_bool,
    check_choice,
    check_int,
    check_shape,
    describe,
    refuse_first,
    refuse_smoothing,
)
from bert_keras.heads.embedding import EmbeddingHead
from bert_keras.inputs import PADDING_MASK, TOKEN_IDS
from bert_keras.metrics.retrieval import cosine_similarity_matrix
from bert_keras.models.backbone import Backbone
from bert_keras.preprocessing.text_preprocessor import TextPreprocessor
from bert_keras.presets import presets
from bert_keras.presets.formats import sentence_transformers
from bert_keras.tasks.encoded_examples import EncodedTexts
from bert_keras.tasks.encoded_labels import as_label_array, one_column
from bert_keras.tasks.groups import EncodedGroups, merge_groups
from bert_keras.tasks.keyword_options import RunOptions, TaskOptions, TextEmbedderOptions
from bert_keras.tasks.task import Task
from bert_keras.tasks.text_answer import TextAnswer
from bert_keras.tasks.user_columns import as_column, is_columns, is_empty, is_text, num_examples
from bert_keras.training.contrastive import CosineRegression, MultipleNegativesRanking, TripletLoss
from bert_keras.types import (
    AsArray,
    Card,
    Data,
    DenseOptions,
    FileDtype,
    Frozen,
    Hit,
    Objective,
    Path,
    Pooling,
    Texts,
    Verbose,
)

# Objective -> its loss, the least and the most columns of texts.
OBJECTIVES = {
    "ranking": (MultipleNegativesRanking, 2, None),
    "similarity": (CosineRegression, 2, 2),
    "triplet": (TripletLoss, 3, 3),
}


@keras.saving.register_keras_serializable(package="bert_keras")
class TextEmbedder(Task):
    """Gives each text a vector; texts of similar meaning get vectors of similar direction.

    The vectors of a text's tokens are pooled into one. Training moves the vectors of texts that
    belong together closer to each other; `objective` determines what `fit` takes, and the loss:

    | objective | x | y | loss |
    |---|---|---|---|
    | `"ranking"` | `(anchors, positives)`, further columns: hard negatives | none, or groups | \
`MultipleNegativesRanking` |
    | `"similarity"` | `(first, second)` | scores from -1 to 1 | `CosineRegression` |
    | `"triplet"` | `(anchors, positives, negatives)` | none | `TripletLoss` |

    Columns are lists of str of equal length: the texts of a row belong together, and each text is
    embedded on its own. For other settings of a loss, compile with an instance of it,
    `embedder.compile(loss=MultipleNegativesRanking(symmetric=True))`. In ranking, a group is a
    number or a name for each row; rows of the same group are not negatives of each other. Ready
    inputs have the columns on an axis after `batch`: `(batch, num_texts, seq_len)`.

    Args:
        backbone: a `Backbone`.
        preprocessor: a `TextPreprocessor`, or `None` for ready inputs only.
        pooling: `"mean"` over the real tokens, `"cls"`, `"max"`, or `"pooler"`.
        normalize: bool, whether vectors have length 1.
        projection: dict with `units`, and maybe `activation` and `use_bias`, for a dense layer
            after the pooling, see `EmbeddingHead`; `None` for none.
        prompts: dict, name -> text, that `embed` puts before texts; `None` for none.
        default_prompt: the name of the prompt of `embed` without `prompt`; `None` for none.
        include_prompt: bool, whether `embed` pools the prompt's tokens too, if it pools by `"mean"`
            or `"max"`. The special tokens before a prompt are left out with it.
        objective: `"ranking"`, `"similarity"` or `"triplet"`.
        frozen: `None`, `"embeddings"`, or an int, see `Task`.
        **kwargs: `name`, `dtype`, `trainable`, see `keras.Model`.

    Call arguments:
        inputs: dict of ints `(batch, seq_len)` or `(batch, num_texts, seq_len)`.
        training: bool, whether dropout is active.

    Returns:
        float32 `(batch, dim)` or `(batch, num_texts, dim)`, where `dim` is `hidden_dim`, or the
        `units` of the projection.

    Raises:
        ValueError: `pooling`, `normalize`, `projection`, `objective` or `frozen` is unknown, or a
            prompt is not a str.

    A folder of sentence-transformers brings its pooling, dense layer, normalization, prompts and
    longest sequence along, from `modules.json` and the files beside it. Arguments of `from_preset`
    come before them. As there, white space around a text is removed.

    Example:
    ```python
    embedder = bert_keras.TextEmbedder.from_preset("minilm_l6_en_uncased")
    embedder.embed(["A man is eating.", "Someone eats."]).shape  # (2, 384)
    embedder.embed("Who eats?", prompt="query")  # with the words that the checkpoint asks for
    embedder.semantic_search("Who eats?", ["A man is eating.", "It rains."], top_k=1)
    embedder.fit((["A man is eating."], ["Someone eats."]))
    ```

    Reference:
        [Reimers and Gurevych, 2019](https://arxiv.org/abs/1908.10084).
    """

    head_arguments = ("projection",)
    has_classes = False
    text_answer = TextAnswer("vectors", None, (1,))
    needs_labels = False  # Only similarity has scores.
    is_fine_tuned = False

    if TYPE_CHECKING:

        @classmethod
        def from_preset(cls, preset: Path, **kwargs: Unpack[TextEmbedderOptions]) -> Self: ...

    def __init__(
        self,
        backbone: Backbone,
        preprocessor: TextPreprocessor | None = None,
        pooling: Pooling = "mean",
        normalize: bool = True,
        projection: DenseOptions | None = None,
        prompts: Mapping[str, str] | None = None,
        default_prompt: str | None = None,
        include_prompt: bool = True,
        objective: Objective = "ranking",
        frozen: Frozen | None = None,
        **kwargs: Unpack[TaskOptions],
    ) -> None:
        super().__init__(backbone, preprocessor=preprocessor, frozen=frozen, **kwargs)
        check_choice("objective", objective, tuple(OBJECTIVES))
        check_bool("normalize", normalize)
        self.prompts = check_prompts(prompts, default_prompt)
        self.default_prompt = default_prompt
        self.include_prompt = check_bool("include_prompt", include_prompt)
        if frozen == "backbone" and projection is None:
            raise ValueError(
                "`frozen` must be None, 'embeddings' or a number of layers: all weights of an "
                "embedder without `projection` are in its backbone. Received: 'backbone', which "
                "leaves nothing to train."
            )
        self.pooling = pooling
        self.normalize = normalize
        self.objective = objective
        settings = (pooling, normalize, projection)
        self.head = EmbeddingHead(*settings, dtype=self.dtype_policy, name="head")
        self.projection = self.head.projection
        self.build()
        self.compile()

    def call(self, inputs, training=None):
        if len(inputs[TOKEN_IDS].shape) == 2:
            return self._vectors(inputs, training)
        num_texts = ops.shape(inputs[TOKEN_IDS])[1]
        vectors = self._vectors(merge_groups(inputs), training)
        return ops.reshape(vectors, (-1, num_texts, self.dim))

    @property
    def dim(self) -> int:
        """The number of values in a vector."""
        return self.projection["units"] if self.projection else self.backbone.hidden_dim

    def _vectors(self, inputs, training):
        outputs = self.backbone_outputs(inputs, training=training)
        return self.head(outputs, padding_mask=inputs.get(PADDING_MASK))

    def check_arrays(self, inputs):
        """Raises unless NumPy inputs fit, `(batch, seq_len)` or `(batch, num_texts, seq_len)`."""
        has_columns = np.ndim(inputs[TOKEN_IDS]) == 3
        self.backbone.check_arrays(inputs, num_axes=3 if has_columns else 2)

    def default_loss(self, label_smoothing):
        """Returns the loss of `objective`."""
        refuse_smoothing(label_smoothing, "Embeddings have no labels of classes to smooth")
        return OBJECTIVES[self.objective][0]()

    def encode_labels(self, labels):
        """Returns the scores or groups of the objective.

        Args:
            labels: scores for `"similarity"`, groups for `"ranking"`, ignored for `"triplet"`.

        Returns:
            float32 or int32 `(num_examples,)`.

        Raises:
            ValueError: the shape is wrong, a score is not a number from -1 to 1, or a group is
                missing or a number among names.
        """
        what = "group" if self.objective == "ranking" else "score"
        labels = one_column(as_label_array(labels, what))
        kinds = "iuf" if self.objective == "similarity" else ""
        check_shape("Scores and groups", labels, ("num_examples",), kinds)
        if self.objective == "ranking":
            if labels.dtype.kind == "f":
                advice = "An example on its own is a group; without `y` every example is."
                refuse_first(np.isnan(labels), labels, "Every example needs a group", advice)
                rule = "With objective='ranking' labels are groups, numbers or names"
                advice = "Scores are for objective='similarity'."
                refuse_first(labels != np.round(labels), labels, rule, advice)
            return np.unique(labels, return_inverse=True)[1].astype("int32")
        if self.objective == "triplet":
            return np.zeros(len(labels), "int32")
        advice = "Divide the scores of STS-B, from 0 to 5, by 5."
        rule = "Scores must be cosines, numbers from -1 to 1"
        refuse_first(~(np.abs(labels) <= 1), labels, rule, advice)
        return labels.astype("float32")

    def encode_texts(self, x, y=None, sample_weight=None, training=False):
        """Returns texts, or rows of texts, as rows of token ids, see `Task`."""
        columns = list(x) if is_columns(x) else [x]
        labels = self._labels_of(len(columns), y, num_examples(x)) if training else None
        columns = [[text.strip() for text in as_texts(column)] for column in columns]
        _check_equally_long(columns)
        ids, _ = self.preprocessor.tokenize(
            [text for row in zip(*columns, strict=True) for text in row]
        )
        if not is_columns(x):
            return EncodedTexts(self.preprocessor, ids, None, labels, sample_weight)
        counts = np.full(len(columns[0]), len(columns))
        return EncodedGroups(self.preprocessor, ids, None, counts, labels, sample_weight)

    def encode_ready_labels(self, labels, inputs):
        """Returns the labels of ready inputs, see `encode_labels`; there may be none."""
        shape = np.shape(inputs[TOKEN_IDS])
        return self._labels_of(shape[1] if len(shape) == 3 else 1, labels, shape[0])

    def _labels_of(self, num_texts, labels, count):
        """Returns the labels of rows of texts; without labels, each row is a group."""
        _, least, most = OBJECTIVES[self.objective]
        if not least <= num_texts <= (most or num_texts):
            wanted = f"{least}" if least == most else f"at least {least}"
            raise ValueError(
                f"The objective {self.objective!r} trains on {wanted} columns of texts. Received: "
                f"{num_texts}. Pass a tuple, such as `fit((anchors, positives))`."
            )
        if labels is None and self.objective == "similarity":
            raise ValueError(
                f"{type(self).__name__} needs labels to train or to be evaluated: a score for each "
                "pair. Received: y=None."
            )
        return self.encode_labels(np.arange(count) if labels is None else labels)

    def ignores_weight_0(self):
        """Whether rows of weight 0 do not count, see `Task`.

        In ranking, rows that only fill up a batch would be negatives of the others.
        """
        return self.objective != "ranking" and super().ignores_weight_0()

    # Answers

    def predict(
        self, x: Data, batch_size: int | None = None, **kwargs: Unpack[RunOptions]
    ) -> NDArray[np.float32]:
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
            _check_equally_long(x)
            return np.stack([predict(column, batch_size, **kwargs) for column in x], axis=1)
        if is_empty(x):
            return np.zeros((0, self.dim), "float32")
        if not isinstance(x, dict) or np.ndim(x.get(TOKEN_IDS)) != 3:
            return predict(x, batch_size, **kwargs)
        # Once it has seen inputs of two ranks, TensorFlow's graph knows neither.
        self.check_inputs(x)
        merged = {key: np.reshape(array, (-1, np.shape(array)[-1])) for key, array in x.items()}
        vectors = predict(merged, batch_size, **kwargs)
        return vectors.reshape(*np.shape(x[TOKEN_IDS])[:2], self.dim)

    def embed(
        self,
        texts: str | Texts,
        prompt: str | None = None,
        batch_size: int | None = None,
        verbose: Verbose = 0,
    ) -> NDArray[np.float32]:
        """Returns the vectors of texts, after the prompt that the checkpoint was trained with.

        Args:
            texts: a str, or a column of str.
            prompt: what goes before each text: a name in `prompts`, usually `"query"` or
                `"document"`; or a text such as `"query: "`; or `""` for nothing. `None` takes
                `default_prompt`. An embedder without prompts takes `"query"` and `"document"` for
                nothing.
            batch_size: int, 32 by default.
            verbose: see `keras.Model.predict`.

        Returns:
            float32 array `(num_texts, dim)`; for a str `(dim,)`.

        Raises:
            TypeError: something is not text.
            ValueError: there is no prompt of that name.
        """
        if isinstance(texts, str):
            return self.embed([texts], prompt, batch_size, verbose)[0]
        prompt = prompt_text(prompt, self.prompts, self.default_prompt)
        texts = [prompt + text for text in as_texts(as_column(texts, "texts"))]
        if not texts:
            return np.zeros((0, self.dim), "float32")
        if prompt and self._skips_prompt:
            return self._embed_after(prompt, texts, batch_size)
        return self.predict(texts, batch_size=batch_size, verbose=verbose)

    @property
    def _skips_prompt(self):
        return not self.include_prompt and self.pooling in ("mean", "max")

    def _embed_after(self, prompt, texts, batch_size):
        """Returns the vectors of texts that begin with a prompt, pooled without its tokens."""
        self.data.check_has_preprocessor()
        num_skipped = len(self.tokenizer.layout.before) + len(self.tokenizer(prompt.strip()))
        examples = self.data.encode(texts, training=False)
        vectors = np.zeros((len(texts), self.dim), "float32")
        for rows, length in examples.batches(batch_size, shuffle=False).batches:
            inputs = examples.rows(rows, length)
            outputs = self.backbone.predict_on_batch(inputs)
            mask = np.array(inputs[PADDING_MASK])
            mask[:, :num_skipped] = 0
            vectors[rows] = ops.convert_to_numpy(self.head(outputs, padding_mask=mask))
        return vectors

    def answer_config(self) -> dict[str, Any]:
        """Returns what an exported folder needs to know of the prompts."""
        skips = {"skips_prompt": self._skips_prompt}
        return {"prompts": self.prompts, "default_prompt": self.default_prompt, **skips}

    @overload
    def semantic_search(
        self,
        queries: str,
        documents: Texts,
        top_k: int = 5,
        batch_size: int | None = None,
        verbose: Verbose = 0,
    ) -> list[Hit]: ...
    @overload
    def semantic_search(
        self,
        queries: AsArray,
        documents: Texts,
        top_k: int = 5,
        batch_size: int | None = None,
        verbose: Verbose = 0,
    ) -> Any: ...
    @overload
    def semantic_search(
        self,
        queries: Texts,
        documents: Texts,
        top_k: int = 5,
        batch_size: int | None = None,
        verbose: Verbose = 0,
    ) -> list[list[Hit]]: ...
    def semantic_search(self, queries, documents, top_k=5, batch_size=None, verbose=0):
        """Finds the documents nearest to each query, by cosine.

        Texts get the prompts `"query"` and `"document"` where the embedder has them.

        Args:
            queries: a str, a column of str, or vectors of `embed`.
            documents: a column of str, or vectors of `embed`: worth keeping where the documents
                stay and queries come.
            top_k: int, documents a query at most.
            batch_size: int, 32 by default.
            verbose: see `keras.Model.predict`.

        Returns:
            For each query a list of `{"index": place of the document, "score": cosine}`, best
            first, with `"text"` where documents are texts; for a str, or one vector, that list
            alone.

        Raises:
            TypeError: `documents` is a str.
            ValueError: `top_k` is below 1, or vectors have the wrong shape.
        """
        check_int("top_k", top_k)
        if isinstance(documents, str):
            raise TypeError(
                "`documents` must be a column of str, or vectors. Received: "
                f"{describe(documents)}. Pass [document] to search a single one."
            )
        found_by = self._as_vectors(queries, "query", batch_size, verbose)
        found = self._as_vectors(documents, "document", batch_size, verbose)
        answers = [
            [{"index": int(i), "score": float(row[i])} for i in best]
            for row, best in _nearest(np.atleast_2d(found_by), found, top_k)
        ]
        if is_text(documents):
            texts = as_texts(documents)
            for answer in answers:
                for hit in answer:
                    hit["text"] = texts[hit["index"]]
        return answers[0] if found_by.ndim == 1 else answers

    def _as_vectors(self, texts, prompt, batch_size, verbose):
        if is_text(texts) or len(texts) == 0:
            prompt = prompt if prompt in self.prompts else None
            return self.embed(texts, prompt, batch_size, verbose)
        vectors = np.asarray(texts)
        if vectors.dtype.kind != "f" or vectors.shape[-1] != self.dim:
            raise ValueError(
                f"Vectors must be floats of width {self.dim}, as `embed` returns "
                f"them. Received: dtype {vectors.dtype}, shape {vectors.shape}."
            )
        return vectors

    # Files

    def export_to_huggingface(
        self, folder: Path, dtype: FileDtype | None = None, card: Card | None = None
    ) -> None:
        """Writes a folder that transformers' `AutoModel` and sentence-transformers load.

        Args:
            folder: str or path, made when missing.
            dtype: of the weights in the file: `"float32"`, `"float16"` or `"bfloat16"`, half the
                size; `None` keeps the model's.
            card: dict, see `save_to_preset`.

        Raises:
            ValueError: the family or the pooling has no counterpart there, or a weight is too
                large for the dtype.
        """
        longest = self.backbone.max_sequence_length
        if self.preprocessor is not None:
            longest = self.preprocessor.max_length

        def write_settings(new):
            sentence_transformers.write_settings(new, self, longest)

        presets.export_to_huggingface(self.backbone, folder, dtype, card, self, write_settings)


def _check_equally_long(columns):
    if len({len(column) for column in columns}) > 1:
        raise ValueError(
            "Columns of texts must be equally long. Received lengths: "
            f"{[len(column) for column in columns]}."
        )


def _nearest(queries, documents, top_k):
    """Yields for each query its cosines and the places of the highest, best first."""
    for start in range(0, len(queries), 256):  # keeps the matrix of cosines small
        similarities = cosine_similarity_matrix(queries[start : start + 256], documents)
        best = np.argsort(-similarities, axis=1, kind="stable")[:, :top_k]
        yield from zip(similarities, best, strict=True)
