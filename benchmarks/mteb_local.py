"""Evaluate four kinds of models by `mteb.evaluate` on tasks made of local files.

    pip install '.[torch,demo,mteb]'
    export KERAS_BACKEND=torch
    python benchmarks/mteb_local.py --splade FOLDER
    python benchmarks/mteb_local.py --data dev-v1.1.json --num_questions 300 --max_length 64 \
        --splade FOLDER --reranker PRESET

The retrieval task is questions of SQuAD that look for their paragraph among the paragraphs of all
questions; the reranking task has four or five paragraphs for each question. Without `--reranker`,
the head of the cross-encoder is random. The script prints MTEB's nDCG@10 beside that of
`evaluate_retrieval`, and fails if they differ.
"""

import random
import tempfile

import datasets
import mteb
from absl import app, flags
from mteb.abstasks import AbsTaskRetrieval
from mteb.abstasks.task_metadata import TaskMetadata
from questions import read_questions, token_embedder

import bert_keras
from bert_keras import search

PRESET = "minilm_l6_en_uncased"
SPLADE = flags.DEFINE_string("splade", None, "Folder of a SparseTextEmbedder.")
RERANKER = flags.DEFINE_string("reranker", PRESET, "A preset of a Reranker.")
DATA = flags.DEFINE_string("data", "examples/data/squad/dev-v1.1.json", "A file in SQuAD's format.")
NUM_QUESTIONS = flags.DEFINE_integer(
    "num_questions", None, "Questions, evenly spread; all if None."
)
MAX_LENGTH = flags.DEFINE_integer("max_length", None, "Longest text in tokens.")
KINDS = ["cross-encoder", "sparse", "encoder", "multi-vector"]
MODELS = flags.DEFINE_multi_enum("models", KINDS, KINDS, "Kinds of models.")
NUM_CANDIDATES = 5


def described(name, kind):
    return TaskMetadata(
        name=name,
        dataset={"path": "local", "revision": "1"},
        description="Questions and paragraphs of SQuAD.",
        type=kind,
        category="t2t",
        modalities=["text"],
        eval_splits=["test"],
        eval_langs=["eng-Latn"],
        main_score="ndcg_at_10",
    )


class Retrieval(AbsTaskRetrieval):
    """Questions that look for their paragraph among all."""

    metadata = described("LocalRetrieval", "Retrieval")
    has_candidates = False

    def load_data(self, num_proc=None, **kwargs):
        data = read_questions([DATA.value])
        step = max(1, len(data.queries) // (NUM_QUESTIONS.value or len(data.queries)))
        chosen = list(data.queries)[::step][: NUM_QUESTIONS.value]
        relevant = {
            str(query): {
                str(document): degree for document, degree in data.relevance[query].items()
            }
            for query in chosen
        }
        documents = dict.fromkeys(int(id) for judged in relevant.values() for id in judged)
        columns = [
            {"id": list(map(str, ids)), "text": [texts[id] for id in ids]}
            for ids, texts in ((documents, data.corpus), (chosen, data.queries))
        ]
        rng = random.Random(0)
        candidates = {
            query: sorted({*judged, *rng.sample(columns[0]["id"], NUM_CANDIDATES - 1)})
            for query, judged in relevant.items()
        }
        corpus, queries = map(datasets.Dataset.from_dict, columns)
        split = {"corpus": corpus, "queries": queries, "relevant_docs": relevant}
        split["top_ranked"] = candidates if self.has_candidates else None
        self.dataset, self.data_loaded = {"default": {"test": split}}, True


class Reranking(Retrieval):
    """Questions that rank four or five paragraphs."""

    metadata = described("LocalReranking", "Reranking")
    has_candidates = True


def our_score(task, model):
    """Returns the nDCG@10 of `evaluate_retrieval` on a task of MTEB."""
    task.load_data()
    split = task.dataset["default"]["test"]
    corpus, queries = (
        dict(zip(split[name]["id"], split[name]["text"], strict=True))
        for name in ("corpus", "queries")
    )
    places, rankings = {id: place for place, id in enumerate(corpus)}, []
    if not isinstance(model, bert_keras.Reranker):
        columns = {"query": queries, "document": corpus}
        vectors = [model.embed_as(kind, list(texts.values())) for kind, texts in columns.items()]
        matrix = model.similarities(*vectors)
    for row, (id, query) in enumerate(queries.items()):
        ids = split["top_ranked"][id] if split["top_ranked"] else list(corpus)
        if isinstance(model, bert_keras.Reranker):
            scores = model.score(query, [corpus[each] for each in ids])
        else:
            scores = matrix[row, [places[each] for each in ids]]
        hits = [{"id": id, "score": float(score)} for id, score in zip(ids, scores, strict=True)]
        rankings.append(sorted(hits, key=lambda hit: -hit["score"]))
    data = search.RetrievalData(corpus, queries, split["relevant_docs"])
    return search.evaluate_retrieval(lambda *_: rankings, data, 10, False)["ndcg@10"]


def main(argv):
    options = {"max_length": MAX_LENGTH.value} if MAX_LENGTH.value else {}
    makers = {
        "encoder": lambda: bert_keras.TextEmbedder.from_preset(PRESET, **options),
        "multi-vector": lambda: token_embedder(makers["encoder"]()),
        "cross-encoder": lambda: bert_keras.Reranker.from_preset(RERANKER.value, **options),
        "sparse": lambda: bert_keras.SparseTextEmbedder.from_preset(SPLADE.value, **options),
    }
    for name in MODELS.value:
        if name == "sparse" and not SPLADE.value:
            print("sparse: left out, since --splade names no folder")
            continue
        model = makers[name]()
        for task in (Retrieval(), Reranking()):
            if name == "cross-encoder" and not task.has_candidates:
                continue
            with tempfile.TemporaryDirectory() as folder:
                results = mteb.evaluate(
                    search.as_mteb_model(model, f"bert_keras/{name}"),
                    task,
                    cache=mteb.ResultCache(folder),
                    show_progress_bar=False,
                )
            theirs = results.task_results[0].get_score()
            ours = our_score(task, model)
            print(f"{task.metadata.name}, {name}: MTEB {theirs:.5f}, here {ours:.5f}", flush=True)
            assert abs(theirs - ours) < 1e-4


if __name__ == "__main__":
    app.run(main)
