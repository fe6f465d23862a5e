"""Tasks in the form in which MTEB evaluates models."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bert_keras.checks import check_type, require
from bert_keras.tasks.reranker import Reranker
from bert_keras.tasks.text_embedder import TextEmbedder


def as_mteb_model(task: TextEmbedder | Reranker, name: str = "bert_keras/model") -> Any:
    """Returns a model that `mteb.evaluate` takes.

    MTEB evaluates a `TextEmbedder` on all tasks on texts, and a `Reranker` on reranking.

    Args:
        task: a `TextEmbedder` or a `Reranker`.
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
    check_type("task", task, (TextEmbedder, Reranker), "a `TextEmbedder` or a `Reranker`")
    return (MtebCrossEncoder if isinstance(task, Reranker) else MtebEncoder)(task, name)


class MtebModel:
    """A task and the name that MTEB keeps its results under."""

    kind = "dense"

    def __init__(self, task, name):
        self.task, self.name = task, name

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
        return self.task.embed_as(str(prompt_type), texts, batch_size)

    def similarity(self, embeddings1: Any, embeddings2: Any) -> NDArray[np.float32]:
        """Returns the similarity of each vector and each other, `(num_first, num_second)`."""
        return self.task.similarities(*map(np.atleast_2d, (embeddings1, embeddings2)))

    def similarity_pairwise(self, embeddings1: Any, embeddings2: Any) -> NDArray[np.float32]:
        """Returns the similarity of each vector and the one in the same row, `(num_vectors,)`."""
        return self.task.similarities_of_pairs(*map(np.atleast_2d, (embeddings1, embeddings2)))


class MtebCrossEncoder(MtebModel):
    """A `Reranker` as MTEB's `CrossEncoderProtocol`."""

    kind = "cross-encoder"

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
        return self.task.score(_texts(inputs1), _texts(inputs2), batch_size)


def _texts(batches):
    return [text for batch in batches for text in batch["text"]]
