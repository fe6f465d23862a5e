"""An index in Qdrant, inside the process or on a server."""

import contextlib
import uuid
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from bert_keras.checks import check_int, check_not_empty, refuse_first, require
from bert_keras.search.records import Records, check_vectors

# Points of one request.
_POINTS = 256


class QdrantIndex:
    """Vectors with their ids and payloads in a collection of Qdrant, searched by inner product.

    Qdrant stores what is added at once, so there is no `save`. Its server shards and replicates a
    collection, as `collection_options` ask for.

    Args:
        location: `":memory:"`, which lasts as long as the process; or the URL of a server, such as
            `"http://localhost:6333"`.
        collection: str, its name.
        collection_options: dict for Qdrant's `create_collection`, such as
            `{"shard_number": 4, "replication_factor": 2}`.
        **client_options: for `qdrant_client.QdrantClient`, such as `api_key`, or `path`, a folder
            instead of a location.

    Raises:
        ImportError: qdrant-client is not installed.
        ConnectionError: the server does not answer.

    Example:
    ```python
    index = bert_keras.search.QdrantIndex("http://localhost:6333", "texts")
    index.add(embedder.embed(texts, "document"), payloads=texts)
    index.search(embedder.embed("Who eats?", "query"), top_k=3)
    ```
    """

    def __init__(
        self,
        location: str | None = ":memory:",
        collection: str = "texts",
        collection_options: dict[str, Any] | None = None,
        **client_options: Any,
    ) -> None:
        qdrant = require("qdrant_client", "search in Qdrant", "search")
        location = None if "path" in client_options else location
        self.collection, self._options = collection, collection_options or {}
        self._place, self._models = location or client_options["path"], qdrant.models
        self._client = qdrant.QdrantClient(location, **client_options)
        self.dim = None
        with self._answering():
            if self._client.collection_exists(collection):
                found = self._client.get_collection(collection)
                self.dim = found.config.params.vectors.size

    def __len__(self) -> int:
        if self.dim is None:
            return 0
        with self._answering():
            return self._client.count(self.collection).count

    def add(
        self,
        vectors: ArrayLike,
        ids: Iterable[str | int] | None = None,
        payloads: Sequence[Any] | None = None,
    ) -> None:
        """Adds vectors, see `Index.add`; makes the collection if it is missing.

        Raises:
            ValueError: see `Index.add`; before anything is sent.
            ConnectionError: the server does not answer; it may have stored some of the vectors.
        """
        vectors = check_vectors("Vectors", vectors, self.dim)
        start = len(self)
        ids = range(start, start + len(vectors)) if ids is None else ids
        ids, payloads = Records().check(len(vectors), ids, payloads)
        points = [str(uuid.uuid5(uuid.NAMESPACE_OID, repr(id))) for id in ids]
        with self._answering():
            if self.dim is None:
                distance = self._models.Distance.DOT
                params = self._models.VectorParams(size=vectors.shape[1], distance=distance)
                self._client.create_collection(
                    self.collection, vectors_config=params, **self._options
                )
                self.dim = vectors.shape[1]
            known = {str(p.id) for p in self._client.retrieve(self.collection, points, False)}
            is_old = [point in known for point in points]
            refuse_first(is_old, ids, "An id must occur once in an index")
            rows = [
                self._models.PointStruct(id=p, vector=v, payload={"id": id, "payload": payload})
                for p, v, id, payload in zip(points, vectors.tolist(), ids, payloads, strict=True)
            ]
            for first in range(0, len(rows), _POINTS):
                self._client.upsert(self.collection, rows[first : first + _POINTS], wait=True)

    def search(self, queries: ArrayLike, top_k: int = 10, **options: Any) -> Any:
        """Returns the nearest vectors of each query, see `Index.search`.

        Args:
            queries: float array `(num_queries, dim)`, or `(dim,)` for one query.
            top_k: int, hits for each query at most.
            **options: for Qdrant's `query_points`, such as `query_filter`.

        Raises:
            ValueError: see `Index.search`.
            ConnectionError: the server does not answer.
        """
        check_int("top_k", top_k)
        check_not_empty(self, "An index must have vectors to search", "Call `add`.")
        if np.ndim(queries) == 1:
            return self.search(np.atleast_2d(queries), top_k, **options)[0]
        hits = []
        with self._answering():
            for query in check_vectors("Queries", queries, self.dim).tolist():
                found = self._client.query_points(
                    self.collection, query=query, limit=top_k, **options
                ).points
                hits.append([_hit(point) for point in found])
        return hits

    @contextlib.contextmanager
    def _answering(self):
        """A context in which errors of the connection name the place."""
        errors = require("qdrant_client.http.exceptions", "search in Qdrant", "search")
        try:
            yield
        except errors.ResponseHandlingException as error:
            raise ConnectionError(
                f"Qdrant must answer at {self._place}. Received: {error!s:.200}. Start it, or "
                "correct the location."
            ) from error


def _hit(point):
    hit = {"id": point.payload["id"], "score": point.score}
    payload = point.payload["payload"]
    return hit if payload is None else {**hit, "payload": payload}
