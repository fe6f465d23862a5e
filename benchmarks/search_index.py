"""Queries per second, recall and memory of `search.Index`, beside the engine called directly.

    OMP_NUM_THREADS=1 python benchmarks/search_index.py --sizes 10000,100000 --output rows.jsonl

Vectors are points near a plane of 32 dimensions in 384, of length 1, drawn at random: like those of
an encoder they have neighbours, and approximate search finds them. A query is a further point.
`Index` and its engine, on the same vectors, answer the same queries in turn, `--rounds` times; the
times are processor seconds, and the ratio is the median over rounds. Recall is the share of the ten
nearest vectors that are found. Memory is that of the vectors' arrays, or of faiss's index; with
Qdrant, by how much the process grows in `add`, and at its peak until the end. 1,000,000 vectors in
Qdrant take long, so they are measured only when `--kinds` names it.
"""

import os
import resource
import statistics

os.environ.setdefault("KERAS_BACKEND", "torch")

import numpy as np
import turns
from absl import app, flags
from kept_rows import add_row, read_rows

from bert_keras import search

SIZES = flags.DEFINE_list("sizes", ["10000", "100000"], "Numbers of vectors.")
NUM_QUERIES = flags.DEFINE_integer("num_queries", 500, "Queries of a round, all in one call.")
ROUNDS = flags.DEFINE_integer("rounds", 5, "Rounds.")
KINDS_MEASURED = flags.DEFINE_list("kinds", None, "Parts of names; all kinds by default.")
OUTPUT = flags.DEFINE_string("output", None, "A file for the rows: those in it are kept.")
DIM, PLANE, K, NUM_ASKED, QDRANT_QUERIES = 384, 32, 10, 32, 20
# The share of a candidate's distance that is not in the plane.
NOISE = 0.3


def points(count, seed):
    rng = np.random.default_rng(seed)
    plane = np.random.default_rng(0).normal(size=(PLANE, DIM)) / PLANE**0.5
    places, found = rng.normal(size=(count, PLANE)), np.empty((count, DIM), "float32")
    for start in range(0, count, 100_000):  # The noise of 10^6 vectors takes 3 GB in float64.
        part = places[start : start + 100_000] @ plane
        part += NOISE * rng.normal(size=part.shape)
        found[start : start + 100_000] = part / np.linalg.norm(part, axis=1, keepdims=True)
    return found


class Numpy:
    """The product with all vectors, and the best of it."""

    def __init__(self, vectors, index):
        self.vectors = vectors

    def search(self, queries):
        scores = queries @ self.vectors.T
        best = np.argpartition(-scores, K - 1, axis=1)[:, :K]
        order = np.argsort(-np.take_along_axis(scores, best, axis=1), axis=1)
        return np.take_along_axis(best, order, axis=1)


class Faiss:
    """The index of faiss that `Index` holds, asked for as many hits."""

    def __init__(self, vectors, index):
        self.index = index._vectors._index

    def search(self, queries):
        return self.index.search(queries, NUM_ASKED)[1][:, :K]


class Qdrant:
    """The client that `QdrantIndex` holds."""

    def __init__(self, vectors, index):
        self.client, self.collection = index._client, index.collection

    def search(self, queries):
        found = [
            self.client.query_points(self.collection, query=query, limit=K).points
            for query in queries.tolist()
        ]
        return np.array([[point.id for point in points] for points in found])


# Name -> (how to make our index, its engine, the most vectors it is measured with).
KINDS = {
    "float32, NumPy": (search.Index, Numpy, 10**6),
    "float32, faiss Flat": (lambda: search.Index(factory="Flat"), Faiss, 10**6),
    "int8, faiss SQ8": (lambda: search.Index("int8"), Faiss, 10**6),
    "binary, faiss RaBitQ": (lambda: search.Index("binary"), Faiss, 10**6),
    "float32, faiss HNSW32": (lambda: search.Index(factory="HNSW32"), Faiss, 10**6),
    "float32, Qdrant in the process": (search.QdrantIndex, Qdrant, 10**5),
}


def memory(index):
    return sum(array.nbytes for array in index._vectors.arrays().values())


def measure(name, size, queries, vectors, exact):
    make, make_engine, _ = KINDS[name]
    if "Qdrant" in name:
        queries, exact = queries[:QDRANT_QUERIES], exact[:QDRANT_QUERIES]
    index, before = make(), turns.resident_bytes()
    [[(added, _)]], _ = turns.alternate([lambda: index.add(vectors)], 1)
    grown = turns.resident_bytes() - before
    sides = [lambda: index.search(queries, K)]
    if make_engine:
        engine = make_engine(vectors, index)
        sides.append(lambda: engine.search(queries))
    seconds, (found, *_) = turns.alternate(sides, ROUNDS.value)
    ours, *theirs = ([processor for processor, _ in side] for side in seconds)
    ids = [{hit["id"] for hit in hits} for hits in found]
    row = {"index": name, "vectors": size, "add_seconds": added}
    row["recall"] = np.mean([len(a & {*b}) / K for a, b in zip(ids, exact.tolist(), strict=True)])
    row["queries_per_second"] = len(queries) / statistics.median(ours)
    for engines in theirs:
        row["engine_per_second"] = len(queries) / statistics.median(engines)
        ratios = [a / b for a, b in zip(ours, engines, strict=True)]
        row["time_beside_the_engine"] = statistics.median(ratios)
    if "Qdrant" in name:
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 - before
        return {**row, "megabytes": grown / 1e6, "peak_megabytes": peak / 1e6}
    return {**row, "megabytes": memory(index) / 1e6}


def main(argv):
    done = {(row["index"], row["vectors"]) for row in read_rows(OUTPUT.value)}
    for size in map(int, SIZES.value):
        vectors, queries = points(size, 1), points(NUM_QUERIES.value, 2)
        exact = Numpy(vectors, None).search(queries)
        for name, (*_, most) in KINDS.items():
            named = any(part in name for part in KINDS_MEASURED.value or ())
            if (name, size) in done or not (named if KINDS_MEASURED.value else size <= most):
                continue
            add_row(OUTPUT.value, measure(name, size, queries, vectors, exact))


if __name__ == "__main__":
    app.run(main)
