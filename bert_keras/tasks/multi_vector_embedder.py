"""Texts as a vector for each token, compared token by token."""

import functools
import string
from collections.abc import Sequence
from typing import Any, ClassVar, Literal, Unpack

import keras
import numpy as np
from numpy.typing import NDArray

from bert_keras.answers.similarity import maxsim_matrix
from bert_keras.answers.text_vectors import (
    MarkedGroupRows,
    MarkedRows,
    TokenVectorsAnswerer,
    marked_ids,
)
from bert_keras.checks import as_texts, check_bool, check_choice, check_int, check_shape
from bert_keras.heads.colbert import TokenVectorsHead
from bert_keras.inputs import PADDING_MASK, SCORING_MASK, TOKEN_IDS
from bert_keras.models.backbone import Backbone
from bert_keras.preprocessing.text_preprocessor import TextPreprocessor
from bert_keras.presets.formats import late_interaction
from bert_keras.presets.formats.huggingface import export_to_huggingface
from bert_keras.tasks.embedder import Embedder
from bert_keras.tasks.user_columns import normalize_columns
from bert_keras.tasks.validation import head_for
from bert_keras.training.contrastive import MultipleNegativesRanking
from bert_keras.training.teacher_losses import MarginMSE
from bert_keras.types import (
    Data,
    Objective,
    Path,
    PredictOptions,
    TaskOptions,
    Texts,
)


