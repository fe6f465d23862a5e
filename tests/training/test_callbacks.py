"""The callbacks: the best epoch, and early stopping."""

import functools

import keras
import numpy as np
import pytest
from checks import assert_same_structure_close, cases, refusals

from bert_keras.training.callbacks import BestOnMetric
from bert_keras.training.optimizer import AdamW

pytestmark = pytest.mark.once

X = np.random.default_rng(0).normal(size=(8, 3)).astype("float32")
Y = np.array([0, 1, 1, 0, 1, 0, 0, 1])


def make_model(optimizer=None):
    keras.utils.set_random_seed(0)
    layers = [keras.layers.Dense(3, activation="tanh") for _ in range(2)]
    model = keras.Sequential([keras.Input((3,)), *layers])
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer or AdamW(1e-2), loss)
    return model


class Recorded:
    """A metric with fixed values that records the weights it measured."""

    def __init__(self, values):
        self.values = list(values)
        self.weights = []

    def __call__(self, model):
        self.weights.append(model.get_weights())
        return self.values[len(self.weights) - 1]


def fit(model, *callbacks, epochs=4, **options):
    options = {"batch_size": 4, "shuffle": False, "verbose": 0, **options}
    return model.fit(X, Y, epochs=epochs, callbacks=list(callbacks), **options)


assert_equal_weights = functools.partial(assert_same_structure_close, atol=0)


@cases(
    pytest.param([0.1, 0.7, 0.3, 0.6], "max", 1, marks=pytest.mark.each_backend),
    ([0.9, 0.7, 0.3, 0.6], "min", 2),
    ([0.9, 0.7, 0.3, 0.6], "max", 0),
    ([0.1, 0.2, 0.3, 0.4], "max", 3),
    ([float("nan"), 0.2, float("nan"), 0.2], "max", 1),
)
@pytest.mark.eager
def test_training_ends_with_the_weights_of_the_best_epoch(values, mode, best_epoch):
    measure, model = Recorded(values), make_model()
    callback = BestOnMetric(measure, mode=mode)
    fit(model, callback)
    assert callback.best_epoch == best_epoch
    assert callback.best == values[best_epoch]
    assert_equal_weights(model.get_weights(), measure.weights[best_epoch])


def test_it_stops_when_patience_epochs_bring_no_new_best():
    measure, model = Recorded([0.1, 0.5, 0.5, 0.4, 0.9]), make_model()
    history = fit(model, BestOnMetric(measure, patience=2), epochs=5)
    assert len(history.epoch) == 4
    assert_equal_weights(model.get_weights(), measure.weights[1])


def test_a_resumed_run_counts_patience_from_its_own_first_epoch():
    best = BestOnMetric(Recorded([float("nan"), 0.5, 0.4, 0.3, 0.2]), patience=2)
    history = fit(make_model(), best, epochs=10, initial_epoch=5)
    assert best.best_epoch == 6 and history.epoch == [5, 6, 7, 8]


def test_a_killed_run_resumes_to_the_best_of_all_epochs(tmp_path):
    path = tmp_path / "best.keras"
    values = [0.1, 0.9, 0.3, 0.4]
    whole, measure = make_model(), Recorded(values)
    fit(whole, BestOnMetric(measure))
    first = make_model()
    fit(first, BestOnMetric(Recorded(values), path=path, restore_best_weights=False), epochs=3)
    # Without `restore_best_weights` the model keeps its last weights, and the file the best.
    kept = keras.saving.load_model(path)
    assert_equal_weights(kept.get_weights(), measure.weights[1])
    assert_equal_weights(first.get_weights(), measure.weights[2])
    # It was killed in the fourth epoch and resumes from the end of the third.
    callback = BestOnMetric(Recorded(values[3:]), path=path, patience=2)
    history = fit(first, callback, epochs=9, initial_epoch=3)
    assert (callback.best, callback.best_epoch, history.epoch) == (0.9, 1, [3])
    assert_equal_weights(first.get_weights(), whole.get_weights())
    assert sorted(file.name for file in tmp_path.iterdir()) == ["best.keras"]


def test_a_better_epoch_replaces_the_file(tmp_path):
    path = tmp_path / "not there yet" / "best.keras"
    model = make_model()
    fit(model, BestOnMetric(Recorded([0.5, 0.4]), path=path), epochs=2)
    callback = BestOnMetric(Recorded([0.45, 0.7]), path=path)
    fit(model, callback, epochs=4, initial_epoch=2)
    assert (callback.best, callback.best_epoch) == (0.7, 3)
    assert_equal_weights(keras.saving.load_model(path).get_weights(), model.get_weights())
    with pytest.raises(ValueError, match="Pass another"):
        fit(model, BestOnMetric(Recorded([0.1]), "f1", path=path), epochs=5, initial_epoch=4)


def test_values_are_logged_and_a_callback_can_be_used_again():
    callback = BestOnMetric(Recorded([0.9, 0.8, 0.1, 0.2]), name="f1")
    for values in ([0.9, 0.8], [0.1, 0.2]):
        history = fit(make_model(), callback, epochs=2)
        assert history.history["val_f1"] == values
    assert (callback.best, callback.best_epoch) == (0.2, 1)
    values = [{"f1": 0.5, "exact": 0.1}, {"f1": 0.25, "exact": 0.2}]
    callback = BestOnMetric(Recorded(values), name="exact")
    history = fit(make_model(), callback, epochs=2)
    assert history.history["val_f1"] == [0.5, 0.25]
    assert callback.best_epoch == 1


@pytest.mark.parametrize("make", [AdamW, keras.optimizers.AdamW])
def test_averaged_weights_are_measured_and_kept(make):
    def optimizer():
        return make(1e-2, use_ema=True, ema_momentum=0.5)

    averages = []
    for epochs in (1, 2, 3):
        fit(model := make_model(optimizer()), epochs=epochs)
        averages.append(model.get_weights())
    measure, model = Recorded([0.1, 0.9, 0.2]), make_model(optimizer())

    def evaluate_and_measure(model):
        # On JAX this donates the weights' buffers, which the optimizer must not share.
        model.evaluate(X, Y, verbose=0)
        return measure(model)

    fit(model, BestOnMetric(evaluate_and_measure), epochs=3)
    assert_same_structure_close(measure.weights, averages, 1e-7)
    assert_equal_weights(model.get_weights(), measure.weights[1])


def test_a_verbose_callback_prints_what_it_does(capsys):
    fit(make_model(), BestOnMetric(Recorded([0.5, 0.1]), "f1", patience=1, verbose=True), epochs=3)
    out = capsys.readouterr().out
    assert "f1 0.5000 is the best" in out
    assert "stopping" in out
    assert "weights of epoch 1" in out


test_impossible_settings_are_refused = refusals(
    (lambda: BestOnMetric("f1"), TypeError, "measure"),
    (lambda: BestOnMetric(len, mode="best"), "mode"),
    (lambda: BestOnMetric(len, patience=0), "patience"),
    (lambda: BestOnMetric(len, path="best.h5"), "must end in"),
    (lambda: fit(make_model(), BestOnMetric(lambda model: {"exact": 1.0}, "f1")), "'f1'"),
)
