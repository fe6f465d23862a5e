"""Whatever ends `fit`, `evaluate` or `predict`, the weights are those of a whole step.

`INTERRUPTS=200 pytest tests/engine/test_train_step.py` interrupts each of them so many times.
"""

import _thread
import functools
import itertools
import os
import random
import signal
import threading
import time

import keras
import numpy as np
import pytest
from tiny import Batches, tiny_backbone, tiny_classifier

import bert_keras
from bert_keras.engine.jax_compilation_cache import keep_compiled_programs

# A program that runs in the background was started to ignore Ctrl-C.
signal.signal(signal.SIGINT, signal.default_int_handler)
INTERRUPTS = int(os.environ.get("INTERRUPTS", 5))
NUM_STEPS = 5


def optimizer():
    """Returns one with state and averages of the weights.

    AdamW computes with PyTorch's and JAX's arrays. On TensorFlow a step is one call of a graph,
    whatever the optimizer.
    """
    averages = {"use_ema": True, "ema_momentum": 0.5}
    if keras.backend.backend() == "tensorflow":  # Where AdamW takes seconds to trace.
        return keras.optimizers.SGD(0.5, momentum=0.5, **averages)
    return bert_keras.AdamW(1e-2, **averages)


class Run:
    """A training run that can be begun again, and the weights after each of its steps."""

    def __init__(self):
        # Without dropout, so that the same steps make the same weights.
        task = self.task = tiny_classifier(tiny_backbone(dropout=0.0), dropout=0.0)
        task.compile(optimizer())
        task.optimizer.build(task.trainable_variables)
        # Batches of one shape and structure, so that nothing is compiled anew.
        ids = np.random.default_rng(0).integers(5, 20, (4 * NUM_STEPS, 6)).astype("int32")
        self.inputs = {"token_ids": ids}
        self.data = self.inputs, np.arange(len(ids)) % 2, np.ones(len(ids), "float32")
        self.variables = [*task.variables, *task.optimizer.variables]
        self.start = self.values()
        self.steps = [self.start]
        keep = keras.callbacks.LambdaCallback(on_train_batch_end=self._keep)
        keep.set_model(task)
        self.fit(callbacks=[keep])
        self.end = self.values()

    def _keep(self, batch, logs):
        self.task.settle()
        self.steps.append(self.values())

    def values(self):
        return [np.array(keras.ops.convert_to_numpy(variable)) for variable in self.variables]

    def rows(self, number):
        """Returns inputs, labels and weights of one batch."""
        return keras.tree.map_structure(lambda x: x[4 * number : 4 * number + 4], self.data)

    def fit(self, **options):
        options |= {"validation_data": self.rows(0), "shuffle": False, "epochs": 1}
        self.task.fit(*self.data[:2], 4, sample_weight=self.data[2], verbose=0, **options)

    def evaluate(self, **options):
        self.task.evaluate(*self.data[:2], 4, 0, self.data[2], **options)

    def predict(self):
        return self.task.predict(self.inputs, batch_size=4, verbose=0)

    def begin_again(self, values=None):
        for variable, value in zip(self.variables, values or self.start, strict=True):
            variable.assign(value)

    def check(self, is_at_start=False):
        """Raises unless all values are those after one whole step, and of use."""
        values = self.values()
        expected = [self.start] if is_at_start else [*self.steps, self.end]
        assert any(is_equal(values, step) for step in expected), "Half a step is left."
        assert np.isfinite(self.predict()).all()

    def check_saved(self, folder):
        """Raises unless a file of the task gives the same answers."""
        self.task.save(folder / "task.keras")
        again = keras.models.load_model(folder / "task.keras")
        again.run_eagerly = keras.backend.backend() == "tensorflow"  # Tracing takes longer.
        answers = again.predict(self.inputs, batch_size=4, verbose=0)
        np.testing.assert_array_equal(answers, self.predict())


@pytest.fixture(scope="module")
def run():
    """One for all tests, which begin it again: its steps are compiled once."""
    return Run()


def is_equal(values, others):
    """Whether all values are the same; a step moves them by a hundredth."""
    return all(np.allclose(a, b, atol=1e-6) for a, b in zip(values, others, strict=True))


def interrupted(function, seconds):
    """Calls a function and interrupts it, as Ctrl-C does, once so many seconds are over.

    Returns:
        Whether it was interrupted before its end.
    """
    is_done, timer = False, threading.Timer(seconds, _thread.interrupt_main)
    try:
        timer.start()
        function()
        is_done = True
        timer.join()
        time.sleep(0.1)  # The signal comes here at the latest, unless NumPy swallowed it.
    except (KeyboardInterrupt, AssertionError, SystemError):  # TensorFlow makes it the other two.
        return not is_done
    return False


