"""How well three embedders find SQuAD's paragraphs, here and in sentence-transformers.

    KERAS_BACKEND=torch OMP_NUM_THREADS=1 python benchmarks/retrieval_parity.py \\
        --data dev-v1.1.json --splade FOLDER

Both libraries embed the same paragraphs and questions with the same weights: MiniLM's mean, its
tokens compared by MaxSim, and SPLADE. Prints recall@1 and nDCG@10 of both, and the largest
difference between their scores of a question and a paragraph. The corpus is the first paragraphs of
the file, and the questions are spread evenly over it.
"""

import pathlib
import tempfile

import numpy as np
import sentence_transformers
from absl import app, flags
from questions import read_questions, token_embedder

import bert_keras
from bert_keras import metrics

DATA = flags.DEFINE_list("data", None, "Files in SQuAD's format.", required=True)
PRESET = flags.DEFINE_string("preset", "minilm_l6_en_uncased", "An embedder.")
SPLADE = flags.DEFINE_string("splade", None, "Folder of a SparseTextEmbedder.")
NUM_TEXTS = flags.DEFINE_integer("num_texts", 200, "Paragraphs.")
NUM_QUERIES = flags.DEFINE_integer("num_queries", 200, "Questions.")
BATCH = 8


def models(folder):
    """Yields a name, our embedder, and functions of sentence-transformers by kind of text."""
    embedder = bert_keras.TextEmbedder.from_preset(PRESET.value)
    embedder.export_to_huggingface(folder / "dense")
    theirs = sentence_transformers.SentenceTransformer(str(folder / "dense"), device="cpu")
    yield "mean", embedder, dict.fromkeys(("query", "document"), theirs.encode)
    tokens = token_embedder(embedder)
    tokens.export_to_huggingface(folder / "tokens")
    theirs = sentence_transformers.MultiVectorEncoder(str(folder / "tokens"), device="cpu")
    yield "MaxSim", tokens, {"query": theirs.encode_query, "document": theirs.encode_document}
    if SPLADE.value:
        sparse = bert_keras.SparseTextEmbedder.from_preset(SPLADE.value)
        theirs = sentence_transformers.SparseEncoder(SPLADE.value, device="cpu")
        encode = {"query": theirs.encode_query, "document": theirs.encode_document}
        yield "SPLADE", sparse, encode


def as_ours(vectors):
    """Returns vectors of sentence-transformers as our embedders return them."""
    if getattr(vectors, "is_sparse", False):
        from scipy import sparse

        vectors = vectors.coalesce()
        cells = (vectors.values().numpy(), tuple(vectors.indices().numpy()))
        return sparse.coo_array(cells, shape=tuple(vectors.shape)).tocsr()
    return [np.asarray(x) for x in vectors] if isinstance(vectors, list) else np.asarray(vectors)


def main(argv):
    data = read_questions(DATA.value)
    texts = list(data.corpus.values())[: NUM_TEXTS.value]
    answers = {n: next(iter(degrees)) for n, degrees in data.relevance.items()}
    chosen = [n for n, place in answers.items() if place < len(texts)]
    chosen = chosen[:: max(1, len(chosen) // NUM_QUERIES.value)][: NUM_QUERIES.value]
    columns = {"query": [data.queries[n] for n in chosen], "document": texts}
    is_right = np.equal.outer([answers[n] for n in chosen], np.arange(len(texts)))
    with tempfile.TemporaryDirectory() as folder:
        for name, ours, encode in models(pathlib.Path(folder)):
            found = {
                "bert_keras": [ours.embed_as(kind, column) for kind, column in columns.items()],
                "sentence-transformers": [
                    as_ours(encode[kind](column, batch_size=BATCH))
                    for kind, column in columns.items()
                ],
            }
            scores = [np.asarray(ours.similarities(*vectors)) for vectors in found.values()]
            for side, values in zip(found, scores, strict=True):
                first, ndcg = (
                    metrics.recall(values, is_right, 1),
                    metrics.ndcg(values, is_right, 10),
                )
                print(f"{name}, {side}: recall@1 {first:.6f}, nDCG@10 {ndcg:.6f}", flush=True)
            print(f"{name}: scores differ by at most {np.abs(scores[0] - scores[1]).max():.1e}")


if __name__ == "__main__":
    app.run(main)
