"""SPLADE: weights of tokens, their gradient row by row, the penalty, and folders."""

import json

import keras
import numpy as np
import pytest
from checks import assert_close, check_task, gradients, refused, to_numpy
from keras import ops
from theirs import outputs_of, reference_model
from tiny import VOCABULARY, ready_inputs, tiny_backbone, tiny_preprocessor, tiny_task

import bert_keras
from bert_keras.heads.splade import SpladeHead
from bert_keras.presets.presets import open_preset

pytestmark = pytest.mark.once

TEXTS = ["a b c", "d e f g h a", "h"]
PAIRS = (["a", "b", "c", "d"], ["a b", "b c", "c d", "d e"])


def tiny_embedder(*backbone, **options):
    return tiny_task("SparseTextEmbedder", *backbone, **options)


# An embedder that no test changes.
shared = pytest.fixture(tiny_embedder, scope="module")


def test_it_keeps_the_contract_of_tasks(tmp_path):
    options = {"log_twice": True, "regularization": [0.5, 0.25]}
    embedder = tiny_embedder(objective="triplet", **options)
    check_task(embedder, ready_inputs(3, 7), tmp_path, {"token_weights": (TEXTS,)})


@pytest.mark.parametrize("log_twice", [False, True])
def test_weights_are_those_of_transformers_logits(tmp_path, log_twice):
    reference = reference_model("BertForMaskedLM", tmp_path)
    embedder = bert_keras.SparseTextEmbedder.from_preset(tmp_path, log_twice=log_twice)
    inputs = embedder.preprocessor(TEXTS)
    logits = outputs_of(reference, inputs)["logits"] * inputs["padding_mask"][..., None]
    expected = np.log1p(np.maximum(logits, 0)).max(axis=1)
    expected = np.log1p(expected) if log_twice else expected
    np.testing.assert_allclose(embedder.embed(TEXTS).toarray(), expected, atol=1e-5)
    np.testing.assert_allclose(embedder.predict(TEXTS, verbose=0), expected, atol=1e-5)


@pytest.mark.each_backend
def test_the_gradient_is_that_of_all_logits_at_once():
    backbone = tiny_backbone(initializer_range=0.3)
    head = SpladeHead(len(VOCABULARY), 16, initializer_range=0.5)
    head.build()
    states = np.random.default_rng(0).normal(size=(3, 5, 16)).astype("float32")
    mask = np.arange(5) < np.array([[5], [2], [3]])
    table = backbone.token_embedding.embeddings

    def by_rows(states, table_values):
        with keras.StatelessScope([(table, table_values)]):
            outputs = {"sequence_output": states}
            table_layer = {"token_embedding": backbone.token_embedding}
            return head(outputs, **table_layer, padding_mask=mask, training=True)

    def at_once(states, table_values):
        hidden = head.layer_norm(head.dense(states))
        logits = ops.matmul(hidden, ops.transpose(table_values)) + head.bias
        return ops.log1p(ops.relu(ops.max(ops.where(mask[..., None], logits, -1e9), axis=1)))

    values = states, to_numpy(table)
    for found, expected in zip(
        gradients(by_rows, *values), gradients(at_once, *values), strict=True
    ):
        assert np.abs(expected).max() > 1e-2
        assert_close(found, expected, 1e-5)


def test_weights_name_the_tokens_of_a_row(shared):
    row = shared.embed(TEXTS[1])
    assert row.shape == (1, len(VOCABULARY)) and row.dtype == "float32"
    weights = shared.token_weights(TEXTS[1])
    assert {t: pytest.approx(w, abs=1e-6) for t, w in weights} == {
        VOCABULARY[i]: w for i, w in zip(row.indices, row.data, strict=True)
    }
    values = [weight for _, weight in weights]
    assert values == sorted(values, reverse=True) and min(values) > 0
    assert shared.token_weights([TEXTS[1]], top_k=2) == [weights[:2]]
    assert shared.embed([]).shape == (0, len(VOCABULARY))
    with pytest.raises(ValueError, match="top_k"):
        shared.token_weights("a", top_k=0)


def test_search_ranks_by_dot_products(shared):
    vectors = shared.embed(TEXTS)
    products = (vectors @ vectors.T).toarray()
    hits = shared.semantic_search(TEXTS, TEXTS, top_k=2)
    for row, found in enumerate(hits):
        best = np.argsort(-products[row], kind="stable")[:2]
        assert [hit["index"] for hit in found] == best.tolist()
    assert shared.semantic_search(vectors, vectors, top_k=2)[0][0]["score"] == hits[0][0]["score"]
    with pytest.raises(ValueError, match="sparse matrix of width"):
        shared.semantic_search(np.zeros((2, 3), "float32"), TEXTS)


