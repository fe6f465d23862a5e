"""Tasks follow MTEB's documented protocols, which `mteb.evaluate` calls."""

import sys
import types

import numpy as np
import pytest
from scipy.spatial import distance
from tiny import tiny_task

from bert_keras.search import as_mteb_model

pytestmark = pytest.mark.once
TEXTS = ["a b c", "d e", "c f g h"]
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
    for name in ("TextClassifier", "SparseTextEmbedder"):
        with pytest.raises(TypeError, match="must be a `TextEmbedder` or a `Reranker`"):
            as_mteb_model(tiny_task(name))
    monkeypatch.setitem(sys.modules, "mteb", None)
    with pytest.raises(ImportError, match=r"pip install '\.\[mteb\]'"):
        _ = as_mteb_model(tiny_task("Reranker")).mteb_model_meta