def seconds_of(function):
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def check_interrupts(run, method):
    function = getattr(run, method)
    seconds_of(function)
    moments, duration, tries, count = random.Random(0), 0, 0, 0
    while count < INTERRUPTS:
        if tries % 20 == 0:  # Other programs make it slower or faster.
            run.begin_again()
            duration = seconds_of(function)
        run.begin_again()
        count += interrupted(function, moments.uniform(0, duration))
        tries += 1
        run.check(is_at_start=method != "fit")
    print(f"{method}: {count} of {tries} calls were interrupted")


def test_an_interrupt_at_any_moment_leaves_the_weights_of_a_whole_step(run):
    for method in ("predict", "evaluate", "fit"):
        check_interrupts(run, method)
    run.begin_again()
    run.fit()
    assert is_equal(run.values(), run.end)


class Failing(Batches):
    """The batches of a run, of which the one of this number cannot be read."""

    def __init__(self, run, number):
        super().__init__([run.rows(index) for index in range(NUM_STEPS)])
        self.number = number

    def __getitem__(self, index):
        if index == self.number:
            raise OSError("the disk is gone")
        return super().__getitem__(index)


def failing_callback(event, number):
    def fail(batch, logs=None):
        if batch == number:
            raise OSError("the disk is full")

    return {"callbacks": [keras.callbacks.LambdaCallback(**{event: fail})]}


# What raises the exception; and the number of steps done by then, `None` for any.
EXCEPTIONS = {
    "evaluate, data": (lambda r, n: r.task.evaluate(Failing(r, n), verbose=0), 0),
    "predict, data": (lambda r, n: r.task.predict(Failing(r, n), verbose=0), 0),
    "predict, Keras's loop": (lambda r, n: r.task.predict(Failing(r, n), steps=NUM_STEPS), 0),
    "fit, data": (lambda r, n: r.task.fit(Failing(r, n), shuffle=False, verbose=0), None),
    "evaluate": (lambda r, n: r.evaluate(**failing_callback("on_test_batch_begin", n)), 0),
    "fit, before a step": (lambda r, n: r.fit(**failing_callback("on_train_batch_begin", n)), "n"),
    "fit, after a step": (lambda r, n: r.fit(**failing_callback("on_train_batch_end", n)), "n + 1"),
}


def test_an_exception_leaves_the_weights_of_a_whole_step(run, tmp_path):
    for name, number in itertools.product(EXCEPTIONS, (0, 3)):
        call, done = EXCEPTIONS[name]
        done = {"n": number, "n + 1": number + 1}.get(done, done)
        run.begin_again()
        with pytest.raises(Exception, match="the disk is"):
            call(run, number)
        run.check(is_at_start=done == 0)
        if done is not None:
            assert is_equal(run.values(), run.steps[done]), (name, number)
    run.check_saved(tmp_path)


def test_a_callback_may_predict_and_evaluate_between_two_steps(run):
    answers = []

    def ask(batch, logs):
        # Not through the callback's own model, for which Keras sees to that.
        answers.append(run.predict())
        run.evaluate()

    run.begin_again()
    run.fit(callbacks=[keras.callbacks.LambdaCallback(on_train_batch_end=ask)])
    assert is_equal(run.values(), run.end)
    for values, answer in zip(run.steps[1:], answers, strict=True):
        run.begin_again(values)
        np.testing.assert_allclose(run.predict(), answer, atol=1e-6)


def test_one_batch_at_a_time_may_be_interrupted_too(run):
    task = run.task
    for method, steps in ((task.train_on_batch, run.steps[:2]), (task.test_on_batch, [run.start])):
        function = functools.partial(method, *run.rows(0))
        run.begin_again()
        duration = seconds_of(function)
        for share in (0.2, 0.5, 0.8):
            run.begin_again()
            interrupted(function, share * duration)
            assert any(is_equal(run.values(), step) for step in steps)


def test_jax_keeps_its_programs_unless_the_user_has_said_where(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    folder = tmp_path / ".cache" / "bert_keras" / "jax"
    if keras.backend.backend() != "jax":
        keep_compiled_programs()
        assert not folder.exists()
        return
    import jax

    names = ("compilation_cache_dir", "compilation_cache_max_size")
    names = [f"jax_{name}" for name in (*names, "persistent_cache_min_compile_time_secs")]
    before = {name: getattr(jax.config, name) for name in names}
    try:
        for said in ("said", None):
            jax.config.update("jax_compilation_cache_dir", said)
            keep_compiled_programs()
            assert jax.config.jax_compilation_cache_dir == (said or str(folder))
    finally:
        for name, value in before.items():
            jax.config.update(name, value)