@pytest.mark.each_backend
@pytest.mark.eager
def test_a_penalty_that_rises_is_added_to_the_loss():
    embedder = tiny_embedder(regularization=(0.5, 0.25))
    weights = embedder.predict(PAIRS, verbose=0).astype("float64")
    penalty = 0.5 * (weights[:, 0].mean(0) ** 2).sum() + 0.25 * (weights[:, 1].mean(0) ** 2).sum()
    # The first scores are those of the dot product, with a scale of 1.
    scores = weights[:, 0] @ weights[:, 1].T
    own = (np.log(np.exp(scores).sum(1)) - scores.diagonal()).mean()
    assert embedder.evaluate(PAIRS, verbose=0) == pytest.approx(own + penalty, rel=1e-5)
    embedder.fit(PAIRS, epochs=4, verbose=0)
    ramps = []
    for _ in range(3):
        ramps.append(float(to_numpy(embedder._ramp())))
    assert int(to_numpy(embedder.step_counter.state)[0]) == 7
    assert ramps == [1.0] * 3
    embedder.step_counter.state.assign(np.array([1, 0]))
    assert float(to_numpy(embedder._ramp())) == pytest.approx((1 / (4 / 3)) ** 2)


def test_the_penalty_of_a_single_column_is_that_of_the_first():
    embedder = tiny_embedder(objective="vectors", regularization=(0.5, 0.25))
    weights = embedder.predict(TEXTS, verbose=0).astype("float64")
    penalty = 0.5 * (weights.mean(0) ** 2).sum()
    found = embedder.evaluate(TEXTS, np.zeros(weights.shape), verbose=0)
    assert found == pytest.approx((weights**2).mean() + penalty, rel=1e-4)


def test_folders_of_sentence_transformers_are_read_and_written(tmp_path):
    embedder = tiny_embedder(log_twice=True, prompts={"query": "a: "})
    expected = embedder.embed(TEXTS).toarray()
    embedder.export_to_huggingface(tmp_path)
    modules = json.loads((tmp_path / "modules.json").read_text())
    assert [module["path"] for module in modules] == ["", "1_SpladePooling"]
    again = bert_keras.SparseTextEmbedder.from_preset(tmp_path)
    assert again.log_twice and again.prompts == {"query": "a: "}
    np.testing.assert_allclose(again.embed(TEXTS).toarray(), expected, atol=1e-6)
    bare = bert_keras.MaskedLM.from_preset(tmp_path)
    bare.save_to_preset(tmp_path / "own")
    of_masked_lm = bert_keras.SparseTextEmbedder.from_preset(tmp_path / "own", log_twice=True)
    np.testing.assert_allclose(of_masked_lm.embed(TEXTS).toarray(), expected, atol=1e-6)
    for config, message in [
        ({"pooling_strategy": "sum"}, "pooling_strategy"),
        ({"activation_function": "gelu"}, "activation"),
    ]:
        (tmp_path / "1_SpladePooling/config.json").write_text(json.dumps(config))
        with pytest.raises(ValueError, match=message):
            bert_keras.SparseTextEmbedder.from_preset(tmp_path)
    path = tmp_path / "config_sentence_transformers.json"
    for name, value in [("similarity_fn_name", "cosine"), ("max_active_dims", 5)]:
        path.write_text(json.dumps({name: value}))
        with pytest.raises(ValueError, match=f"{name}.*Remove the line"):
            bert_keras.SparseTextEmbedder.from_preset(tmp_path)


IDF = {"a": 2.0, "b": 0.5, "##c": 1.0, "h": 0.0, "[CLS]": 9.0}


def test_queries_with_weights_of_their_own_need_no_model(tmp_path, reloaded):
    embedder = tiny_embedder(query_weights=IDF, prompts={"query": "b "})
    plain = tiny_embedder()
    plain.set_weights(embedder.get_weights())
    texts = ["a a h", "c", "d bc"]
    expected = [[("a", 2.0), ("b", 0.5)], [("b", 0.5)], [("##c", 1.0), ("b", 0.5)]]
    assert embedder.token_weights(texts, prompt="query") == expected
    assert (embedder.embed(texts) != plain.embed(texts)).nnz == 0
    hits = embedder.semantic_search("a", ["a b", "h"], top_k=1)
    scores = (embedder.embed(["a"], "query") @ embedder.embed(["a b", "h"]).T).toarray()[0]
    assert hits[0]["score"] == pytest.approx(scores.max())
    again = reloaded(embedder)
    embedder.save_to_preset(tmp_path / "own")
    of_preset = bert_keras.SparseTextEmbedder.from_preset(tmp_path / "own")
    for other in (again, of_preset):
        assert other.query_weights == {k: x for k, x in IDF.items() if x}
        assert (other.embed(texts, "query") != embedder.embed(texts, "query")).nnz == 0
    with pytest.raises(ValueError, match="Train it with query_weights=None"):
        embedder.fit((texts, texts), verbose=0)
    # Another preprocessor, in whose vocabulary the tokens have other ids.
    again.preprocessor = tiny_preprocessor(vocabulary=[*VOCABULARY[:5], *VOCABULARY[:4:-1]])
    assert again.token_weights(texts, prompt="query") == expected


