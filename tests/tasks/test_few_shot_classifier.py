"""Few-shot classifiers: pairs, the head's regression, training, files and bad input."""

import keras
import numpy as np
import pytest
from checks import cases, to_numpy
from tiny import tiny_backbone, tiny_preprocessor, tiny_task

import bert_keras
from bert_keras.answers.classes import softmax
from bert_keras.tasks.few_shot_classifier import logistic_regression, pairs_of

pytestmark = pytest.mark.once

NAMES = ["first", "last"]
TEXTS = ["a b", "b c a", "a d", "c b d", "e f", "g h e", "h f", "f g"]
LABELS = ["first"] * 4 + ["last"] * 4


def classifier_of(**options):
    keras.utils.set_random_seed(0)
    return tiny_task("FewShotClassifier", label_names=NAMES, **options)


def trained(**options):
    classifier = classifier_of()
    classifier.compile(learning_rate=1e-2)
    keras.utils.set_random_seed(1)
    classifier.fit(TEXTS, LABELS, num_pairs=4, verbose=0, **options)
    return classifier


# A classifier that no test trains.
shared = pytest.fixture(classifier_of, scope="module")


def weights_of(task):
    return [to_numpy(weight).copy() for weight in task.weights]


def test_a_pair_has_one_label_and_two_texts():
    labels = np.array([0, 1, 0, 2, 0, 1])
    first, second = pairs_of(labels, 40, seed=0)  # Each of two texts is drawn.
    np.testing.assert_array_equal(np.bincount(first), np.full(6, 40))
    np.testing.assert_array_equal(labels[first], labels[second])
    np.testing.assert_array_equal(first == second, labels[first] == 2)
    assert set(second[first == 0]) == {2, 4}
    assert not np.array_equal(second, pairs_of(labels, 40, seed=1)[1])


@pytest.mark.parametrize("num_classes", [2, 4])
def test_the_head_is_where_the_gradient_of_the_regression_is_0(num_classes):
    rng = np.random.default_rng(0)
    labels = rng.integers(0, num_classes, 30)
    vectors = rng.normal(3, 2, (30, 8)) + np.eye(num_classes, 8)[labels]
    kernel, bias = logistic_regression(vectors, labels, num_classes)
    center = vectors.mean(0)
    scale = np.sqrt(np.square(vectors - center).sum(1).mean())
    errors = softmax(vectors @ kernel + bias) - np.eye(num_classes)[labels]
    gradient = ((vectors - center) / scale).T @ errors + kernel * scale
    np.testing.assert_allclose(gradient, 0, atol=1e-6)
    np.testing.assert_allclose(errors.sum(0), 0, atol=1e-6)


def test_a_handful_of_texts_is_learnt_in_the_same_way_for_a_seed(tmp_path):
    classifier = trained()
    assert [answer["label"] for answer in classifier.classify(TEXTS)] == LABELS
    for one, other in zip(weights_of(classifier), weights_of(trained()), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-6)
    logits = classifier.predict(TEXTS)
    classifier.save(tmp_path / "x.keras")
    classifier.save_to_preset(tmp_path / "preset")
    for again in (
        keras.saving.load_model(tmp_path / "x.keras"),
        bert_keras.FewShotClassifier.from_preset(tmp_path / "preset"),
        bert_keras.TextClassifier.from_preset(tmp_path / "preset"),
    ):
        assert again.label_names == tuple(NAMES)
        np.testing.assert_allclose(again.predict(TEXTS), logits, atol=1e-5)


def test_training_draws_the_texts_of_a_class_together():
    def margin(classifier):
        vectors = bert_keras.TextEmbedder(classifier.backbone, tiny_preprocessor()).embed(TEXTS)
        cosines, is_same = vectors @ vectors.T, np.equal.outer(LABELS, LABELS)
        return cosines[is_same].mean() - cosines[~is_same].mean()

    # Of tiny weights, five epochs reach 0.06 with some seeds: ten are trained, and ask for less.
    assert margin(trained(epochs=10)) > margin(classifier_of()) + 0.05


@cases(({"frozen": "backbone"}, False), ({"frozen": "embeddings"}, True), ({"lora_rank": 2}, True))
def test_only_what_trains_changes(options, trains):
    classifier = classifier_of(**options)
    table = to_numpy(classifier.backbone.token_embedding.embeddings).copy()
    before = [to_numpy(weight).copy() for weight in classifier.backbone.weights]
    classifier.fit(TEXTS, LABELS, num_pairs=2, verbose=0)
    after = [to_numpy(weight) for weight in classifier.backbone.weights]
    assert trains == any(np.any(x != y) for x, y in zip(before, after, strict=True))
    np.testing.assert_array_equal(table, to_numpy(classifier.backbone.token_embedding.embeddings))
    assert [answer["label"] for answer in classifier.classify(TEXTS)] == LABELS


def test_the_settings_of_compile_are_those_of_the_encoder():
    classifier = classifier_of()
    classifier.compile(learning_rate=0.0, weight_decay=0.0)
    before = weights_of(classifier.backbone)
    history = classifier.fit(TEXTS, LABELS, epochs=2, num_pairs=2, verbose=0)
    assert len(history.history["loss"]) == 2
    np.testing.assert_equal(weights_of(classifier.backbone), before)


@pytest.mark.parametrize(("options", "steps"), [({}, 10), ({"learning_rate": 5e-5}, 40)])
def test_a_lower_rate_trains_on_more_pairs(shared, options, steps):
    class Planned(keras.callbacks.Callback):
        def on_train_begin(self, logs=None):
            assert self.params["epochs"] * self.params["steps"] == steps
            raise InterruptedError

    shared.compile(**options)
    with pytest.raises(InterruptedError):
        shared.fit(TEXTS, LABELS, verbose=0, callbacks=[Planned()])


@cases(
    (TEXTS, ["first"] * 8, {}, ValueError, r"at least one text. Received none for \['last'\]"),
    ([], [], {}, ValueError, r"none for \['first', 'last'\]"),
    (TEXTS, LABELS[:7], {}, ValueError, "8 texts, 7 labels"),
    (TEXTS, None, {}, ValueError, "Received: y=None"),
    (TEXTS, ["other"] * 8, {}, ValueError, "must be one of"),
    (TEXTS, np.full((8, 2), 0.5), {}, ValueError, "one class here.*at the index 0"),
    ((TEXTS, TEXTS), LABELS, {}, TypeError, "one column of texts.*Join the texts of pairs"),
    ({"token_ids": np.ones((8, 4), int)}, LABELS, {}, TypeError, "one column of texts"),
    (TEXTS, LABELS, {"num_pairs": 0}, ValueError, "num_pairs"),
    (TEXTS, LABELS, {"validation_split": 0.1}, TypeError, "also: validation_split"),
)
def test_what_cannot_be_learnt_from_is_refused(shared, x, y, options, error, message):
    before = weights_of(shared)
    with pytest.raises(error, match=message):
        shared.fit(x, y, verbose=0, **options)
    np.testing.assert_equal(weights_of(shared), before)


def test_a_loss_of_classes_is_refused():
    classifier = bert_keras.FewShotClassifier(tiny_backbone(), 2, tiny_preprocessor())
    with pytest.raises(ValueError, match="loss"):
        classifier.compile(loss="mean_squared_error")
    classifier.compile(label_smoothing=0.1)
    with pytest.raises(ValueError, match="no labels of classes to smooth"):
        classifier.fit(TEXTS, [0, 1] * 4, verbose=0)
