"""Integrated gradients: completeness and finite differences."""

import keras
import numpy as np
import pytest
from checks import call, refused, to_numpy
from tiny import LETTERS, VOCABULARY, tiny_backbone, tiny_classifier, tiny_preprocessor

import bert_keras
from bert_keras.serving import explain
from bert_keras.tasks import saliency

pytestmark = pytest.mark.once

TEXTS = ["a b cab", "d", "h a gag e", ""]


@pytest.fixture(scope="module")
def classifier():
    keras.utils.set_random_seed(0)
    task = tiny_classifier(tiny_backbone(num_layers=2, initializer_range=0.3), num_classes=3)
    # Larger than any training would leave them, so that the path is far from straight.
    task.head.dense.kernel.assign(task.head.dense.kernel * 20)
    return task


def test_the_scores_of_a_text_sum_to_what_its_logit_moved(classifier):
    found = bert_keras.integrated_gradients(classifier, TEXTS, target=1, steps=64)
    expected = classifier.predict(TEXTS, verbose=0)[:, 1]
    np.testing.assert_allclose([one.logit for one in found], expected, atol=1e-4)
    moved = np.array([one.logit - one.baseline_logit for one in found])
    assert np.abs(moved).max() > 0.5
    errors = np.array([one.error for one in found])
    assert np.abs(errors).max() < 1e-3 * np.abs(moved).max()
    # With too few points it does not hold, so the bound above says something.
    rough = bert_keras.integrated_gradients(classifier, TEXTS, target=1, steps=1)
    assert np.abs([one.error for one in rough]).max() > 10 * np.abs(errors).max()


def test_the_baseline_of_masks_has_the_logit_of_a_text_of_masks(classifier):
    found = bert_keras.integrated_gradients(classifier, "a b", target=0)
    inputs = classifier.preprocessor(["[MASK] [MASK]"])
    assert found.baseline_logit == pytest.approx(
        float(classifier.predict(inputs, verbose=0)[0, 0]), rel=1e-5
    )


def test_each_piece_has_a_score_and_special_tokens_have_none(classifier):
    text, empty = bert_keras.integrated_gradients(classifier, ["a cab", ""], target=2)
    assert text.tokens == ["[CLS]", "a", "c", "##a", "##b", "[SEP]"]
    assert text.scores.shape == (6,) and text.scores.dtype == np.float32
    assert text.scores[0] == text.scores[-1] == 0 and (text.scores[1:-1] != 0).all()
    assert empty.tokens == ["[CLS]", "[SEP]"] and not empty.scores.any()


@pytest.mark.each_backend
def test_compiled_gradients_follow_new_weights_and_new_variables():
    task = tiny_classifier(tiny_backbone(initializer_range=0.3))
    before = bert_keras.integrated_gradients(task, "a b", 0)
    task.head.dense.kernel.assign(task.head.dense.kernel * 2)
    doubled = bert_keras.integrated_gradients(task, "a b", 0)
    np.testing.assert_allclose(doubled.scores, 2 * before.scores, rtol=1e-4, atol=1e-7)
    task.backbone.add_adapters(rank=2)
    for variable in task.variables:
        if "lora" in variable.path:
            variable.assign(keras.random.normal(variable.shape, seed=1))
    adapted = bert_keras.integrated_gradients(task, "a b", 0)
    assert adapted.logit == pytest.approx(float(task.predict(["a b"], verbose=0)[0, 0]), abs=1e-5)
    assert adapted.logit != pytest.approx(doubled.logit, abs=1e-3)


@pytest.mark.each_backend
def test_the_gradient_equals_finite_differences(classifier):
    inputs = classifier.preprocessor(["a cab", "d e"], length=8)
    table = classifier.backbone.token_embedding
    vectors = keras.ops.convert_to_numpy(table(inputs["token_ids"])).astype("float32")
    _, gradient = saliency._gradients(classifier, inputs, vectors, 2)
    directions = np.random.default_rng(0).normal(size=(4, *vectors.shape)).astype("float32")
    # In one batch, since XLA compiles each shape.
    moved = np.concatenate([vectors + s * d for d in directions for s in (3e-3, -3e-3)])
    rows = {name: np.tile(array, (8, 1)) for name, array in inputs.items()}
    logits = to_numpy(call(classifier, rows, token_vectors=moved, training=False))[:, 2]
    for direction, (ahead, behind) in zip(directions, logits.reshape(4, 2, 2), strict=True):
        expected = (ahead - behind) / 6e-3
        actual = (gradient * direction).sum(axis=(1, 2))
        np.testing.assert_allclose(actual, expected, rtol=2e-2, atol=2e-2 * np.abs(expected).max())
    assert not gradient[1, 4:].any(), "padding has a gradient"