@keras.saving.register_keras_serializable(package="bert_keras")
class MultiVectorEmbedder(Embedder):
    """Gives each token of a text a vector, and compares texts token by token: ColBERT.

    `score(query, document) = sum over query tokens i of max over document tokens j of q_i . d_j`,
    which is called MaxSim. It is nearly as accurate as a `Reranker`, while documents are embedded
    once, before any query is known.

    A query and a document begin with a marker of their own. Queries are filled up with `[MASK]`,
    whose vectors stand for words that the query does not have. Punctuation in documents does not
    count.

    `fit` takes columns of texts, `(queries, positives)` and further columns of hard negatives, see
    `TextEmbedder`.

    Args:
        backbone: a `Backbone`.
        preprocessor: a `TextPreprocessor`, or `None` for ready inputs only.
        dim: int, width of the vectors.
        query_marker, document_marker: str, before each text: a token of the vocabulary, or a text
            such as `"query: "`; `""` for none.
        query_length, document_length: int, the longest sequence, special tokens included; `None`
            for the preprocessor's `max_length`.
        query_expansion: int, the length that queries are filled up to with `[MASK]`; `None` for no
            expansion.
        attend_to_expansion: bool, whether tokens attend to the `[MASK]` tokens.
        skipped_tokens: list of str, tokens that do not count in documents; `None` for punctuation.
        objective, frozen: see `TextEmbedder`.
        **kwargs: `name`, `dtype`, `trainable`, see `keras.Model`.

    Call arguments:
        inputs: dict of ints `(batch, seq_len)` or `(batch, num_texts, seq_len)`: those of the
            backbone, and `scoring_mask`, 1 for tokens that count, by default the `padding_mask`.
        training: bool, whether dropout is active.

    Returns:
        float32 `(batch, seq_len, dim)` or `(batch, num_texts, seq_len, dim)`. Tokens that do not
        count have vectors of zeros.

    Raises:
        ValueError: an argument is out of range.

    Example:
    ```python
    embedder = bert_keras.MultiVectorEmbedder.from_preset("hf://colbert-ir/colbertv2.0")
    documents = embedder.embed(["Aspirin helps.", "It rains."], kind="document")
    embedder.score(["How do I cure a headache?"], documents)  # (1, 2)
    embedder.fit((["Who eats?"], ["A man is eating."]))
    ```

    Reference:
        [Khattab and Zaharia, 2020](https://arxiv.org/abs/2004.12832);
        [Santhanam et al., 2021](https://arxiv.org/abs/2112.01488).
    """

    answerers = (TokenVectorsAnswerer,)
    head_config_keys = ("dim",)
    required_special_tokens = ("mask_token",)
    # An input for each token beside those of the backbone.
    token_inputs = (SCORING_MASK,)
    # Markers take the place of prompts.
    decided_arguments = {"prompts": None, "default_prompt": None}  # noqa: RUF012
    similarity = "maxsim"
    objectives: ClassVar[dict[str, tuple]] = {
        "ranking": (lambda: MultipleNegativesRanking(scale=1.0, similarity="maxsim"), 2, None),
        "distillation": (lambda: MarginMSE("maxsim"), 3, None),
    }

    def __init__(
        self,
        backbone: Backbone,
        preprocessor: TextPreprocessor | None = None,
        dim: int = 128,
        query_marker: str = "[unused0]",
        document_marker: str = "[unused1]",
        query_length: int | None = 32,
        document_length: int | None = None,
        query_expansion: int | None = 32,
        attend_to_expansion: bool = False,
        skipped_tokens: Sequence[str] | None = None,
        objective: Objective = "ranking",
        **kwargs: Unpack[TaskOptions],
    ) -> None:
        super().__init__(backbone, preprocessor, objective, **kwargs)
        self.dim = check_int("dim", dim)
        self.query_marker, self.document_marker = query_marker, document_marker
        self.query_length, self.document_length = query_length, document_length
        self.query_expansion = query_expansion
        self._check_lengths()
        self.attend_to_expansion = check_bool("attend_to_expansion", attend_to_expansion)
        tokens = string.punctuation if skipped_tokens is None else skipped_tokens
        self.skipped_tokens = as_texts(list(tokens), "skipped_tokens")
        self.head = head_for(self, TokenVectorsHead, dim=dim)

    def _check_lengths(self):
        preprocessor = self.preprocessor
        longest = getattr(preprocessor, "max_length", None) or self.backbone.max_sequence_length
        for name in ("query_length", "document_length", "query_expansion"):
            if getattr(self, name) is not None:
                advice = "That is the longest sequence that the preprocessor makes."
                check_int(name, getattr(self, name), 3, longest, advice)
        if self.query_length and self.query_expansion:
            advice = "That is `query_length`, which may be raised."
            check_int("query_expansion", self.query_expansion, 3, self.query_length, advice)

    def _vectors(self, inputs, training):
        inputs = dict(inputs)
        counts = inputs.pop(SCORING_MASK, inputs.get(PADDING_MASK))
        if counts is None:
            counts = keras.ops.ones_like(inputs[TOKEN_IDS])
        return self.head(self.backbone_outputs(inputs, training=training), counts)

    def rows_of(self, texts, counts):
        """Returns texts as rows: a query and documents in each, or documents alone."""
        is_query = np.zeros(len(texts), bool)
        if counts is not None:
            is_query[:: counts.max(initial=1)] = True
        settings, packer = self.answer_settings(), self.preprocessor
        ids = marked_ids(settings, packer, texts, is_query)
        if counts is None:
            return MarkedRows(settings, is_query, packer, ids)
        return MarkedGroupRows(settings, is_query, packer, ids, None, counts)

    # Answers

    def predict(self, x: Data, batch_size: int | None = None, **kwargs: Any) -> Any:
        """Returns the vectors of all tokens of ready inputs; texts go to `embed`.

        Args:
            x: dict of arrays, see the class.
            batch_size: see `Task.predict`.
            **kwargs: see `Task.predict`.

        Returns:
            float32 array `(batch, seq_len, dim)` or `(batch, num_texts, seq_len, dim)`.

        Raises:
            ValueError: `x` holds texts, whose numbers of vectors differ.
        """
        if normalize_columns(self, x).kind == "texts":
            raise ValueError(
                "`predict` returns one array, and texts have different numbers of vectors. "
                "Received: texts. Call `embed`, which returns a list of arrays."
            )
        return super().predict(x, batch_size, **kwargs)

    def embed(
        self,
        texts: str | Texts,
        kind: Literal["query", "document"] = "document",
        **options: Unpack[PredictOptions],
    ) -> Any:
        """Returns the vectors of the tokens that count.

        Args:
            texts: a str, or a column of str.
            kind: `"query"` or `"document"`.
            batch_size: int, 32 by default.
            verbose: see `keras.Model.predict`.

        Returns:
            A list of float32 arrays `(num_tokens, dim)`; for a str one such array.

        Raises:
            TypeError: something is not text.
            ValueError: `kind` is unknown.
        """
        return self.ask("embed", texts, kind=kind, **options)

    def embed_as(self, kind, texts, **options):
        """Returns the vectors of texts as queries or documents, see `embed`."""
        return self.embed(texts, kind, **options)

    def score(
        self,
        queries: str | Texts | list[NDArray[np.float32]],
        documents: Texts | list[NDArray[np.float32]],
        **options: Unpack[PredictOptions],
    ) -> NDArray[np.float32]:
        """Returns how well each document answers each query, by MaxSim.

        Args:
            queries: a str, a column of str, or a list of arrays of `embed(..., kind="query")`.
            documents: a column of str, or a list of arrays of `embed`.
            batch_size: int, 32 by default.
            verbose: see `keras.Model.predict`.

        Returns:
            float32 array `(num_queries, num_documents)`; for a str `(num_documents,)`.

        Raises:
            TypeError: something is not text.
            ValueError: vectors have another width.
        """
        self.check_options(options, self.score)
        query_vectors, is_one = self._as_vectors(queries, "query", options)
        document_vectors, _ = self._as_vectors(documents, "document", options)
        scores = self.similarities(query_vectors, document_vectors)
        return scores[0] if is_one else scores

    def similarities(
        self, queries: list[NDArray[np.float32]], documents: list[NDArray[np.float32]]
    ) -> NDArray[np.float32]:
        """Returns MaxSim of lists of arrays, see `score`."""
        return maxsim_matrix(queries, documents)

    def checked_vectors(self, vectors: Any) -> tuple[list[NDArray[np.float32]], bool]:
        """Returns the vectors of several texts, a list of arrays, and whether `vectors` was one's.

        Raises:
            ValueError: they are of another form or width.
        """
        is_one = getattr(vectors, "ndim", 0) == 2
        arrays = [np.asarray(x) for x in ([vectors] if is_one else vectors)]
        for array in arrays:
            shape, advice = ("num_tokens", self.dim), "`embed` returns such arrays."
            check_shape("Each text's vectors", array, shape, "f", advice)
        return arrays, is_one

    # Files

    def export_to_huggingface(
        self,
        folder: Path,
        layout: Literal["sentence-transformers", "pylate", "stanford"] = "sentence-transformers",
    ) -> None:
        """Writes a folder that sentence-transformers, PyLate or Stanford's ColBERT loads.

        Args:
            folder: see `TextEmbedder.export_to_huggingface`.
            layout: whose layout the folder has.

        Raises:
            ValueError: the model is quantized, the family has no counterpart there, or the layout
                has no place for a setting.
        """
        check_choice("layout", layout, late_interaction.LAYOUTS)
        late_interaction.check_can_write(self, layout)
        # Stanford's folder holds the head beside the backbone.
        model = self if layout == "stanford" else self.backbone
        write = functools.partial(late_interaction.write, task=self, layout=layout)
        export_to_huggingface(model, folder, self, write)
