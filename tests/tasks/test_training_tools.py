"""The tools of fine-tuning on whole tasks: float16, averages and class weights."""

import warnings

import keras
import numpy as np
import pytest
import scipy.special
from adapted import assert_equal, by_path
from checks import cases
from tiny import (
    VOCABULARY,
    tiny_backbone,
    tiny_classifier,
    tiny_preprocessor,
    tiny_task,
)

import bert_keras

pytestmark = pytest.mark.once

READY = {"token_ids": np.arange(5, 37).reshape(8, 4) % len(VOCABULARY)}
LABELS = np.array([0, 1, 1, 0, 1, 0, 0, 1])


def classifier(num_layers=1, **options):
    keras.utils.set_random_seed(0)
    backbone = tiny_backbone(num_layers=num_layers, dropout=0.0, initializer_range=0.3, **options)
    return tiny_classifier(backbone, dropout=0.0)


def values(task):
    """Returns copies of the trainable variables by path."""
    return by_path(task.trainable_variables)


def fit(task, **options):
    """All examples are one batch: an epoch is a step."""
    options = {"batch_size": 8, "epochs": 1, "shuffle": False, "verbose": 0, **options}
    return task.fit(READY, LABELS, **options)


class Weights(keras.callbacks.Callback):
    """Remembers the trainable variables before training and after each epoch."""

    def on_train_begin(self, logs=None):
        self.history = [values(self.model)]

    def on_epoch_end(self, epoch, logs=None):
        self.history.append(values(self.model))


# float16 and bfloat16


@pytest.mark.also_on("jax")
@pytest.mark.bounded("bfloat16 rounds to 8 bits in each of eight steps, which Adam magnifies.")
def test_half_precision_learns_what_float32_does():
    ends, starts = {}, {}
    for dtype in ("float32", "mixed_bfloat16", "mixed_float16"):
        task = classifier(dtype=dtype)
        task.compile(learning_rate=1e-2)
        starts[dtype] = task.predict(READY, verbose=0)
        with warnings.catch_warnings():
            warnings.simplefilter("error", RuntimeWarning)
            fit(task, epochs=8)
        ends[dtype] = task.predict(READY, verbose=0)
        assert ends[dtype].dtype == "float32"
        assert all(value.dtype == "float32" for value in values(task).values())
    assert isinstance(task.optimizer, keras.optimizers.LossScaleOptimizer)
    assert int(task.optimizer.inner_optimizer.iterations) == 8, "no step was skipped"
    moved = np.abs(ends["float32"] - starts["float32"]).max()
    assert moved > 0.5
    # Where a gradient is near 0, rounding may turn the sign of Adam's whole first step.
    for dtype, end in ends.items():
        np.testing.assert_allclose(end, ends["float32"], atol=0.1 * moved, err_msg=dtype)


def test_a_step_that_overflows_float16_is_left_out_and_the_scale_halved():
    task = classifier(dtype="mixed_float16")
    task.compile(bert_keras.AdamW(1e-2))
    task.train_on_batch(READY, LABELS)
    before = values(task)
    task.optimizer.dynamic_scale.assign(2.0**40)
    task.train_on_batch(READY, LABELS)
    assert_equal(values(task), before)
    assert float(task.optimizer.dynamic_scale) == 2.0**39
    assert int(task.optimizer.inner_optimizer.iterations) == 1
    task.optimizer.dynamic_scale.assign(2.0**10)
    task.train_on_batch(READY, LABELS)
    after = values(task)
    assert any(np.abs(after[path] - value).max() > 1e-3 for path, value in before.items())


# Averages of the weights


