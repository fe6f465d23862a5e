import numpy as np
import pytest
from checks import assert_close, cases, check_task, refusals, to_numpy
from tiny import ready_inputs, tiny_backbone, tiny_task

import bert_keras
from bert_keras.training.contrastive import MultipleNegativesRanking

pytestmark = pytest.mark.once

VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "dog", "cat", "barks", "meows"]
TEXTS = ["a dog", "a cat meows a cat meows a cat", "barks", ""]
PAIRS = (["dog", "a cat", "a dog", "cat"] * 2, ["barks", "meows", "a barks", "a meows"] * 2)


def tiny_embedder(**options):
    return tiny_task("TextEmbedder", vocabulary=VOCABULARY, **options)


@pytest.fixture(scope="module")
def shared():
    """An embedder that no test changes: it is compiled once for all."""
    return tiny_embedder(normalize=False)


def test_it_keeps_the_contract_of_tasks(tmp_path):
    options = {"pooling": "max", "normalize": False, "objective": "triplet", "frozen": 1}
    check_task(tiny_embedder(**options), ready_inputs(3, 7), tmp_path, {"embed": (TEXTS,)})


@pytest.mark.parametrize("pooling", ["mean", "cls", "max", "pooler"])
def test_vectors_are_the_pooled_real_tokens(pooling):
    embedder = tiny_embedder(pooling=pooling, normalize=False)
    vectors = embedder.embed(TEXTS)
    assert vectors.dtype == "float32" and vectors.shape == (4, 16)
    inputs = embedder.preprocessor(TEXTS)
    outputs = embedder.backbone.predict(inputs, verbose=0)
    for row, length in enumerate(inputs["padding_mask"].sum(-1)):
        tokens = outputs["sequence_output"][row, :length]
        expected = {
            "mean": tokens.mean(0),
            "cls": tokens[0],
            "max": tokens.max(0),
            "pooler": outputs["pooled_output"][row],
        }
        assert_close(vectors[row], expected[pooling], 1e-5)
    unit = bert_keras.TextEmbedder(embedder.backbone, embedder.preprocessor, pooling)
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    assert_close(unit.embed(TEXTS), vectors / lengths, 1e-5)


def test_one_text_gives_one_vector_and_none_gives_none(shared):
    assert_close(shared.embed(TEXTS[0]), shared.embed(TEXTS)[0], 1e-6)
    assert shared.embed([]).shape == shared.predict([]).shape == (0, 16)


def test_groups_may_be_names(shared):
    groups = {(0, 1, 2, 0): [[*"abca"], np.array([*"abca"], dtype=object)]}
    groups[1, 0, 1] = [[7.0, 3.0, 7.0]]
    for expected, forms in groups.items():
        for labels in forms:
            assert shared.encode_labels(labels).tolist() == [*expected]


def test_columns_are_embedded_text_by_text(shared):
    vectors = shared.predict(PAIRS, verbose=0)
    assert vectors.shape == (8, 2, 16)
    assert_close(vectors[:, 1], shared.embed(PAIRS[1]), 1e-6)
    inputs = ready_inputs(3, 2, 7)
    first = {key: array[:, 0] for key, array in inputs.items()}
    assert_close(to_numpy(shared(inputs))[:, 0], shared(first), 1e-6)
    assert_close(shared.predict(inputs, verbose=0), shared(inputs), 1e-6)


def test_vectors_keep_float32_in_mixed_precision():
    half = bert_keras.TextEmbedder(tiny_backbone(dtype="mixed_bfloat16"))
    vectors = half.predict(ready_inputs(3, 7), verbose=0)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=-1), 1, atol=1e-5)


