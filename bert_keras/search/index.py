"""An index over vectors, with the ids and payloads that belong to them."""

import pathlib
from collections.abc import Iterable, Sequence
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from bert_keras.checks import check_choice, check_int, check_not_empty, refuse_unused
from bert_keras.engine.atomic_files import of_one_state, reading
from bert_keras.search.faiss_vectors import FACTORIES, FaissVectors
from bert_keras.search.numpy_vectors import BinaryVectors, FloatVectors, Int8Vectors
from bert_keras.search.records import (
    Records,
    check_kind,
    check_vectors,
    read_records,
    save_folder,
)
from bert_keras.types import Path

KIND = "bert_keras.search.Index"
VECTORS = {"float32": FloatVectors, "int8": Int8Vectors, "binary": BinaryVectors}


class Index:
    """Vectors with their ids and payloads, searched by inner product.

    The vectors of a `TextEmbedder` have the length 1, so that the inner product is the cosine.

    | precision | memory for each value | how a query finds vectors |
    |---|---|---|
    | `"float32"` | 4 bytes | one product with all vectors |
    | `"int8"` | 1 byte | one product with codes, see `Int8Vectors` |
    | `"binary"` | 1 bit; 1 byte more stays on the disk | the nearest by bits, scored by codes |

    NumPy serves up to some 10^5 vectors; `engine="faiss"` serves what one machine holds, and
    `QdrantIndex` what several machines hold.

    Args:
        precision: `"float32"`, `"int8"` or `"binary"`.
        engine: `"numpy"` or `"faiss"`.
        factory: str, the kind of faiss's index, such as `"HNSW32"` for approximate search; `None`
            for the one that fits `precision`.

    Raises:
        ValueError: an argument is unknown, or `factory` is set without faiss.
        ImportError: faiss is not installed.

    Example:
    ```python
    index = bert_keras.search.Index()
    index.add(embedder.embed(texts, "document"), payloads=texts)
    index.search(embedder.embed("Who eats?", "query"), top_k=3)
    index.save("texts.index")
    ```

    Reference:
        [faiss](https://arxiv.org/abs/2401.08281).
    """

    def __init__(
        self,
        precision: Literal["float32", "int8", "binary"] = "float32",
        engine: Literal["numpy", "faiss"] = "numpy",
        factory: str | None = None,
    ) -> None:
        self.precision = check_choice("precision", precision, tuple(VECTORS))
        self.engine = check_choice("engine", engine, ("numpy", "faiss"))
        if engine == "numpy":
            rule = "`factory` is an argument for faiss"
            refuse_unused(rule, {"factory": factory}, "Pass engine='faiss'.")
        self.factory, self.dim = factory, None
        self._records = Records()
        self._vectors = (
            VECTORS[precision]()
            if engine == "numpy"
            else FaissVectors(factory or FACTORIES[precision])
        )

    def __len__(self) -> int:
        return len(self._records)

    def add(
        self,
        vectors: ArrayLike,
        ids: Iterable[str | int] | None = None,
        payloads: Sequence[Any] | None = None,
    ) -> None:
        """Adds vectors. After an error, the index is as it was.

        Args:
            vectors: float array `(num_vectors, dim)`. The first ones determine `dim`; with
                `"int8"` and `"binary"` also the range of values, so they should be typical.
            ids: str or int, one for each vector and each new; `None` numbers them.
            payloads: anything that JSON can hold, one for each vector, such as its text.

        Raises:
            ValueError: there are no vectors, their width differs from `dim`, a value is not finite,
                an id exists already, or a payload does not fit into JSON.
        """
        vectors = check_vectors("Vectors", vectors, self.dim)
        ids, payloads = self._records.check(len(vectors), ids, payloads)
        self._vectors.add(vectors)
        self._records.add(ids, payloads)
        self.dim = vectors.shape[1]

    def search(self, queries: ArrayLike, top_k: int = 10) -> Any:
        """Returns the vectors with the largest inner product with each query.

        Args:
            queries: float array `(num_queries, dim)`, or `(dim,)` for one query.
            top_k: int, hits for each query at most.

        Returns:
            For each query a list of `{"id", "score", "payload"}`, best first, without `"payload"`
            where there is none; for one query of the shape `(dim,)` that list alone.

        Raises:
            ValueError: the index is empty, there are no queries, their width differs from `dim`, a
                value is not finite, or `top_k` is below 1.
        """
        check_int("top_k", top_k)
        check_not_empty(self, "An index must have vectors to search", "Call `add`.")
        is_one = np.ndim(queries) == 1
        queries = check_vectors("Queries", np.atleast_2d(queries) if is_one else queries, self.dim)
        scores, positions = self._vectors.search(queries, top_k)
        hits = self._records.hits(scores, positions, positions >= 0)
        return hits[0] if is_one else hits

    def save(self, folder: Path) -> None:
        """Writes the index into a folder, all of it or, after an error, nothing.

        Raises:
            ValueError: the index is empty, or the folder holds something else.
            OSError: a file cannot be written.
        """

        def write_arrays(new):
            for name, array in self._vectors.arrays().items():
                np.save(new / f"{name}.npy", array)

        names = ("precision", "engine", "factory", "dim")
        config = {"kind": KIND, **{name: getattr(self, name) for name in names}}
        save_folder(folder, config, self._records, write_arrays)

    @classmethod
    @of_one_state
    def load(cls, folder: Path) -> Self:
        """Returns an index that `save` wrote.

        Raises:
            FileNotFoundError: there is no index.
            ValueError: the folder holds something else, or a file is damaged.
            ImportError: its engine is not installed.
        """
        config = check_kind(folder, KIND)
        with reading(folder):
            index = cls(config["precision"], config["engine"], config["factory"])
            index.dim = check_int("dim", config["dim"])
            index._records, _ = read_records(folder, config)
            index._vectors.set_arrays(index._read_arrays(pathlib.Path(folder)))
        return index

    def _read_arrays(self, folder):
        """Returns the arrays of a folder by their names, each of the dtype and shape it must be."""
        if self.engine == "faiss":
            return {"faiss": np.load(folder / "faiss.npy", allow_pickle=False)}
        size, dim = len(self), self.dim
        ranges = {"range": ("float32", (2, dim)), "codes": ("int8", (size, dim))}
        expected = {
            "float32": {"vectors": ("float32", (size, dim))},
            "int8": ranges,
            "binary": {"bits": ("uint64", (size, -(-dim // 64))), **ranges},
        }[self.precision]
        arrays = {}
        for name, (dtype, shape) in expected.items():
            stays = "r" if name == "codes" and self.precision == "binary" else None
            array = np.load(folder / f"{name}.npy", mmap_mode=stays, allow_pickle=False)
            if array.dtype != dtype or array.shape != shape:
                raise ValueError(
                    f"{name}.npy must be {dtype} {shape}. Received: {array.dtype} {array.shape}."
                )
            arrays[name] = array
        return arrays