def test_validation_and_evaluate_and_files_have_the_averages(reloaded):
    plain, weights, averaged = classifier(), Weights(), Weights()
    plain.compile(learning_rate=1e-2)
    raw = fit(plain, epochs=3, callbacks=[weights], validation_data=(READY, LABELS)).history
    expected = weights.history[1]
    for later in weights.history[2:]:
        expected = {path: 0.5 * value + 0.5 * later[path] for path, value in expected.items()}
    assert max(np.abs(expected[path] - value).max() for path, value in later.items()) > 1e-3

    task = classifier()
    task.compile(learning_rate=1e-2, ema_momentum=0.5)
    history = fit(task, epochs=3, callbacks=[averaged], validation_data=(READY, LABELS)).history
    for before, after in zip(weights.history, averaged.history, strict=True):
        assert_equal(after, before)
    assert_equal(values(task), expected, atol=1e-6)
    log_p = scipy.special.log_softmax(task.predict(READY, verbose=0).astype("float64"), -1)
    loss = -log_p[np.arange(8), LABELS].mean()
    assert history["val_loss"][-1] == pytest.approx(loss, abs=1e-5)
    assert abs(raw["val_loss"][-1] - loss) > 1e-3
    loaded = reloaded(task)
    for model in (task, loaded):
        found = model.evaluate(READY, LABELS, verbose=0, return_dict=True)
        assert found["loss"] == pytest.approx(loss, abs=1e-5)
    assert_equal(values(loaded), values(task))


# Weights of classes


@pytest.mark.parametrize("crf", [False, True])
def test_class_weights_of_tags_are_weights_of_their_words(crf):
    sentences = [list("abcd"), list("dcb"), list("acbd"), list("bd")]
    tags = [["abcd".index(word) // 2 for word in words] for words in sentences]
    table = np.array([1.0, 5.0], "float32")

    def trained(x, y, **options):
        keras.utils.set_random_seed(0)
        backbone = tiny_backbone(dropout=0.0, initializer_range=0.3)
        tagger = bert_keras.TokenClassifier(backbone, 2, tiny_preprocessor(), crf=crf)
        # Not Adam, which magnifies the rounding of a gradient that is 0, as of a key's bias.
        tagger.compile(keras.optimizers.SGD(0.1))
        tagger.fit(x, y, batch_size=4, epochs=2, shuffle=False, verbose=0, **options)
        return values(tagger)

    preprocessor = tiny_preprocessor()
    ready = preprocessor([" ".join(words) for words in sentences], length=16)
    labels, weights = np.zeros((4, 16), "int32"), np.zeros((4, 16), "float32")
    for row, numbers in enumerate(tags):
        labels[row, 1 : len(numbers) + 1] = numbers
        weights[row, 1 : len(numbers) + 1] = 1
    expected = trained(ready, labels, sample_weight=weights * table[labels])
    without = trained(ready, labels, sample_weight=weights)
    assert max(np.abs(without[path] - value).max() for path, value in expected.items()) > 1e-3
    class_weight = {1: 5.0}
    for found in (
        trained(sentences, tags, class_weight=class_weight),
        trained(ready, labels, sample_weight=weights, class_weight=class_weight),
    ):
        for path, value in expected.items():
            np.testing.assert_allclose(found[path], value, rtol=0, atol=1e-5, err_msg=path)


@cases(
    ("TextClassifier", {"problem_type": "multi_label"}, ["a", "b"], [[0, 1], [1, 1]]),
    ("TextClassifier", {"problem_type": "regression", "num_classes": 1}, ["a", "b"], [0.5, 2]),
    ("TextEmbedder", {}, (["a", "b"], ["c", "d"]), None),
    ("MaskedLM", {}, ["a b c", "b c d"], None),
)
def test_class_weights_need_one_class_an_example(name, options, x, y):
    with pytest.raises(ValueError, match=r"one class each.*sample_weight"):
        tiny_task(name, **options).fit(x, y, class_weight={0: 1.0, 1: 2.0}, verbose=0)


# A run that begins anew


def test_a_new_run_of_a_loaded_model_uses_the_new_seed(tmp_path):
    texts, labels = ["a b c", "d e", "h a", "g"], [0, 1, 1, 0]
    task = tiny_classifier()
    task.fit(texts, labels, epochs=1, verbose=0)
    task.save(tmp_path / "task.keras")
    found = []
    for seed in (1, 2):
        again = keras.models.load_model(tmp_path / "task.keras")
        keras.utils.set_random_seed(seed)
        again.fit(texts, labels, shuffle=False, epochs=2, verbose=0)
        found.append(again.predict(texts, verbose=0))
    assert np.abs(found[0] - found[1]).max() > 1e-6
