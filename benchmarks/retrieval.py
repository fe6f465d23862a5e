"""How well searches find the paragraph that answers a question: SQuAD's files as retrieval data.

    export KERAS_BACKEND=torch OMP_NUM_THREADS=1
    python benchmarks/retrieval.py --data dev-v1.1.json --splade FOLDER --output squad
    python benchmarks/retrieval.py --data DRCD_dev.json,DRCD_test.json --preset "" --output drcd
    python benchmarks/retrieval.py --qnli dev.tsv --output qnli

The corpus is all paragraphs, and each query has one relevant paragraph. With `--qnli` the corpus is
QNLI's sentences, and a query ranks the right and the wrong sentence that it is paired with. Each
row of the table is a line of `rows.jsonl` in the output folder, with the vectors beside it, so that
a killed run continues where it was. Times are processor seconds: to embed documents + queries, and
to search all queries.
"""

import functools
import itertools
import json
import pathlib
import time

import keras
import numpy as np
from absl import app, flags
from questions import read_qnli, read_questions, token_embedder

import bert_keras
from bert_keras import search
from bert_keras.search.bm25_index import split_into_words

DATA = flags.DEFINE_list("data", None, "Files in SQuAD's format.")
QNLI = flags.DEFINE_string("qnli", None, "dev.tsv of QNLI, instead of --data.")
PRESET = flags.DEFINE_string("preset", "minilm_l6_en_uncased", "An embedder, or nothing.")
SPLADE = flags.DEFINE_string("splade", None, "Folder of a SparseTextEmbedder.")
RERANKER = flags.DEFINE_string("reranker", None, "A .keras file of a Reranker.")
MAXSIM = flags.DEFINE_bool("maxsim", True, "Also measure MaxSim, the slowest method.")
PEER = flags.DEFINE_bool("sentence_transformers", False, "Also measure this library.")
NUM_QUERIES = flags.DEFINE_integer("num_queries", None, "The first queries; all by default.")
NUM_RERANKED_QUERIES = flags.DEFINE_integer("num_reranked", 200, "Queries of the reranker.")
OUTPUT = flags.DEFINE_string("output", None, "Folder of the rows and vectors.", required=True)
SCORES = ("recall@1", "recall@10", "mrr@10", "ndcg@10")
# Hits for fusion, and for MaxSim and a reranker.
NUM_HITS, NUM_RERANKED = 100, 20
# Precision and engine -> bits of a value in memory.
PRECISIONS = {
    ("float32", "numpy"): 32,
    ("int8", "numpy"): 8,
    ("int8", "faiss"): 8,
    ("binary", "numpy"): 1,
    ("binary", "faiss"): 9,
}


class Table:
    """Rows and arrays in a folder: what is there is not computed again."""

    def __init__(self, folder, data, candidates=None):
        self.folder, self.data, self.candidates = pathlib.Path(folder), data, candidates
        self.folder.mkdir(parents=True, exist_ok=True)
        self.file = self.folder / "rows.jsonl"
        lines = self.file.read_text().splitlines() if self.file.exists() else []
        self.rows = {row["name"]: row for row in map(json.loads, lines)}

    def vectors(self, name, embed, columns=None):
        """Yields the vectors of queries and documents, and the seconds that both took."""
        times, data = {}, self.data
        columns = columns or {"query": data.queries.values(), "document": data.corpus.values()}
        for kind in ("query", "document"):
            path = self.folder / f"{name}_{kind}.npz"
            if not path.exists():
                start = time.process_time()
                found = embed(kind, list(columns[kind]))
                seconds = time.process_time() - start
                np.savez(path, *flat(found), seconds=seconds)
            with np.load(path) as arrays:
                times[kind] = float(arrays["seconds"])
                yield unflat([arrays[key] for key in arrays.files if key != "seconds"])
        yield f"{times['document']:.0f} + {times['query']:.0f}"

    def row(self, name, find, megabytes="", embedding="", num_queries=None, top_k=NUM_HITS):
        """Measures `find(queries, top_k)`, unless the row exists; returns its hits."""
        hits_file = self.folder / f"{name.replace(' ', '_').replace('/', '_')}.hits.json"
        if name in self.rows and hits_file.exists():
            return json.loads(hits_file.read_text())
        queries = dict(list(self.data.queries.items())[:num_queries])
        start = time.process_time()
        hits = find(list(queries.values()), top_k)
        seconds = time.process_time() - start
        data = self.data._replace(queries=queries)
        found = search.evaluate_retrieval(lambda queries, top_k: hits, data, (1, 10))
        row = {"name": name, "queries": len(queries), **{key: found[key] for key in SCORES}}
        row |= {"embedding": embedding, "search": seconds, "megabytes": megabytes}
        hits_file.write_text(json.dumps(hits))
        with open(self.file, "a") as file:
            file.write(json.dumps(row) + "\n")
        self.rows[name] = row
        print(row, flush=True)
        return hits

    def best(self, scores, top_k):
        """Returns the hits of an array of scores `(num_queries, num_texts)`."""
        if self.candidates:
            rows = zip(scores, self.candidates, strict=False)
            return [_hits(row[places], places) for row, places in rows]
        order = np.argsort(-scores, axis=1, kind="stable")[:, :top_k]
        rows = zip(scores, order, strict=True)
        return [_hits(row[places], places) for row, places in rows]

    def markdown(self):
        names = ("queries", *SCORES, "embedding, s", "search, s", "MB")
        print(f"\n| | {' | '.join(names)} |\n|{'---|' * (len(names) + 1)}")
        for row in self.rows.values():
            scores = [f"{row[key]:.3f}" for key in SCORES]
            cells = [row["name"], str(row["queries"]), *scores, row["embedding"]]
            cells += [f"{row['search']:.1f}", row["megabytes"]]
            print(f"| {' | '.join(cells)} |")


