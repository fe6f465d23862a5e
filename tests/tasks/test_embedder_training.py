"""Training embedders: labels of teachers, chunks of a batch, cut vectors, hard negatives."""

import keras
import numpy as np
import pytest
from checks import cases, refused, to_numpy
from tiny import rows_of, tiny_backbone, tiny_preprocessor, tiny_task

import bert_keras
from bert_keras.training import (
    MultipleNegativesRanking,
)

pytestmark = pytest.mark.once

QUERIES, POSITIVES = ["a b", "c d", "e f", "g h"], ["b a c", "d", "f g h a b", "h"]
NEGATIVES = ["c", "e f", "a", "b c d e"]


@pytest.fixture(scope="module")
def shared():
    """An embedder that no test changes."""
    return tiny_task("TextEmbedder")


def gradients_of(rate, chunk_size, remat=None):
    """Returns how one step of plain descent changes the weights of an embedder."""
    keras.utils.set_random_seed(0)
    backbone = tiny_backbone(dropout=rate, attention_dropout=rate, initializer_range=0.3)
    embedder = bert_keras.TextEmbedder(backbone, tiny_preprocessor())
    optimizer = keras.optimizers.SGD(1.0)
    # TensorFlow's graphs need `remat` for the gradient of the loop.
    eagerly = remat is not None and keras.backend.backend() == "tensorflow"
    options = {"chunk_size": chunk_size, "run_eagerly": eagerly}
    embedder.compile(optimizer, MultipleNegativesRanking(5.0), **options)
    before = [to_numpy(weight).copy() for weight in embedder.trainable_weights]
    keras.utils.set_random_seed(1)
    with pytest.MonkeyPatch.context() as patch:
        if remat:
            patch.setattr(keras, "remat", remat)
        embedder.fit((QUERIES, POSITIVES, NEGATIVES), batch_size=4, shuffle=False, verbose=0)
    after = [to_numpy(weight) for weight in embedder.trainable_weights]
    return [new - old for new, old in zip(after, before, strict=True)]


@cases(
    (0.0, {"chunk_size": None}),
    pytest.param(0.2, {"chunk_size": 5, "remat": lambda f: f}, marks=pytest.mark.also_on("jax")),
)
def test_chunks_give_the_gradient_of_the_whole_batch(rate, direct):
    """With dropout, the direct gradient keeps all inner values of the same chunks and masks."""
    found, expected = gradients_of(rate, 5), gradients_of(rate, **direct)
    assert max(np.abs(x).max() for x in expected) > 1e-2
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-5)


@pytest.mark.also_on("tensorflow")
def test_chunks_are_computed_one_after_another():
    embedder = tiny_task("TextEmbedder")
    embedder.compile(chunk_size=2)
    inputs = embedder.preprocessor(QUERIES)
    if keras.backend.backend() != "tensorflow":
        assert embedder(inputs, training=True).shape[0] == len(QUERIES)
        return
    import tensorflow as tf

    graph = tf.function(lambda: embedder(inputs, training=True)).get_concrete_function().graph
    loops = [op for op in graph.get_operations() if op.type in ("While", "StatelessWhile")]
    # Otherwise the inner values of several chunks would be in memory.
    assert [loop.get_attr("parallel_iterations") for loop in loops] == [1]


def test_the_chunk_size_goes_on_in_a_file(reloaded):
    embedder = tiny_task("TextEmbedder")
    embedder.compile(chunk_size=2)
    assert reloaded(embedder).chunk_size == 2
    with pytest.raises(ValueError, match="chunk_size"):
        embedder.compile(chunk_size=0)


SCORES = np.array([[3.0, -1.0], [2.0, 0.5], [1.0, 1.0], [0.0, -2.0]])
TRIPLES = (QUERIES, POSITIVES, NEGATIVES)


def test_vectors_may_be_cut(shared):
    whole = shared.embed(QUERIES)
    cut = whole[:, :4] / np.linalg.norm(whole[:, :4], axis=1, keepdims=True)
    np.testing.assert_allclose(shared.embed(QUERIES, dim=4), cut, atol=1e-6)
    np.testing.assert_allclose(shared.embed(QUERIES[0], dim=4), cut[0], atol=1e-6)
    for dim in (0, 17):
        with pytest.raises(ValueError, match="`dim` must be an int from 1 to 16"):
            shared.embed(QUERIES, dim=dim)
    hits = shared.semantic_search(cut, cut, top_k=1)
    assert [hit["index"] for (hit,) in hits] == [*range(len(QUERIES))]
    for queries, documents in ((whole, cut), (QUERIES[1], cut), (cut[1], QUERIES)):
        with pytest.raises(ValueError, match="same number of columns"):
            shared.semantic_search(queries, documents)


