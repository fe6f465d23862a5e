"""An index over vectors, with the ids and payloads that belong to them."""

from collections.abc import Iterable, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from bert_keras.answers.similarity import SIMILARITIES, l2_normalize
from bert_keras.checks import check_choice, check_shape
from bert_keras.search.exact_vectors import ExactVectors, best_of
from bert_keras.search.faiss_vectors import FaissVectors
from bert_keras.search.saved_index import SavedIndex, check_vectors
from bert_keras.types import VectorSimilarity

FACTORIES = {"int8": "SQ8", "binary": "RaBitQ,Refine(SQ8)"}
# faiss learns from this many vectors at least; until then the search is exact.
_TRAINING = 1000


class Index(SavedIndex):
    """Vectors with their ids and payloads, searched by NumPy or by faiss.

    | index | faiss's name | memory for each value |
    |---|---|---|
    | `Index()`, exact, by NumPy | | 4 bytes |
    | `Index(factory="HNSW32")`, approximate | `HNSW32` | 4 bytes, and some 260 a vector |
    | `Index("int8")` | `SQ8` | 1 byte |
    | `Index("binary")`: finds by bits, scores by 8-bit codes | `RaBitQ,Refine(SQ8)` | 9 bits |

    HNSW searches with `efSearch=128`: among 100,000 random vectors it finds 98 % of the ten
    nearest, and 69 % with faiss's own 16, which takes a fifth of the time. `"HNSW48"` finds more.
    Any other name of faiss's `index_factory` is a `factory` too. faiss learns the range of its
    codes from vectors, so an index of fewer than 1,000 keeps them as they are, and is exact.

    Args:
        precision: `"float32"`, `"int8"` or `"binary"`.
        factory: str, see the table; `None` for the one that fits `precision`.
        similarity: how vectors are compared: `"cosine"`; `"dot"`, the inner product;
            `"euclidean"` or `"manhattan"`, the negative distance. Pass `embedder.similarity`.

    Raises:
        ValueError: an argument is unknown, or faiss is needed for the similarity `"manhattan"`.
        ImportError: faiss is needed and not installed.

    Example:
    ```python
    index = bert_keras.search.Index(similarity=embedder.similarity)
    index.add(embedder.embed(texts, "document"), payloads=texts)
    index.search(embedder.embed("Who eats?", "query"), top_k=3)
    index.save("texts.index")
    ```

    Reference:
        [faiss](https://arxiv.org/abs/2401.08281).
    """

    saved = ("precision", "factory", "similarity")

    def __init__(
        self,
        precision: Literal["float32", "int8", "binary"] = "float32",
        factory: str | None = None,
        similarity: VectorSimilarity = "cosine",
    ) -> None:
        super().__init__()
        self.precision = check_choice("precision", precision, ("float32", *FACTORIES))
        self.similarity = check_choice("similarity", similarity, SIMILARITIES)
        self.factory = factory
        self._vectors, self._faiss = ExactVectors(similarity), None
        if factory is not None or precision != "float32":
            allowed = [name for name in SIMILARITIES if name != "manhattan"]
            check_choice("similarity", similarity, allowed, "`Index()` searches by all of them.")
            self._faiss = FaissVectors(factory or FACTORIES[precision], similarity)

    def add(
        self,
        vectors: ArrayLike,
        ids: Iterable[str | int] | None = None,
        payloads: Sequence[Any] | None = None,
    ) -> None:
        """Adds vectors. After an error, the index is as it was.

        Args:
            vectors: float array `(num_vectors, dim)`; the first ones determine `dim`.
            ids: str or int, one for each vector and each new; `None` numbers them.
            payloads: anything that JSON can hold, one for each vector, such as its text.

        Raises:
            ValueError: there are no vectors, their width differs from `dim`, a value is not finite,
                an id exists already, or a payload does not fit into JSON.
        """
        vectors = self._checked("Vectors", vectors)
        ids, payloads = self._check_rows(len(vectors), ids, payloads)
        if self._faiss in (None, self._vectors):
            self._vectors.add(vectors)
        elif len(self) + len(vectors) < _TRAINING:
            self._faiss.make(vectors.shape[1])  # Raises if its name is unknown.
            self._vectors.add(vectors)
        else:
            self._faiss.make(vectors.shape[1], self._vectors.joined(vectors))
            self._vectors = self._faiss
        self._add_rows(ids, payloads)
        self.dim = vectors.shape[1]

    def _checked(self, name, vectors):
        """Returns vectors as the engine compares them; raises unless they fit the index."""
        vectors = check_vectors(name, vectors, self.dim)
        return l2_normalize(vectors) if self.similarity == "cosine" else vectors

    def search(self, queries: ArrayLike, top_k: int = 10) -> Any:
        """Returns the vectors most similar to each query.

        Args:
            queries: float array `(num_queries, dim)`, or `(dim,)` for one query.
            top_k: int, hits for each query at most. The hits of a smaller `top_k` are the first
                hits of a larger one: always where all vectors are scored, up to 31 hits where
                the search is approximate, as with `"binary"` or `"HNSW32"`.

        Returns:
            For each query a list of `{"id", "score", "payload"}`, best first, without `"payload"`
            where there is none; for one query of the shape `(dim,)` that list alone. The score is
            the similarity. Equal scores keep the order in which they were added.

        Raises:
            ValueError: the index is empty, there are no queries, their width differs from `dim`, a
                value is not finite, or `top_k` is below 1.
        """
        is_one = np.ndim(queries) == 1
        queries = self._checked("Queries", np.atleast_2d(queries) if is_one else queries)
        vectors = self._vectors
        found = best_of(lambda k: vectors.search(queries, k), len(self), top_k, vectors.scores_all)
        hits = self._hits(*found)
        return hits[0] if is_one else hits

    def _arrays(self):
        return self._vectors.arrays()

    def _set_arrays(self, arrays):
        [(name, array)] = arrays.items()
        if name == "faiss":
            self._vectors = self._faiss
        shape = self._vectors.set_array(array)
        check_shape("The vectors", np.broadcast_to(0.0, shape), (len(self), self.dim))