def _hits(scores, places):
    hits = [{"id": int(n), "score": float(s)} for s, n in zip(scores, places, strict=True)]
    return sorted(hits, key=lambda hit: -hit["score"])


def flat(vectors):
    """Returns vectors as a list of arrays: dense, sparse, or a list of arrays."""
    if isinstance(vectors, list):
        return [np.concatenate(vectors), np.cumsum([len(array) for array in vectors])]
    if hasattr(vectors, "indptr"):
        return [vectors.data, vectors.indices, vectors.indptr, np.array(vectors.shape)]
    return [np.asarray(vectors)]


def unflat(arrays):
    if len(arrays) == 2:
        return np.split(arrays[0], arrays[1][:-1])
    if len(arrays) == 4:
        from scipy import sparse

        return sparse.csr_array(tuple(arrays[:3]), shape=tuple(arrays[3]))
    return arrays[0]


def megabytes(*arrays):
    return f"{sum(array.nbytes for array in arrays) / 1e6:.2f}"


def pairs_of_letters(text):
    """Returns each pair of neighbouring letters, a way to find Chinese words without a list."""
    words = split_into_words(text)
    return [first + second for first, second in itertools.pairwise(words)] or words


# The methods


def by_words(table):
    """Returns the hits of BM25; of a Chinese corpus, where each character is a word."""
    texts = list(table.data.corpus.values())
    is_chinese = any("\u4e00" <= letter <= "\u9fff" for letter in texts[0])
    tokenizers = {"BM25": None}
    if is_chinese:
        tokenizers = {"BM25, characters": None, "BM25, pairs of characters": pairs_of_letters}
    rankings = []
    for name, tokenize in tokenizers.items():
        index = search.BM25Index(tokenize)
        index.add(texts)
        rankings.append(table.row(name, functools.partial(_searched, table, index.search)))
    return rankings[0]


def _searched(table, find, queries, top_k):
    """Searches; where each query has its candidates, only these stay."""
    if not table.candidates:
        return find(queries, top_k)
    found = []
    for hits, places in zip(find(queries, len(table.data.corpus)), table.candidates, strict=False):
        scores = {hit["id"]: hit["score"] for hit in hits}
        found.append(_hits([scores.get(place, 0.0) for place in places], places))
    return found


def by_vectors(table, embedder):
    queries, documents, seconds = table.vectors("dense", embedder.embed_as)
    rankings = []
    for precision, engine in PRECISIONS:
        index = search.Index(precision, engine)
        index.add(documents)
        find = functools.partial(
            _searched, table, lambda _, k, index=index: index.search(queries, k)
        )
        size = documents.size * PRECISIONS[precision, engine] / 8e6
        top_k = 10 if rankings else NUM_HITS
        name = f"{PRESET.value} {precision}, {engine}"
        rankings.append(table.row(name, find, f"{size:.2f}", seconds, top_k=top_k))
    return rankings[0]


def by_weights(table):
    embedder = bert_keras.SparseTextEmbedder.from_preset(SPLADE.value)
    queries, documents, seconds = table.vectors("splade", embedder.embed_as)
    size = megabytes(documents.data, documents.indices, documents.indptr)

    def find(_, top_k):
        return table.best(embedder.similarities(queries, documents), top_k)

    return table.row("SPLADE", find, size, seconds)


