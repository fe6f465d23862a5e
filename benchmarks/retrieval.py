"""How well searches find the paragraph that answers a question: SQuAD's files as retrieval data.

    export KERAS_BACKEND=torch OMP_NUM_THREADS=1
    python benchmarks/retrieval.py --data dev-v1.1.json --splade FOLDER --output squad
    python benchmarks/retrieval.py --data DRCD_dev.json,DRCD_test.json --preset "" --output drcd
    python benchmarks/retrieval.py --qnli dev.tsv --splade FOLDER --reranker FILE --output qnli

The corpus is all paragraphs, and each query has one relevant paragraph. With `--qnli` the corpus is
QNLI's sentences, and a query ranks the right and the wrong sentences that it is paired with. Each
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
from kept_rows import add_row, read_rows
from questions import read_qnli, read_questions, token_embedder
from result_tables import as_table

import bert_keras
from bert_keras import search
from bert_keras.search.bm25_index import split_into_words

DATA = flags.DEFINE_list("data", None, "Files in SQuAD's format.")
QNLI = flags.DEFINE_string("qnli", None, "dev.tsv of QNLI, instead of --data.")
flags.mark_flags_as_mutual_exclusive(["data", "qnli"], required=True)
PRESET = flags.DEFINE_string("preset", "minilm_l6_en_uncased", "An embedder, or nothing.")
SPLADE = flags.DEFINE_string("splade", None, "Folder of a SparseTextEmbedder.")
RERANKER = flags.DEFINE_string("reranker", None, "A .keras file of a Reranker.")
PEER = flags.DEFINE_bool("sentence_transformers", False, "Also measure this library.")
MAXSIM = flags.DEFINE_bool("maxsim", True, "Also measure MaxSim, the slowest method.")
NUM_QUERIES = flags.DEFINE_integer("num_queries", None, "The first queries; all by default.")
OUTPUT = flags.DEFINE_string("output", None, "Folder of the rows and vectors.", required=True)
SCORES = ("recall@1", "recall@10", "mrr@10", "ndcg@10")
# Hits for fusion, and for MaxSim and a reranker.
NUM_HITS, NUM_RERANKED = 100, 20
# Precision -> bits of a value in memory.
PRECISIONS = {"float32": 32, "int8": 8, "binary": 9}


class Table:
    """Rows and arrays in a folder: what is there is not computed again."""

    def __init__(self, folder, data, candidates=None):
        self.folder, self.data, self.candidates = pathlib.Path(folder), data, candidates
        self.folder.mkdir(parents=True, exist_ok=True)
        self.file = self.folder / "rows.jsonl"
        self.rows = {row["name"]: row for row in read_rows(self.file)}

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

    def row(self, name, find, megabytes="", embedding="", top_k=NUM_HITS):
        """Measures `find(queries, top_k)`, unless the row exists; returns its hits."""
        hits_file = self.folder / f"{name.replace(' ', '_').replace('/', '_')}.hits.json"
        if name in self.rows and hits_file.exists():
            return json.loads(hits_file.read_text())
        queries = list(self.data.queries.values())
        start = time.process_time()
        hits = find(queries, top_k)
        seconds = time.process_time() - start
        found = search.evaluate_retrieval(lambda *_: hits, self.data, (1, 10), False)
        row = {"name": name, "queries": len(queries), **{key: found[key] for key in SCORES}}
        row |= {"embedding": embedding, "search": seconds, "megabytes": megabytes}
        hits_file.write_text(json.dumps(hits))
        add_row(self.file, row)
        self.rows[name] = row
        return hits

    def best(self, scores, top_k):
        """Returns the hits of an array of scores `(num_queries, num_texts)`."""
        order = self.candidates or np.argsort(-scores, axis=1, kind="stable")[:, :top_k]
        return [_hits(row[places], places) for row, places in zip(scores, order, strict=False)]

    def found_by(self, find, queries, top_k):
        """Searches; where each query has its candidates, only these stay."""
        if not self.candidates:
            return find(queries, top_k)
        hits = find(queries, len(self.data.corpus))
        scores = [{hit["id"]: hit["score"] for hit in row} for row in hits]
        rows = zip(scores, self.candidates, strict=False)
        return [
            _hits([found.get(place, 0.0) for place in places], places) for found, places in rows
        ]

    def markdown(self):
        rows = []
        for row in self.rows.values():
            scores = [f"{row[key]:.3f}" for key in SCORES]
            seconds = [row["embedding"], f"{row['search']:.1f}"]
            rows.append([row["name"], row["queries"], *scores, *seconds, row["megabytes"]])
        return as_table(["", "queries", *SCORES, "embedding, s", "search, s", "MB"], rows)


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
        rankings.append(table.row(name, functools.partial(table.found_by, index.search)))
    return rankings[0]


def by_vectors(table, embedder):
    queries, documents, seconds = table.vectors("dense", embedder.embed_as)
    rankings = []
    for precision, bits in PRECISIONS.items():
        index = search.Index(precision)
        index.add(documents)
        size = documents.size * bits / 8e6
        top_k = 10 if rankings else NUM_HITS

        def find(_, top_k, index=index):
            return table.found_by(lambda _, k: index.search(queries, k), queries, top_k)

        name = f"{PRESET.value} {precision}"
        rankings.append(table.row(name, find, f"{size:.2f}", seconds, top_k))
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
    first = table.candidates or [[hit["id"] for hit in hits[:NUM_RERANKED]] for hits in first]
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
    name = "MaxSim" if table.candidates else f"MaxSim of the best {NUM_RERANKED}"
    table.row(name, rescore, size, seconds)


def by_reranker(table, first):
    reranker = keras.models.load_model(RERANKER.value)
    texts = list(table.data.corpus.values())
    places = table.candidates or [[hit["id"] for hit in hits[:NUM_RERANKED]] for hits in first]

    def find(queries, top_k):
        pairs = list(zip(queries, places, strict=False))
        repeated = [query for query, row in pairs for _ in row]
        scores = reranker.score(repeated, [texts[place] for _, row in pairs for place in row])
        ends = np.cumsum([len(row) for _, row in pairs])[:-1]
        return [_hits(*row) for row in zip(np.split(scores, ends), places, strict=False)]

    table.row("Reranker", find)


def by_sentence_transformers(table, embedder):
    """Searches with the same weights in sentence-transformers."""
    import sentence_transformers

    folder = table.folder / "exported"
    if not folder.exists():
        embedder.export_to_huggingface(folder)
    theirs = sentence_transformers.SentenceTransformer(str(folder), device="cpu")
    queries, documents, seconds = table.vectors("theirs", lambda _, texts: theirs.encode(texts))

    def find(_, top_k):
        return table.best(queries @ documents.T, top_k)

    table.row("sentence-transformers", find, megabytes(documents), seconds)


def main(argv):
    data, candidates = read_qnli(QNLI.value) if QNLI.value else (read_questions(DATA.value), None)
    queries = dict(list(data.queries.items())[: NUM_QUERIES.value])
    table = Table(OUTPUT.value, data._replace(queries=queries), candidates)
    print(f"{len(data.corpus)} texts, {len(queries)} queries", flush=True)
    words = by_words(table)
    if PRESET.value:
        embedder = bert_keras.TextEmbedder.from_preset(PRESET.value)
        vectors = by_vectors(table, embedder)
        rankings = [words, vectors]

        def fused(queries, top_k):
            return search.reciprocal_rank_fusion(*rankings)

        if not candidates:
            table.row("BM25 and vectors, fused", fused)
        if SPLADE.value:
            rankings.append(by_weights(table))
            if not candidates:
                table.row("BM25, vectors and SPLADE, fused", fused)
        if MAXSIM.value:
            by_tokens(table, embedder, vectors)
        if RERANKER.value:
            by_reranker(table, search.reciprocal_rank_fusion(*rankings, top_k=NUM_RERANKED))
        if PEER.value:
            by_sentence_transformers(table, embedder)
    print(f"\n{table.markdown()}")


if __name__ == "__main__":
    app.run(main)