def test_search_finds_what_cosines_say(shared):
    documents = [*PAIRS[0][:4], "meows a meows"]
    hits = shared.semantic_search("a cat", documents, top_k=3)
    assert hits[0] == {"index": 1, "text": "a cat", "score": pytest.approx(1, abs=1e-5)}
    vectors = shared.embed(documents)
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    expected = np.argsort(-unit @ unit[1], kind="stable")[:3]
    assert [hit["index"] for hit in hits] == expected.tolist()
    assert_close([hit["score"] for hit in hits], (unit @ unit[1])[expected], 1e-5)
    by_vectors = shared.semantic_search(shared.embed(["a cat"]), vectors, top_k=99)
    assert len(by_vectors) == 1 and len(by_vectors[0]) == 5 and "text" not in by_vectors[0][0]
    assert shared.semantic_search(vectors[1], documents, top_k=1)[0]["index"] == 1
    assert shared.semantic_search(["dog", "cat"], [], top_k=1) == [[], []]


def test_a_last_batch_is_not_filled_up_with_false_negatives():
    """Five rows in batches of four give the mean of both batches' losses, weighted by size."""
    embedder = tiny_embedder()
    x = tuple(column[:5] for column in PAIRS)
    loss = MultipleNegativesRanking()
    vectors = embedder.predict(x, verbose=0)
    parts = [float(to_numpy(loss(np.arange(len(v)), v))) for v in (vectors[:4], vectors[4:])]
    expected = (4 * parts[0] + 1 * parts[1]) / 5
    assert embedder.evaluate(x, batch_size=4, verbose=0) == pytest.approx(expected, abs=1e-4)


@cases(
    ("ranking", TEXTS, None, "at least 2 columns.*Received: 1"),
    ("ranking", (PAIRS[0], PAIRS[1][:3]), None, "equally long"),
    ("ranking", PAIRS, [1, 2], "as many labels"),
    ("ranking", PAIRS, [0, 1, 2, 3, 4, 5, 6, np.nan], "nan at the index 7"),
    ("ranking", PAIRS, [*"abcdefg", None], "None at the index 7"),
    ("ranking", PAIRS, [*"abcdefg", np.nan], "nan at the index 7"),
    ("ranking", PAIRS, [*"abcdefg", 1], "1 at the index 7"),
    ("similarity", PAIRS, None, "needs labels"),
    ("similarity", PAIRS, [5.0] * 8, "Received 5.0 at the index 0"),
    ("similarity", PAIRS, [0.0] * 7 + [np.nan], "nan at the index 7"),
    ("similarity", PAIRS, ["a"] * 8, "dtype"),
    ("similarity", (*PAIRS, PAIRS[0]), [0.0] * 8, "2 columns.*Received: 3"),
    ("triplet", PAIRS, None, "3 columns.*Received: 2"),
    ("ranking", ready_inputs(4, 7), None, "at least 2 columns"),
)
def test_examples_that_do_not_fit_are_refused(shared, objective, x, y, message):
    embedder = tiny_embedder(backbone=shared.backbone, objective=objective)
    with pytest.raises(ValueError, match=message):
        embedder.fit(x, y, verbose=0)


test_what_does_not_fit_is_refused = refusals(
    (lambda e: tiny_embedder(backbone=e.backbone, pooling="median"), "pooling"),
    (lambda e: tiny_embedder(backbone=e.backbone, objective="guessing"), "objective"),
    (lambda e: tiny_embedder(backbone=e.backbone, normalize="no"), "normalize"),
    (lambda e: tiny_embedder(backbone=e.backbone, frozen="backbone"), "frozen"),
    (lambda e: e.compile(label_smoothing=0.1), "label_smoothing"),
    (lambda e: e.embed(["a", None]), TypeError, r"texts\[1\]"),
    (lambda e: e.semantic_search("a", ["a"], top_k=0), "top_k"),
    (lambda e: e.semantic_search("a", "b"), TypeError, "`documents` must be a column"),
    (lambda e: e.semantic_search("a", ["b"], topk=1), TypeError, "no argument 'topk'.*'top_k'"),
    (lambda e: e.semantic_search("a", np.zeros((3, 17)), top_k=1), "width 16"),
    (
        lambda e: tiny_embedder(backbone=e.backbone, pooling="pooler").export_to_huggingface(
            "not_written"
        ),
        "pooling",
    ),
    of="shared",
)
