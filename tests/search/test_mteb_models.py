"""Tasks follow MTEB's documented protocols, which `mteb.evaluate` calls."""

import sys
import types

import datasets
import numpy as np
import pytest
from scipy.spatial import distance
from tiny import tiny_task

from bert_keras.search import as_mteb_model

pytestmark = pytest.mark.once
CORPUS = datasets.Dataset.from_dict(
    {"id": ["d1", "d2", "d3"], "title": ["a b", "", "c"], "text": ["c", "d e", "f g h"]}
)
TEXTS = ["a b c", "d e", "c f g h"]
QUERIES = datasets.Dataset.from_dict({"id": ["q1", "q2"], "text": ["a b", "d"]})
# What MTEB passes to every call.
ABOUT = {"task_metadata": None, "hf_split": "test", "hf_subset": "default"}


def batches(texts):
    return [{"id": [1, 2], "text": texts[:2]}, {"id": [3], "text": texts[2:]}]


@pytest.mark.parametrize("kind", ["cosine", "euclidean"])
def test_an_embedder_encodes_with_the_prompt_of_each_kind(kind):
    prompts = {"query": "g ", "document": "h "}
    embedder = tiny_task("TextEmbedder", prompts=prompts, similarity=kind)
    model = as_mteb_model(embedder)
    for prompt_type in (None, "query", "document"):
        vectors = model.encode(batches(TEXTS), prompt_type=prompt_type, batch_size=2, **ABOUT)
        np.testing.assert_allclose(vectors, embedder.embed(TEXTS, prompt_type), atol=1e-6)
    similarity = model.similarity(vectors, 2 * vectors[::-1])
    expected = vectors @ vectors[::-1].T
    if kind == "euclidean":
        expected = -distance.cdist(vectors, 2 * vectors[::-1])
    np.testing.assert_allclose(similarity, expected, atol=1e-6)
    pairwise = model.similarity_pairwise(vectors, 2 * vectors[::-1])
    np.testing.assert_allclose(pairwise, np.diag(similarity), atol=1e-6)


def test_a_reranker_predicts_a_score_for_each_pair():
    reranker = tiny_task("Reranker")
    queries = ["a", "b", "a"]
    scores = as_mteb_model(reranker).predict(batches(queries), batches(TEXTS), **ABOUT)
    np.testing.assert_allclose(scores, reranker.score(queries, TEXTS), atol=1e-6)


@pytest.mark.parametrize("name", ["SparseTextEmbedder", "MultiVectorEmbedder"])
def test_other_embedders_search_the_corpus_or_the_documents_ranked_before(name):
    options = {"query_marker": "", "document_marker": "", "query_length": 8, "query_expansion": 8}
    embedder = tiny_task(name, **(options if name == "MultiVectorEmbedder" else {}))
    model = as_mteb_model(embedder)
    options = {"encode_kwargs": {"batch_size": 2}, "num_proc": None, **ABOUT}
    model.index(CORPUS, **options)
    vectors = [embedder.embed_as("query", QUERIES["text"]), embedder.embed_as("document", TEXTS)]
    expected = embedder.similarities(*vectors)
    found = model.search(QUERIES, top_k=2, **options)
    for id, row in zip(QUERIES["id"], expected, strict=True):
        best = np.argsort(-row)[:2]
        assert list(found[id]) == [CORPUS["id"][place] for place in best]
        np.testing.assert_allclose(list(found[id].values()), row[best], atol=1e-5)
    found = model.search(QUERIES, top_k=2, top_ranked={"q2": ["d3"]}, **options)
    assert found == {"q1": {}, "q2": {"d3": pytest.approx(expected[1, 2], abs=1e-5)}}


def test_results_are_kept_under_the_models_name(monkeypatch):
    meta = types.SimpleNamespace(create_empty=dict)
    monkeypatch.setitem(sys.modules, "mteb", types.ModuleType("mteb"))
    monkeypatch.setitem(sys.modules, "mteb.models", types.SimpleNamespace(ModelMeta=meta))
    reranker = tiny_task("Reranker")
    found = as_mteb_model(reranker, "me/reranker").mteb_model_meta
    assert found["name"] == "me/reranker" and found["model_type"] == ["cross-encoder"]
    assert found["n_parameters"] == reranker.count_params()
    found = as_mteb_model(tiny_task("TextEmbedder", similarity="dot")).mteb_model_meta
    assert found["similarity_fn_name"] == "dot"


def test_what_neither_embeds_nor_scores_is_refused(monkeypatch):
    with pytest.raises(TypeError, match="must be an embedder or a `Reranker`"):
        as_mteb_model(tiny_task("TextClassifier"))
    monkeypatch.setitem(sys.modules, "mteb", None)
    with pytest.raises(ImportError, match=r"pip install '\.\[mteb\]'"):
        _ = as_mteb_model(tiny_task("Reranker")).mteb_model_meta