def test_folders_with_weights_for_queries_are_read_and_written(tmp_path):
    embedder = tiny_embedder(query_weights=IDF, log_twice=True)
    embedder.export_to_huggingface(tmp_path)
    expected = [embedder.embed(TEXTS, kind).toarray() for kind in ("query", None)]

    def check():
        again = bert_keras.SparseTextEmbedder.from_preset(tmp_path)
        for kind, rows in zip(("query", None), expected, strict=True):
            np.testing.assert_allclose(again.embed(TEXTS, kind).toarray(), rows, atol=1e-6)

    check()
    assert open_preset(tmp_path).task_name() == "bert_keras>SparseTextEmbedder"
    # As sentence-transformers saves it, and with OpenSearch's own file of weights.
    inner, config = tmp_path / "document_0_MLMTransformer", tmp_path / "router_config.json"
    inner.mkdir()
    for path in [*tmp_path.glob("*token*"), *tmp_path.glob("model.*"), tmp_path / "config.json"]:
        path.rename(inner / path.name)
    (tmp_path / "sentence_bert_config.json").rename(inner / "sentence_bert_config.json")
    router = json.loads(config.read_text())
    router["types"][inner.name] = router["types"].pop("")
    router["structure"]["document"][0] = inner.name
    config.write_text(json.dumps(router))
    check()
    queries = tmp_path / "query_0_SparseStaticEmbedding"
    (queries / "model.safetensors").unlink()
    (queries / "config.json").write_text(json.dumps({"frozen": True, "path": "idf.json"}))
    (tmp_path / "idf.json").write_text(json.dumps(IDF))
    check()
    router["structure"]["query"] = router["structure"]["document"]
    config.write_text(json.dumps(router))
    with pytest.raises(ValueError, match="A query encoder is not read"):
        bert_keras.SparseTextEmbedder.from_preset(tmp_path)
    assert bert_keras.SparseTextEmbedder.from_preset(tmp_path, query_weights=None).log_twice
    router["structure"]["document"][0] = "../x"
    router["types"]["../x"] = "MLMTransformer"
    config.write_text(json.dumps(router))
    with pytest.raises(ValueError, match="outside its folder"):
        bert_keras.SparseTextEmbedder.from_preset(tmp_path)


@refused(
    ({"query_weights": {"nowhere": 1.0}}, "must be a token"),
    ({"query_weights": {"a": 1.0}, "preprocessor": None}, "Pass a `TextPreprocessor`"),
    ({"query_weights": {"a": -1.0}}, "from 0"),
    ({"query_weights": {"a": "b"}}, "must be numbers"),
    ({"regularization": 1.0}, "two numbers"),
    ({"regularization": [[1], [2, 3]]}, "different lengths.*two numbers"),
    ({"regularization": (1.0, -1.0)}, "regularization"),
    ({"log_twice": 1}, "log_twice"),
    ({"head_options": {"dropout": 0}}, "head_options"),
)
def test_impossible_settings_are_refused(shared, options):
    options = {"preprocessor": tiny_preprocessor(), **options}
    bert_keras.SparseTextEmbedder(shared.backbone, **options)


def test_chunks_are_computed_again_in_the_same_precision():
    embedder = bert_keras.SparseTextEmbedder(
        tiny_backbone(dtype="mixed_bfloat16"), tiny_preprocessor()
    )
    embedder.compile(chunk_size=3)
    history = embedder.fit(PAIRS, epochs=1, verbose=0).history
    assert np.isfinite(history["loss"]).all()


def test_the_penalty_rises_with_chunks_as_without():
    embedder, losses = tiny_embedder(tiny_backbone(dropout=0.0), regularization=(50.0, 25.0)), []
    for chunk_size in (None, 3):
        embedder.compile(learning_rate=1e-9, chunk_size=chunk_size)
        losses.append(embedder.fit(PAIRS, epochs=6, shuffle=False, verbose=0).history["loss"])
    assert losses[1] == pytest.approx(losses[0], rel=1e-4)
