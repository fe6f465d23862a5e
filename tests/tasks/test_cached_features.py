"""A head learns the same from cached vectors as on the frozen encoder itself."""

import keras
import numpy as np
import pytest
from adapted import array
from tiny import LETTERS, Batches, tiny_backbone, tiny_classifier, tiny_preprocessor, tiny_task

import bert_keras

pytestmark = pytest.mark.once

TEXTS = ["a b c", "d e", "h a g g", "", "b c", "a", "c d e", "e", "f g", "a b c d e f g h a b c d"]
LABELS = [0, 1, 1, 0, 1, 0, 0, 1, 0, 1]


def frozen_task(name="TextClassifier", **options):
    keras.utils.set_random_seed(3)
    return tiny_task(name, frozen="backbone", dropout=0.3, **options)


def run(task, x, y, learning_rate=0.05, cached=False, **options):
    """Returns the head's weights, how far they moved, and the history."""
    # With its own epsilon Adam makes steps of the rounding where a gradient is next to 0.
    multipliers = task.learning_rate_multipliers()
    task.compile(
        bert_keras.AdamW(learning_rate, epsilon=1e-3, learning_rate_multipliers=multipliers)
    )
    before = [array(weight) for weight in task.head.weights]
    keras.utils.set_random_seed(5)
    options = {"epochs": 3, "batch_size": 4, "verbose": 0, **options}
    trained = task
    if cached:
        trained = bert_keras.LinearProbe(task)
        read = {"sample_weight": options.pop("sample_weight", None), "verbose": 0}
        x, y = bert_keras.encode_features(task, x, y, **read), None
        if "validation_data" in options:
            options["validation_data"] = bert_keras.encode_features(
                task, *options["validation_data"], verbose=0
            )
    history = trained.fit(x, y, **options).history
    after = [array(weight) for weight in task.head.weights]
    moved = max(np.abs(a - b).max() for a, b in zip(after, before, strict=True))
    return after, moved, history


def check_cache_changes_nothing(make, x, y, **options):
    plain, moved, history = run(make(), x, y, **options)
    task = make()
    frozen = [array(weight) for weight in task.backbone.weights]
    cached, _, history_of_cached = run(task, x, y, cached=True, **options)
    assert moved > 0.05, "the head learns"
    for one, other in zip(cached, plain, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-5)
    for name, values in history.items():
        np.testing.assert_allclose(history_of_cached[name], values, atol=1e-5)
    for old, weight in zip(frozen, task.backbone.weights, strict=True):
        np.testing.assert_array_equal(array(weight), old)
    return task


@pytest.mark.parametrize(
    "pooling", ["pooler", pytest.param("mean", marks=pytest.mark.each_backend)]
)
def test_a_classifier_learns_the_same_from_cached_vectors(pooling):
    check_cache_changes_nothing(
        lambda: frozen_task(pooling=pooling), TEXTS, LABELS, validation_data=(TEXTS, LABELS)
    )


def test_ready_inputs_and_pairs_and_weights_are_cached_too():
    packed = tiny_preprocessor()(TEXTS, TEXTS[::-1])
    weights = np.linspace(0.5, 2, len(TEXTS))
    options = {"sample_weight": weights, "epochs": 2}
    check_cache_changes_nothing(frozen_task, packed, LABELS, **options)
    check_cache_changes_nothing(frozen_task, (TEXTS, TEXTS[::-1]), LABELS, **options)


# The transitions of the field move at a hundred times the rate.
@pytest.mark.parametrize(("crf", "learning_rate"), [(True, 0.001), (False, 0.05)])
def test_a_tagger_learns_the_same_from_cached_vectors(crf, learning_rate):
    rng = np.random.default_rng(0)
    sentences = [list(rng.choice(list(LETTERS), size)) for size in (3, 5, 1, 8, 24, 2, 4)]
    tags = [[LETTERS.index(word) % 3 for word in words] for words in sentences]
    task = check_cache_changes_nothing(
        lambda: frozen_task("TokenClassifier", num_classes=3, crf=crf),
        sentences,
        tags,
        learning_rate=learning_rate,
    )
    assert [len(found) for found in task.predict_tags(sentences)] == [3, 5, 1, 8, 24, 2, 4]


def test_the_encoder_reads_each_text_once_and_the_task_still_takes_texts(reloaded):
    task = frozen_task(pooling="mean")
    read = []
    encode = task.backbone.call

    def counted(inputs, **options):
        read.append(inputs["token_ids"].shape)
        return encode(inputs, **options)

    noted = keras.callbacks.LambdaCallback(
        on_epoch_end=lambda epoch, logs: read.append("end of an epoch")
    )
    task.backbone.call = counted
    features = bert_keras.encode_features(task, TEXTS, LABELS, verbose=0)
    with pytest.raises(TypeError, match=r"LinearProbe\(task\)\.fit"):
        task.fit(features, verbose=0)
    head = bert_keras.LinearProbe(task)
    head.fit(features, epochs=3, callbacks=[noted], verbose=0)
    assert "end of an epoch" not in read[:-3] and read[-3:] == ["end of an epoch"] * 3
    del task.backbone.call
    assert task.classify(TEXTS[0])["label"] in (0, 1)
    expected = task.predict(TEXTS, verbose=0)
    again = reloaded(task)
    np.testing.assert_allclose(again.predict(TEXTS, verbose=0), expected, atol=1e-6)
    again.fit(TEXTS, LABELS, epochs=1, verbose=0)


