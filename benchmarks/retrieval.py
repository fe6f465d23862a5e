"""How well searches find the paragraph that answers a question: SQuAD 1.1 dev as retrieval.

    KERAS_BACKEND=torch OMP_NUM_THREADS=1 python benchmarks/retrieval.py --squad dev-v1.1.json

The corpus is all paragraphs, the queries are the first questions of `--num_queries`, one relevant
paragraph each. Prints a Markdown table of scores, of seconds to search all queries without
embedding them, and of megabytes of the vectors' arrays.
"""

import time

from absl import app, flags

import bert_keras
from bert_keras import search
from bert_keras.datasets import read_squad

SQUAD = flags.DEFINE_string("squad", None, "dev-v1.1.json.", required=True)
PRESET = flags.DEFINE_string("preset", "minilm_l6_en_uncased", "An embedder.")
NUM_QUERIES = flags.DEFINE_integer("num_queries", 10570, "Questions, from the first on.")
SCORES = ("recall@1", "recall@10", "mrr@10", "ndcg@10")


def read_data(path, num_queries):
    examples = read_squad(path).examples
    places = {text: n for n, text in enumerate(dict.fromkeys(e.context for e in examples))}
    queries = {n: example.question for n, example in enumerate(examples[:num_queries])}
    relevance = {n: {places[examples[n].context]: 1} for n in queries}
    return search.RetrievalData({n: text for text, n in places.items()}, queries, relevance)


def measure(name, find, data, megabytes):
    """Prints a row of the table; returns the hits."""
    start = time.perf_counter()
    hits = find(list(data.queries.values()), 10)
    seconds = time.perf_counter() - start
    found = search.evaluate_retrieval(lambda queries, top_k: hits, data, (1, 10))
    cells = [name, *(f"{found[score]:.3f}" for score in SCORES), f"{seconds:.1f}", megabytes]
    print(f"|{'|'.join(cells)}|", flush=True)
    return hits


def main(argv):
    data = read_data(SQUAD.value, NUM_QUERIES.value)
    texts = list(data.corpus.values())
    embedder = bert_keras.TextEmbedder.from_preset(PRESET.value)
    start = time.perf_counter()
    documents = embedder.embed(texts)
    queries = embedder.embed(list(data.queries.values()))
    seconds = time.perf_counter() - start
    print(f"{len(texts)} documents, {len(queries)} queries, embedded in {seconds:.0f} s.\n")
    print(f"||{'|'.join(SCORES)}|seconds|MB|\n|-|{'-|' * 6}")
    words = search.BM25Index()
    words.add(texts)
    by_words = measure("BM25", words.search, data, "")
    for precision, bits in (("float32", 32), ("int8", 8), ("binary", 1)):
        for engine in ("numpy", "faiss"):
            index = search.Index(precision, engine)
            index.add(documents)
            name = f"{PRESET.value}, {precision}, {engine}"
            megabytes = f"{documents.size * bits / 8e6:.2f}"
            hits = measure(
                name, lambda _, k, index=index: index.search(queries, k), data, megabytes
            )
            if (precision, engine) == ("float32", "numpy"):
                by_vectors = hits
    fused = search.reciprocal_rank_fusion(by_words, by_vectors)
    measure("BM25 and float32 fused", lambda queries, k: fused, data, "")


if __name__ == "__main__":
    app.run(main)