@cases(
    ("distillation", TRIPLES, None, "a teacher's score for each text"),
    ("distillation", TRIPLES, SCORES[:, :1], r"\(num_examples, 2\)"),
    ("distillation", TRIPLES, SCORES * np.nan, "finite.*nan at the index"),
    ("distillation", TRIPLES[:2], SCORES, "at least 3 columns"),
    ("vectors", QUERIES, np.eye(4), r"\(num_examples, 16\)"),
    ("ranking", (*TRIPLES[:2], POSITIVES), None, "must differ from the positive.*index 0"),
    ("triplet", (*TRIPLES[:2], POSITIVES[:1] + NEGATIVES[1:]), None, "Received 'b a c'"),
)
def test_examples_that_do_not_fit_are_refused(shared, objective, x, y, message):
    embedder = tiny_task("TextEmbedder", shared.backbone, objective=objective)
    with pytest.raises(ValueError, match=message):
        embedder.fit(x, y, verbose=0)


CORPUS = [*POSITIVES, *NEGATIVES, "a b", "g", "b a c", "h g f e"]


def test_hard_negatives_are_the_nearest_texts_that_are_no_positives(shared):
    queries, positives = [*QUERIES, "a b"], [*POSITIVES, "c"]
    mined = bert_keras.mine_hard_negatives(shared, queries, positives, CORPUS, 2)
    assert mined[:2] == (queries, positives)
    documents = list(dict.fromkeys(CORPUS))
    cosines = shared.embed(queries) @ shared.embed(documents).T
    for row, query in enumerate(queries):
        known = {query, *(p for q, p in zip(queries, positives, strict=True) if q == query)}
        best = [documents[i] for i in np.argsort(-cosines[row]) if documents[i] not in known]
        assert [column[row] for column in mined[2:]] == best[:2]
    rows_of(shared, mined)


@pytest.mark.filterwarnings("ignore:.*left out")
def test_hard_negatives_keep_their_distance(shared):
    with pytest.warns(UserWarning, match="4 of 4 queries.*left out"):
        none = bert_keras.mine_hard_negatives(shared, QUERIES, POSITIVES, CORPUS, margin=2.1)
    assert none == ([], [], [])
    for options in ({"margin": 0.01}, {"relative_margin": 0.02}):
        columns = bert_keras.mine_hard_negatives(shared, QUERIES, POSITIVES, CORPUS, **options)
        assert len(columns[0]) > 0
        query, positive, negative = (shared.embed(column) for column in columns)
        found, own = (query * negative).sum(1), (query * positive).sum(1)
        limits = {"margin": own - 0.01, "relative_margin": own * 0.98}
        assert (found <= limits[next(iter(options))] + 1e-5).all()


@pytest.mark.parametrize("options", [{"margin": 0.0}, {"relative_margin": 0.001}])
def test_a_reranker_scores_candidates_anew(shared, options):
    reranker = tiny_task("Reranker", activation="linear")
    reranker.head.dense.bias.assign([-5.0])  # Negative scores have a margin too.
    columns = bert_keras.mine_hard_negatives(
        shared, QUERIES, POSITIVES, CORPUS, **options, reranker=reranker
    )
    positive, negative = (reranker.score(columns[0], columns[i]) for i in (1, 2))
    assert len(columns[0]) and (positive < 0).all()
    highest = positive - options.get("relative_margin", 0.0) * np.abs(positive)
    assert (negative <= highest + 1e-5).all()
    # As in sentence-transformers, the negative is the text that the reranker scores highest.
    for query, own, limit, score in zip(*columns[:2], highest, negative, strict=True):
        scores = reranker.score(query, [x for x in CORPUS if x not in (query, own)])
        assert score == pytest.approx(scores[scores <= limit + 1e-5].max(), abs=1e-5)


@refused(
    ((QUERIES, POSITIVES, []), {}, ValueError, "`corpus` must hold texts"),
    (([], [], CORPUS), {}, ValueError, "`queries` must hold texts"),
    ((QUERIES, POSITIVES[:3], CORPUS), {}, ValueError, "its positive"),
    ((QUERIES, POSITIVES, CORPUS), {"num_negatives": 0}, ValueError, "num_negatives"),
    ((QUERIES, POSITIVES, CORPUS), {"margin": -1.0}, ValueError, "margin"),
    ((QUERIES, POSITIVES, [1]), {}, TypeError, "corpus"),
    ((QUERIES, POSITIVES, CORPUS), {"reranker": "x"}, TypeError, "reranker"),
    ((QUERIES, POSITIVES, CORPUS), {"dim": 8}, TypeError, "has no argument 'dim'"),
)
def test_what_cannot_be_mined_is_refused(shared, arguments, options):
    bert_keras.mine_hard_negatives(shared, *arguments, **options)


def test_labels_that_may_be_similarities_are_no_groups():
    embedder, texts = tiny_task("TextEmbedder"), ["a b", "c"] * 5
    for labels in ([0, 1] * 5, [1] * 10, [1.0, 0.0] * 5, ["yes", "no"] * 5, [2, 1] * 5):
        with pytest.raises(ValueError, match="objective='similarity'"):
            embedder.fit((texts, texts), labels)
    embedder.fit((texts, texts), [0, 0, *range(1, 9)], epochs=1, verbose=0)
    triplet = tiny_task("TextEmbedder", objective="triplet")
    with pytest.raises(ValueError, match="'triplet' has no labels"):
        triplet.fit((["a"], ["b"], ["c"]), [1])