READY = tiny_preprocessor()(TEXTS[:4])
DATASET = Batches([(READY, np.array(LABELS[:4]))])


def test_a_head_alone_takes_features_and_nothing_else():
    head = bert_keras.LinearProbe(frozen_task())
    for x in (DATASET, TEXTS, tiny_preprocessor()(TEXTS)):
        for method in (head.fit, head.evaluate):
            with pytest.raises(TypeError, match=r"takes features.*Its task takes texts"):
                method(x, verbose=0)
    features = bert_keras.encode_features(head.task, TEXTS, LABELS, verbose=0)
    for data in (DATASET, (TEXTS, LABELS)):
        with pytest.raises(TypeError, match="takes features"):
            head.fit(features, validation_data=data, verbose=0)


def test_a_head_alone_is_saved_with_its_task(tmp_path, reloaded):
    head = bert_keras.LinearProbe(frozen_task(label_names=["x", "y"]))
    features = bert_keras.encode_features(head.task, TEXTS, LABELS, verbose=0)
    head.fit(features, class_weight={"x": 2.0}, epochs=1, verbose=0)
    again = reloaded(head)
    expected = head.task.predict(TEXTS, verbose=0)
    np.testing.assert_allclose(again.task.predict(TEXTS, verbose=0), expected, atol=1e-6)
    again.fit(bert_keras.encode_features(again.task, TEXTS, LABELS, verbose=0), epochs=1, verbose=0)
    head.save_to_preset(tmp_path / "preset")
    preset = bert_keras.TextClassifier.from_preset(tmp_path / "preset")
    np.testing.assert_allclose(preset.predict(TEXTS, verbose=0), expected, atol=1e-6)
    with pytest.raises(ValueError, match=r"`model\.task\.export"):
        head.export(tmp_path / "served")
    with pytest.raises(TypeError, match="is made of tasks: LinearProbe"):
        bert_keras.LinearProbe.from_preset(tmp_path / "preset")


OF_OTHERS = "is for `TextClassifier` and `TokenClassifier`"
REFUSED = [
    (tiny_classifier, TEXTS, ValueError, "Received: frozen=None"),
    (frozen_task, DATASET, TypeError, "all examples at once"),
    (lambda: tiny_classifier(frozen=1), TEXTS, ValueError, "weights of the backbone that train"),
    (lambda: frozen_task("LongTextClassifier"), TEXTS, ValueError, OF_OTHERS),
    (lambda: frozen_task("MultipleChoice"), TEXTS, ValueError, OF_OTHERS),
]


@pytest.mark.parametrize(("make", "x", "error", "message"), REFUSED)
def test_tasks_without_a_cacheable_encoder_are_refused(make, x, error, message):
    with pytest.raises(error, match=message):
        bert_keras.encode_features(make(), x, None if x is DATASET else LABELS)
    if message in ("Received: frozen=None", OF_OTHERS):
        with pytest.raises(ValueError, match=message):
            bert_keras.LinearProbe(make())


class WithItsOwnStep(bert_keras.TextClassifier):
    def train_step(self, *args):
        return super().train_step(*args)


def test_a_class_with_its_own_step_is_refused():
    task = WithItsOwnStep(tiny_backbone(), frozen="backbone")
    with pytest.raises(ValueError, match="Received: a WithItsOwnStep"):
        bert_keras.LinearProbe(task)


def test_features_of_another_encoder_or_pooling_are_refused():
    backbone = tiny_backbone()
    task = tiny_classifier(backbone, frozen="backbone")
    features = bert_keras.encode_features(task, ["a", "b"], [0, 1], verbose=0)
    head = bert_keras.LinearProbe(task)
    with pytest.raises(ValueError, match="from `encode_features`"):
        head.fit(features, y=[0, 1], verbose=0)
    for other, message in [
        (tiny_classifier(frozen="backbone"), "another backbone"),
        (tiny_classifier(backbone, frozen="backbone", pooling="mean"), "another pooling"),
    ]:
        with pytest.raises(ValueError, match=message):
            bert_keras.LinearProbe(other).fit(features, verbose=0)
    with pytest.raises(TypeError, match="`x` must be"):
        task.fit([features], verbose=0)
    with pytest.raises((TypeError, ValueError)):
        task.fit(features, verbose=0)
    task.frozen = None
    with pytest.raises(ValueError, match="does not train"):
        head.fit(features, verbose=0)