def by_tokens(table, embedder, first):
    """Scores the best hits of another search by MaxSim; only their documents are embedded."""
    tokens, texts = token_embedder(embedder), list(table.data.corpus.values())
    first = [[hit["id"] for hit in hits[:NUM_RERANKED]] for hits in first]
    needed = sorted({place for places in first for place in places})
    columns = {"query": list(table.data.queries.values()), "document": [texts[n] for n in needed]}
    queries, documents, seconds = table.vectors("tokens", tokens.embed_as, columns)
    documents = dict(zip(needed, documents, strict=True))

    def rescore(_, top_k):
        found = []
        for query, places in zip(queries, first, strict=False):
            scores = tokens.similarities([query], [documents[place] for place in places])[0]
            found.append(_hits(scores, places))
        return found

    size = f"{megabytes(*documents.values())} of {len(needed)} texts"
    table.row(f"MaxSim of the best {len(first[0])}", rescore, size, seconds)


def by_reranker(table, first):
    reranker = keras.models.load_model(RERANKER.value)
    texts, num_queries = list(table.data.corpus.values()), NUM_RERANKED_QUERIES.value
    if table.candidates:
        first, num_queries = [[{"id": n} for n in places] for places in table.candidates], None

    def find(queries, top_k):
        found = []
        for query, hits in zip(queries, first, strict=False):
            places = [hit["id"] for hit in hits[:NUM_RERANKED]]
            scores = reranker.score(query, [texts[place] for place in places])
            found.append(_hits(scores, places))
        return found

    name = f"Reranker of the best {len(first[0][:NUM_RERANKED])}"
    table.row(name, find, num_queries=num_queries)


def by_sentence_transformers(table, embedder):
    """The same weights in sentence-transformers."""
    import sentence_transformers

    folder = table.folder / "exported"
    if not folder.exists():
        embedder.export_to_huggingface(folder)
    theirs = sentence_transformers.SentenceTransformer(str(folder), device="cpu")
    queries, documents, seconds = table.vectors(
        "theirs", lambda kind, texts: theirs.encode(texts, batch_size=32)
    )

    def find(_, top_k):
        return table.best(queries @ documents.T, top_k)

    table.row("sentence-transformers, dense", find, megabytes(documents), seconds)
    if SPLADE.value:
        sparse = sentence_transformers.SparseEncoder(SPLADE.value, device="cpu")
        weights = functools.partial(_their_weights, sparse)
        queries, documents, seconds = table.vectors("theirs_sparse", weights)

        def find(_, top_k):
            return table.best((queries @ documents.T).toarray(), top_k)

        size = megabytes(documents.data, documents.indices, documents.indptr)
        table.row("sentence-transformers, sparse", find, size, seconds)


def _their_weights(encoder, kind, texts):
    from scipy import sparse

    found = encoder.encode(texts, batch_size=32, convert_to_sparse_tensor=True).coalesce()
    rows, columns = found.indices().numpy()
    return sparse.coo_array((found.values().numpy(), (rows, columns)), found.shape).tocsr()


def main(argv):
    data, candidates = read_qnli(QNLI.value) if QNLI.value else read_questions(DATA.value)
    queries = dict(list(data.queries.items())[: NUM_QUERIES.value])
    table = Table(OUTPUT.value, data._replace(queries=queries), candidates)
    print(f"{len(data.corpus)} texts, {len(queries)} queries", flush=True)
    words = by_words(table)
    if PRESET.value:
        embedder = bert_keras.TextEmbedder.from_preset(PRESET.value)
        vectors = by_vectors(table, embedder)
        rankings = [words, vectors]
        if not candidates:
            table.row(
                "BM25 and vectors, fused", lambda _, k: search.reciprocal_rank_fusion(*rankings)
            )
        if SPLADE.value:
            rankings.append(by_weights(table))
            if not candidates:
                table.row(
                    "BM25, vectors and SPLADE, fused",
                    lambda _, k: search.reciprocal_rank_fusion(*rankings),
                )
        if MAXSIM.value:
            by_tokens(table, embedder, vectors)
        if RERANKER.value:
            by_reranker(table, search.reciprocal_rank_fusion(*rankings, top_k=NUM_RERANKED))
        if PEER.value:
            by_sentence_transformers(table, embedder)
    table.markdown()


if __name__ == "__main__":
    app.run(main)
