"""Tasks in the form in which MTEB evaluates models."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bert_keras.checks import check_type, require
from bert_keras.tasks.embedder import Embedder, nearest
from bert_keras.tasks.reranker import Reranker
from bert_keras.tasks.text_embedder import TextEmbedder


def as_mteb_model(task: Embedder | Reranker, name: str = "bert_keras/model") -> Any:
    """Returns a model that `mteb.evaluate` takes.

    | task | protocol of MTEB | what it is evaluated on |
    |---|---|---|
    | `TextEmbedder` | encoder | all tasks on texts |
    | `SparseTextEmbedder`, `MultiVectorEmbedder` | search | retrieval and reranking |
    | `Reranker` | cross-encoder | reranking |

    Args:
        task: an embedder or a `Reranker`.
        name: str, an owner and a name, such as `"me/minilm"`: MTEB keeps results under it.

    Raises:
        TypeError: the task neither embeds nor scores texts.

    Example:
    ```python
    embedder = bert_keras.TextEmbedder.from_preset("minilm_l6_en_uncased")
    model = bert_keras.search.as_mteb_model(embedder, "me/minilm")
    results = mteb.evaluate(model, mteb.get_tasks(["SciFact"]))
    ```

    Reference:
        [Muennighoff et al., 2023](https://arxiv.org/abs/2210.07316).
    """
    check_type("task", task, (Embedder, Reranker), "an embedder or a `Reranker`")
    if isinstance(task, Reranker):
        return MtebCrossEncoder(task, name, "cross-encoder")
    if isinstance(task, TextEmbedder):
        return MtebEncoder(task, name, "dense")
    kind = "late-interaction" if hasattr(task, "query_marker") else "sparse"
    return MtebSearch(task, name, kind)


class MtebModel:
    """A task, the name that MTEB keeps its results under, and MTEB's kind of model."""

    def __init__(self, task, name, kind):
        self.task, self.name, self.kind = task, name, kind

    @property
    def mteb_model_meta(self) -> Any:
        """The `mteb.models.ModelMeta` of this model."""
        overwrites = {"name": self.name, "revision": "local", "model_type": [self.kind]}
        overwrites["n_parameters"] = self.task.count_params()
        if isinstance(self.task, TextEmbedder):
            overwrites["similarity_fn_name"] = self.task.similarity
        models = require("mteb.models", "describe a model for MTEB", "mteb")
        return models.ModelMeta.create_empty(overwrites)


class MtebEncoder(MtebModel):
    """A `TextEmbedder` as MTEB's `EncoderProtocol`."""

    def encode(
        self,
        inputs: Iterable[Mapping[str, Any]],
        *,
        prompt_type: str | None = None,
        batch_size: int | None = None,
        **kwargs: Any,
    ) -> NDArray[np.float32]:
        """Returns the vectors of texts.

        Args:
            inputs: batches of texts, dicts with the key `text`.
            prompt_type: `"query"`, `"document"` or `None`: the prompt, if the embedder has one.
            batch_size: int, 32 by default.
            **kwargs: what MTEB says about its task; ignored.

        Returns:
            float32 array `(num_texts, dim)`.
        """
        texts = _texts(inputs)
        if prompt_type is None:
            return self.task.embed(texts, batch_size=batch_size)
        return self.task.embed_as(str(prompt_type), texts, batch_size=batch_size)

    def similarity(self, embeddings1: Any, embeddings2: Any) -> NDArray[np.float32]:
        """Returns the similarity of each vector and each other, `(num_first, num_second)`."""
        return self.task.similarities(*map(np.atleast_2d, (embeddings1, embeddings2)))

    def similarity_pairwise(self, embeddings1: Any, embeddings2: Any) -> NDArray[np.float32]:
        """Returns the similarity of each vector and the one in the same row, `(num_vectors,)`."""
        return self.task.similarities_of_pairs(*map(np.atleast_2d, (embeddings1, embeddings2)))


class MtebCrossEncoder(MtebModel):
    """A `Reranker` as MTEB's `CrossEncoderProtocol`."""

    def predict(
        self,
        inputs1: Iterable[Mapping[str, Any]],
        inputs2: Iterable[Mapping[str, Any]],
        *,
        batch_size: int | None = None,
        **kwargs: Any,
    ) -> NDArray[np.float32]:
        """Returns the score of each pair.

        Args:
            inputs1, inputs2: batches of queries and of texts, dicts with the key `text`.
            batch_size: int, 32 by default.
            **kwargs: what MTEB says about its task; ignored.

        Returns:
            float32 array `(num_pairs,)`.
        """
        return self.task.score(_texts(inputs1), _texts(inputs2), batch_size=batch_size)


class MtebSearch(MtebModel):
    """An embedder of sparse or of several vectors as MTEB's `SearchProtocol`."""

    def index(
        self, corpus: Any, *, encode_kwargs: Mapping[str, Any] | None = None, **kwargs: Any
    ) -> None:
        """Embeds a corpus.

        Args:
            corpus: a `datasets.Dataset` with the columns `id`, `text` and, where documents have
                one, `title`.
            encode_kwargs: dict; its `batch_size` is used.
            **kwargs: what MTEB says about its task; ignored.
        """
        texts = list(corpus["text"])
        if "title" in corpus.column_names:
            pairs = zip(corpus["title"], texts, strict=True)
            texts = [f"{title or ''} {text}".strip() for title, text in pairs]
        self._ids = list(corpus["id"])
        self._documents = self._embed("document", texts, encode_kwargs)

    def search(
        self,
        queries: Any,
        *,
        top_k: int,
        top_ranked: Mapping[str, list[str]] | None = None,
        encode_kwargs: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> dict[str, dict[str, float]]:
        """Returns the best documents of each query.

        Args:
            queries: a `datasets.Dataset` with the columns `id` and `text`.
            top_k: int, documents for each query at most.
            top_ranked: dict, id of a query -> ids of the documents to choose from; `None` for all.
            encode_kwargs: dict; its `batch_size` is used.
            **kwargs: what MTEB says about its task; ignored.

        Returns:
            dict, id of a query -> dict, id of a document -> score.
        """
        vectors = self._embed("query", list(queries["text"]), encode_kwargs)
        places, results = {id: place for place, id in enumerate(self._ids)}, {}
        found = nearest(self.task, vectors, self._documents, len(places))
        for id, (scores, best) in zip(list(queries["id"]), found, strict=True):
            if top_ranked is not None:
                candidates = [places[each] for each in top_ranked.get(id, ())]
                best = best[np.isin(best, candidates)]
            results[id] = {self._ids[place]: float(scores[place]) for place in best[:top_k]}
        return results

    def _embed(self, kind, texts, encode_kwargs):
        batch_size = (encode_kwargs or {}).get("batch_size")
        return self.task.embed_as(kind, texts, batch_size=batch_size)


def _texts(batches):
    return [text for batch in batches for text in batch["text"]]
