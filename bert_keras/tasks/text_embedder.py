"""Texts as vectors whose similarity measures how similar the texts are."""

from typing import Any, Unpack

import keras
import numpy as np
from numpy.typing import ArrayLike, NDArray

from bert_keras.answers.similarity import SIMILARITIES, similarity_matrix
from bert_keras.answers.text_vectors import EmbedAnswerer
from bert_keras.checks import check_bool, check_choice, refuse_options
from bert_keras.heads.embedding import EmbeddingHead
from bert_keras.models.backbone import Backbone
from bert_keras.preprocessing.text_preprocessor import TextPreprocessor
from bert_keras.presets.formats import sentence_transformers
from bert_keras.tasks.embedder import Embedder
from bert_keras.tasks.task import ServingSignature
from bert_keras.types import (
    DenseOptions,
    EmbedderOptions,
    Pooling,
    PredictOptions,
    Texts,
    VectorSimilarity,
)


@keras.saving.register_keras_serializable(package="bert_keras")
class TextEmbedder(Embedder):
    """Gives each text a vector; texts of similar meaning get vectors of similar direction.

    The vectors of a text's tokens are pooled into one. Training moves the vectors of texts that
    belong together closer to each other; `objective` determines what `fit` takes, and the loss:

    | objective | x | y | loss |
    |---|---|---|---|
    | `"ranking"` | `(anchors, positives)`, further columns: hard negatives | none, or groups | \
`MultipleNegativesRanking` |
    | `"similarity"` | `(first, second)` | scores from -1 to 1 | `CosineRegression` |
    | `"triplet"` | `(anchors, positives, negatives)` | none | `TripletLoss` |
    | `"distillation"` | `(queries, positives, negatives)`, further negatives | a teacher's scores \
of the texts after the first, `(num_examples, num_texts - 1)` | `MarginMSE` |
    | `"vectors"` | texts, or columns of texts, such as translations | a teacher's vectors, \
`(num_examples, dim)` | `EmbeddingMSE` |

    Columns are lists of str of equal length: the texts of a row belong together, and each text is
    embedded on its own. A negative that equals its positive is refused. In ranking, a group is a
    number or a name for each row; rows of the same group are not negatives of each other. Ready
    inputs have the columns on an axis after `batch`: `(batch, num_texts, seq_len)`.

    For other settings of a loss, or another loss of the same columns, compile with an instance of
    it: `MultipleNegativesRanking(symmetric=True)`, `CoSENT()` or `AnglE()` for scores,
    `TeacherDivergence()` for a reranker's scores, and `Matryoshka(loss, dims)` around any of these.
    For large batches in little memory, pass `chunk_size` to `compile`.

    Args:
        backbone: a `Backbone`.
        preprocessor: a `TextPreprocessor`, or `None` for ready inputs only.
        pooling: `"mean"` over the real tokens, `"cls"`, `"max"`, or `"pooler"`.
        normalize: bool, whether vectors have length 1.
        projection: dict with `units`, and maybe `activation` and `use_bias`, for a dense layer
            after the pooling, see `EmbeddingHead`; `None` for none.
        prompts: dict, name -> text, that `embed` puts before texts; `None` for none.
        default_prompt: the name of the prompt of `embed` without `prompt`; `None` for none.
        similarity: how vectors are compared: `"cosine"`; `"dot"`, the inner product;
            `"euclidean"` or `"manhattan"`, the negative distance. A loss has its own `similarity`.
        objective: a row of the table above.
        frozen: `None`, `"embeddings"`, or an int, see `Task`.
        **kwargs: `name`, `dtype`, `trainable`, see `keras.Model`.

    Call arguments:
        inputs: dict of ints `(batch, seq_len)` or `(batch, num_texts, seq_len)`.
        training: bool, whether dropout is active.

    Returns:
        float32 `(batch, dim)` or `(batch, num_texts, dim)`, where `dim` is `hidden_dim`, or the
        `units` of the projection.

    Raises:
        ValueError: `pooling`, `normalize`, `projection`, `similarity`, `objective` or `frozen` is
            unknown, or a prompt is not a str.

    A folder of sentence-transformers brings its pooling, dense layer, normalization, prompts,
    similarity and longest sequence along, from `modules.json` and the files beside it. Arguments of
    `from_preset` come before them. As in its version 6, white space around a text is kept.

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

    answerers = (EmbedAnswerer,)
    head_config_keys = ("projection",)
    serving_signature = ServingSignature("vectors", None, (1,))
    write_hub_settings = staticmethod(sentence_transformers.write_settings)
    exports_backbone_alone = True

    def __init__(
        self,
        backbone: Backbone,
        preprocessor: TextPreprocessor | None = None,
        pooling: Pooling = "mean",
        normalize: bool = True,
        projection: DenseOptions | None = None,
        similarity: VectorSimilarity = "cosine",
        **kwargs: Unpack[EmbedderOptions],
    ) -> None:
        super().__init__(backbone, preprocessor, **kwargs)
        check_bool("normalize", normalize)
        self.similarity = check_choice("similarity", similarity, SIMILARITIES)
        if self.frozen == "backbone" and projection is None:
            rule = "All weights of an embedder without `projection` are in its backbone"
            advice = "Pass None, 'embeddings' or a number of layers, to train the others."
            refuse_options(rule, {"frozen": self.frozen}, advice)
        self.pooling = pooling
        self.normalize = normalize
        settings = (pooling, normalize, projection)
        self.head = EmbeddingHead(*settings, dtype=self.dtype_policy, name="head")
        self.projection = self.head.projection

    @property
    def dim(self) -> int:
        """The number of values in a vector."""
        return self.projection["units"] if self.projection else self.backbone.hidden_dim

    def similarities(self, queries: ArrayLike, documents: ArrayLike) -> NDArray[np.float32]:
        """Returns the similarity of each query's vector and each document's.

        Args:
            queries: float array `(num_queries, dim)`.
            documents: float array `(num_documents, dim)`.

        Returns:
            float array `(num_queries, num_documents)`.

        Raises:
            ValueError: the arrays are not 2-D, or their widths differ.
        """
        return similarity_matrix(queries, documents, self.similarity)

    def checked_vectors(self, vectors: Any) -> tuple[NDArray[np.float32], bool]:
        """Returns vectors as a matrix, and whether they are one vector.

        Raises:
            ValueError: they are no floats, or wider than those of `embed`.
        """
        vectors = np.asarray(vectors)
        width = vectors.shape[-1] if vectors.ndim in (1, 2) else 0
        if vectors.dtype.kind != "f" or not 1 <= width <= self.dim:
            raise ValueError(
                f"Vectors must be floats of width {self.dim}, or of the `dim` passed to `embed`. "
                f"Received: dtype {vectors.dtype}, shape {vectors.shape}."
            )
        return np.atleast_2d(vectors), vectors.ndim == 1

    # Answers

    def embed(
        self,
        texts: str | Texts,
        prompt: str | None = None,
        *,
        dim: int | None = None,
        **options: Unpack[PredictOptions],
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
            dim: int, how many values of each vector to keep, for embedders that were trained with
                `Matryoshka`; `None` for all. If `normalize`, the rest is scaled to length 1 again.

        Returns:
            float32 array `(num_texts, dim)`; for a str `(dim,)`.

        Raises:
            TypeError: something is not text.
            ValueError: there is no prompt of that name, or `dim` is beyond the vectors.
        """
        return self.ask("embed", texts, prompt=prompt, dim=dim, **options)
