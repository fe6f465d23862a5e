"""Questions and the texts that answer them, as retrieval data; shared by several benchmarks."""

import csv

import numpy as np

import bert_keras
from bert_keras import search
from bert_keras.datasets import read_squad


def read_questions(paths):
    """Returns `RetrievalData` of files in SQuAD's format."""
    examples = [example for path in paths for example in read_squad(path).examples]
    places = {text: n for n, text in enumerate(dict.fromkeys(e.context for e in examples))}
    relevance = {n: {places[example.context]: 1} for n, example in enumerate(examples)}
    queries = {n: example.question for n, example in enumerate(examples)}
    return search.RetrievalData({n: text for text, n in places.items()}, queries, relevance)


def read_qnli(path):
    """Returns `RetrievalData` of questions that have both labels, and their sentences."""
    with open(path, encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    places = {text: n for n, text in enumerate(dict.fromkeys(row["sentence"] for row in rows))}
    judged = {}
    for row in rows:
        degree = int(row["label"] == "entailment")
        judged.setdefault(row["question"], {})[places[row["sentence"]]] = degree
    judged = {query: degrees for query, degrees in judged.items() if len({*degrees.values()}) == 2}
    relevance = dict(enumerate(judged.values()))
    corpus = {n: text for text, n in places.items()}
    candidates = [list(degrees) for degrees in judged.values()]
    return search.RetrievalData(corpus, dict(enumerate(judged)), relevance), candidates


def token_embedder(embedder):
    """Returns a MultiVectorEmbedder with the vectors of the embedder's tokens as they are."""
    options = dict.fromkeys(("query_marker", "document_marker"), "")
    options |= dict.fromkeys(("query_expansion", "query_length"))
    backbone = embedder.backbone
    found = bert_keras.MultiVectorEmbedder(
        backbone, embedder.preprocessor, dim=backbone.hidden_dim, **options
    )
    found.head.dense.kernel.assign(np.eye(backbone.hidden_dim))
    return found
