"""An index in Qdrant, inside the process or on a server."""

import uuid
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from bert_keras.answers.similarity import SIMILARITIES
from bert_keras.checks import check_choice, check_int, check_not_empty, raise_at_first, require
from bert_keras.search.saved_index import check_rows, check_sparse, check_vectors, hit
from bert_keras.types import VectorSimilarity

# At most this many points in a request. A number takes about 20 bytes in JSON, and a server accepts
# 32 MB: 256 vectors of 4,096 dimensions, or 4 texts of 300 tokens with 1,024 each.
_POINTS, _POINTS_OF_TOKENS = 256, 4
_SPARSE = "sparse"  # The name of sparse vectors, which must have one.
# Similarity -> Qdrant's name.
_DISTANCES = {"cosine": "COSINE", "dot": "DOT", "euclidean": "EUCLID", "manhattan": "MANHATTAN"}


class QdrantIndex:
    """Vectors with their ids and payloads in a collection of Qdrant.

    The first vectors decide what the collection holds:

    | vectors, of | form | score |
    |---|---|---|
    | `TextEmbedder` | array `(num_vectors, dim)` | `similarity` |
    | `SparseTextEmbedder` | sparse matrix `(num_vectors, vocabulary_size)` | inner product |
    | `MultiVectorEmbedder` | list of arrays `(num_tokens, dim)` | MaxSim |

    Qdrant stores what is added at once, so there is no `save`. Its server shards and replicates a
    collection, as `collection_options` set.

    Args:
        location: `":memory:"`, which lasts as long as the process; or the URL of a server, such as
            `"http://localhost:6333"`.
        collection: str, its name.
        collection_options: dict for Qdrant's `create_collection`, such as
            `{"shard_number": 4, "replication_factor": 2}`.
        similarity: see `Index`; `None` for that of an existing collection, and the cosine of a new
            one. Other vectors than those of a `TextEmbedder` have the one in the table.
        **client_options: for `qdrant_client.QdrantClient`, such as `api_key`, or `path`, a folder
            instead of a location.

    Raises:
        ValueError: the collection has another similarity.
        ImportError: qdrant-client is not installed.
        ConnectionError: the server does not answer. Later, errors of the connection are those of
            Qdrant's client.

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
        similarity: VectorSimilarity | None = None,
        **client_options: Any,
    ) -> None:
        qdrant = require("qdrant_client", "search in Qdrant", "search")
        location = None if "path" in client_options else location
        self.collection, self._options = collection, collection_options or {}
        self._models = qdrant.models
        self._client = qdrant.QdrantClient(location, **client_options)
        self.dim, self._kind = None, None
        self.similarity = check_choice("similarity", similarity, (None, *SIMILARITIES)) or "cosine"
        try:
            exists = self._client.collection_exists(collection)
        except qdrant.http.exceptions.ResponseHandlingException as error:
            raise ConnectionError(
                f"Qdrant must answer at {location or client_options['path']}. Received: "
                f"{error!s:.200}. Start it, or correct the location."
            ) from error
        if exists:
            params = self._client.get_collection(collection).config.params
            if params.sparse_vectors:
                self._kind = "sparse"
            else:
                self.dim, distance = params.vectors.size, params.vectors.distance.name
                self._kind = "multi" if params.vectors.multivector_config else "dense"
                self.similarity = {y: x for x, y in _DISTANCES.items()}[distance]
        if self._kind == "dense" and similarity not in (None, self.similarity):
            raise ValueError(
                f"The collection {collection!r} compares vectors by {self.similarity!r}. Received: "
                f"similarity={similarity!r}. Leave it out, or name another collection."
            )

    def __len__(self) -> int:
        if self._kind is None:
            return 0
        return self._client.count(self.collection).count

    def add(
        self,
        vectors: Any,
        ids: Iterable[str | int] | None = None,
        payloads: Sequence[Any] | None = None,
    ) -> None:
        """Adds vectors, see `Index.add`; makes the collection if it is missing.

        Args:
            vectors: see the class.
            ids, payloads: see `Index.add`.

        Raises:
            TypeError, ValueError: see `Index.add`; before anything is sent.
        """
        kind = self._kind or _kind_of(vectors)
        vectors, dim = self._checked("Vectors", vectors, kind)
        count = vectors.shape[0] if kind == "sparse" else len(vectors)
        start = len(self)
        ids, payloads = check_rows(count, ids, payloads, start=start)
        size = _POINTS_OF_TOKENS if kind == "multi" else _POINTS
        parts = [slice(first, first + size) for first in range(0, count, size)]
        if self._kind is None:
            self._client.create_collection(
                self.collection, **self._params(kind, dim), **self._options
            )
            self._kind, self.dim = kind, dim
        # Qdrant's names of points are UUIDs.
        names = [str(uuid.uuid5(uuid.NAMESPACE_OID, repr(id))) for id in ids]
        if start:
            old = (self._client.retrieve(self.collection, names[part], False) for part in parts)
            old_names = {str(point.id) for points in old for point in points}
            is_old = [name in old_names for name in names]
            raise_at_first(is_old, ids, "An id must occur once in an index")
        for part in parts:
            columns = names[part], self._as_lists(vectors[part]), ids[part], payloads[part]
            points = [
                self._models.PointStruct(
                    id=name,
                    vector={_SPARSE: vector} if kind == "sparse" else vector,
                    payload={"id": id, "payload": payload},
                )
                for name, vector, id, payload in zip(*columns, strict=True)
            ]
            self._client.upsert(self.collection, points, wait=True)

    def _checked(self, name, vectors, kind):
        """Returns vectors of a kind and their width; raises unless they fit the collection."""
        if kind == "sparse":
            vectors = check_sparse(name, vectors, self.dim)
        elif kind == "multi":
            vectors = check_not_empty(list(vectors), f"{name} must not be empty")
            dim = self.dim or np.shape(vectors[0])[-1]
            return [check_vectors(name, tokens, dim) for tokens in vectors], dim
        else:
            vectors = check_vectors(name, vectors, self.dim)
        return vectors, vectors.shape[1]

    def _as_lists(self, vectors):
        """Returns checked vectors as Qdrant takes them, in much more memory."""
        if not hasattr(vectors, "tocsr"):
            return [vector.tolist() for vector in vectors]
        ends = zip(vectors.indptr[:-1], vectors.indptr[1:], strict=True)
        pairs = [(vectors.indices[x:y].tolist(), vectors.data[x:y].tolist()) for x, y in ends]
        return [self._models.SparseVector(indices=x, values=y) for x, y in pairs]

    def _params(self, kind, dim):
        """Returns the arguments that make a collection for vectors of a kind."""
        if kind == "sparse":
            sparse = {_SPARSE: self._models.SparseVectorParams()}
            return {"vectors_config": {}, "sparse_vectors_config": sparse}
        comparator = self._models.MultiVectorComparator.MAX_SIM
        config = self._models.MultiVectorConfig(comparator=comparator) if kind == "multi" else None
        distance = _DISTANCES["dot" if kind == "multi" else self.similarity]
        params = {"distance": self._models.Distance[distance], "multivector_config": config}
        return {"vectors_config": self._models.VectorParams(size=dim, **params)}

    def search(self, queries: Any, top_k: int = 10, **options: Any) -> Any:
        """Returns the vectors most similar to each query, see `Index.search`.

        Args:
            queries: vectors as in `add`; or a float array `(dim,)`, with MaxSim
                `(num_tokens, dim)`, for one query.
            top_k: int, hits for each query at most, see `Index.search`. Of equal scores, Qdrant
                chooses the order.
            **options: for Qdrant's `query_points`, such as `query_filter`.

        Raises:
            ValueError: see `Index.search`.
        """
        check_int("top_k", top_k)
        check_not_empty(self, "An index must have vectors to search", "Call `add`.")
        if self._kind == "dense" and np.ndim(queries) == 1:
            return self.search(np.atleast_2d(queries), top_k, **options)[0]
        if self._kind == "multi" and getattr(queries, "ndim", 0) == 2:
            return self.search([queries], top_k, **options)[0]
        is_distance = self._kind == "dense" and self.similarity in ("euclidean", "manhattan")
        sign, hits = -1 if is_distance else 1, []
        options |= {"using": _SPARSE} if self._kind == "sparse" else {}
        for query in self._as_lists(self._checked("Queries", queries, self._kind)[0]):
            results = self._client.query_points(
                self.collection, query=query, limit=top_k, **options
            ).points
            hits.append(
                [hit(x.payload["id"], sign * x.score, x.payload["payload"]) for x in results]
            )
        return hits


def _kind_of(vectors):
    """Returns what vectors are: `"sparse"`, `"multi"`, a list of matrices, or `"dense"`."""
    if hasattr(vectors, "tocsr"):
        return "sparse"
    is_multi = isinstance(vectors, (list, tuple)) and vectors and np.ndim(vectors[0]) == 2
    return "multi" if is_multi else "dense"