def test_pairs_are_scored_and_their_separators_are_not(classifier):
    found = bert_keras.integrated_gradients(classifier, (["a", "b c"], ["d", "e"]), target=0)
    assert found[1].tokens == ["[CLS]", "b", "c", "[SEP]", "e", "[SEP]"]
    assert (found[1].scores == 0).tolist() == [True, False, False, True, False, True]
    one = bert_keras.integrated_gradients(classifier, ("b c", "e"), target=0)
    np.testing.assert_allclose(one.scores, found[1].scores, atol=1e-5)


def test_a_reranker_reads_its_prompt_before_the_query():
    task = bert_keras.Reranker(
        tiny_backbone(), tiny_preprocessor(), prompts={"query": "d h "}, default_prompt="query"
    )
    found = bert_keras.integrated_gradients(task, ("b c", "e"), steps=2)
    assert found.tokens == ["[CLS]", "d", "h", "b", "c", "[SEP]", "e", "[SEP]"]
    logit = task.predict((["b c"], ["e"]), verbose=0)[0, 0]
    assert found.logit == pytest.approx(float(logit), abs=1e-5)
    shown = explain.saliency(task, ("b c", "e"))["words"]
    assert [word["text"] for word in shown] == found.tokens
    assert explain.attention(task, ("b c", "e"), 0)["tokens"] == found.tokens


def test_targets_are_the_likeliest_classes_or_given_by_name_or_number():
    task = tiny_classifier(label_names=["bad", "good"])
    chosen = [answer["label"] for answer in task.classify(TEXTS)]
    found = bert_keras.integrated_gradients(task, TEXTS, steps=2)
    assert [one.target for one in found] == chosen
    named = bert_keras.integrated_gradients(task, TEXTS, ["good", 0, "bad", 1], steps=2)
    assert [one.target for one in named] == ["good", "bad", "bad", "good"]


def test_a_regression_explains_its_score_and_several_batches_equal_one():
    task = tiny_classifier(num_classes=1, problem_type="regression", pooling="mean")
    found = bert_keras.integrated_gradients(task, "a b")
    assert found.target == 0
    small = bert_keras.integrated_gradients(task, "a b", batch_size=7)
    np.testing.assert_allclose(small.scores, found.scores, atol=1e-6)


def test_a_mixed_precision_model_is_explained_too():
    backbone = tiny_backbone(dtype="mixed_bfloat16")
    found = bert_keras.integrated_gradients(tiny_classifier(backbone), "a b")
    assert np.isfinite(found.scores).all()


@refused(
    ({"steps": 0}, "`steps` must be an int from 1"),
    ({"target": "great"}, "`target` must be one of"),
    ({"target": 3}, "`target` must be one of"),
    ({"target": [0, 1]}, "one for all texts, or one for each"),
)
def test_wrong_arguments_are_named(classifier, options):
    bert_keras.integrated_gradients(classifier, "a b", **options)


def test_models_that_cannot_be_explained_are_refused():
    backbone, preprocessor = tiny_backbone(), tiny_preprocessor()
    long = bert_keras.LongTextClassifier(backbone, preprocessor=preprocessor)
    for task in (long, backbone):
        with pytest.raises(TypeError, match="are for a `TextClassifier`"):
            bert_keras.integrated_gradients(task, "a b")
    with pytest.raises(ValueError, match="no preprocessor"):
        bert_keras.integrated_gradients(bert_keras.TextClassifier(backbone), "a b")
    words = [token for token in VOCABULARY if token != "[MASK]"] + ["x"]
    task = tiny_classifier(backbone, preprocessor=tiny_preprocessor(vocabulary=words))
    inputs = task.preprocessor([LETTERS[0]])
    inputs["token_ids"][0, 1] = task.tokenizer.pad_token_id
    logit = task.predict(inputs, verbose=0)[0, 0]
    found = bert_keras.integrated_gradients(task, LETTERS[0], target=0)
    assert found.baseline_logit == pytest.approx(float(logit), rel=1e-5)
