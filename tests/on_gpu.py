"""What only a GPU can show: not part of `make test`, but run by `make test-gpu`."""

import concurrent.futures
import time
import warnings

import keras
import numpy as np
import pytest
from checks import cases

import bert_keras
from bert_keras.engine import kernels
from bert_keras.layers.dropout import Dropout
from bert_keras.training import AdamW, Lamb

pytestmark = pytest.mark.once

generator = np.random.default_rng(0)
IDS = generator.integers(1, 999, (96, 32)).astype("int32")
LABELS = generator.integers(0, 2, 96).astype("int32")
PADDED = np.arange(32) < generator.integers(8, 33, (96, 1))
INPUTS = {"token_ids": IDS, "padding_mask": PADDED.astype("int32")}
BATCH = {"token_ids": IDS[:8]}, LABELS[:8]


@pytest.fixture(autouse=True)
def a_gpu():
    assert kernels.has_accelerator(), "Run this on a machine with a GPU."


@pytest.fixture
def captures(noted):
    """What captures, once for each capture of a test."""
    from bert_keras.engine import cuda_graphs

    return noted(cuda_graphs._Capture, "captured")


def make_task(dropout=0.0):
    keras.utils.set_random_seed(3)
    sizes = {"vocabulary_size": 1000, "num_layers": 2, "num_heads": 2}
    sizes |= {"hidden_dim": 64, "intermediate_dim": 128}
    backbone = bert_keras.BertBackbone(**sizes, dropout=dropout, attention_dropout=dropout)
    return bert_keras.TextClassifier(backbone, num_classes=2, dropout=dropout)


def losses_of_steps(task, count):
    return [float(task.train_on_batch(*BATCH)[0]) for _ in range(count)]


def trained(optimizer, **options):
    """Returns the history, and the weights, of three epochs; no step may refuse a capture."""
    task = make_task()
    task.compile(optimizer, metrics=["accuracy"], **options)
    fitting = {"epochs": 3, "shuffle": False, "validation_data": (INPUTS, LABELS)}
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message=".*CUDA graph.*")
        history = task.fit(INPUTS, LABELS, batch_size=8, verbose=0, **fitting)
    return history.history, task.get_weights()


@cases(
    lambda: AdamW(1e-3),
    lambda: AdamW(keras.optimizers.schedules.CosineDecay(1e-3, 100)),
    lambda: AdamW(1e-3, use_ema=True),
    lambda: Lamb(1e-3),
    lambda: keras.optimizers.AdamW(1e-3),
)
@pytest.mark.parametrize(("jit_compile", "bound"), [(False, 1e-7), (True, 1e-6)])
def test_captured_steps_compute_what_eager_steps_compute(
    captures, jit_compile, bound, make_optimizer
):
    expected, expected_weights = trained(make_optimizer(), run_eagerly=True)
    assert not captures
    history, weights = trained(make_optimizer(), jit_compile=jit_compile)
    assert len(captures) >= 2  # Of `fit` and of its validation.
    for name, values in expected.items():
        np.testing.assert_allclose(history[name], values, atol=bound, err_msg=name)
    for weight, value in zip(weights, expected_weights, strict=True):
        np.testing.assert_allclose(weight, value, atol=bound)


def test_each_replay_draws_other_dropout_masks():
    task = make_task(dropout=0.1)
    task.compile(AdamW(0.0))
    losses = set()
    for _ in range(8):
        losses.update(losses_of_steps(task, 1))
        task.reset_metrics()
    assert len(losses) == 8


def test_a_wait_of_another_thread_does_not_prevent_a_capture(captures):
    import torch

    task, number = make_task(), torch.ones((), device="cuda")
    task.compile(AdamW(1e-3))
    step, goes_on = task.train_step, []

    def waits():
        while not goes_on:
            number.item()

    def slow_step(data):
        time.sleep(0.1)
        return step(data)

    task.train_step = slow_step
    with concurrent.futures.ThreadPoolExecutor() as threads, warnings.catch_warnings():
        warnings.filterwarnings("error", message=".*CUDA graph.*")
        threads.submit(waits)
        try:
            losses = losses_of_steps(task, 6)
        finally:
            goes_on.append(False)
    assert captures
    assert losses[-1] < losses[0]


@pytest.mark.parametrize("accumulates", [False, True])
def test_a_step_that_cannot_be_captured_trains_on(accumulates):
    import torch

    task = make_task(dropout=0.1)
    task.compile(AdamW(1e-3, gradient_accumulation_steps=2 if accumulates else None))
    # Gradients of this output are tied to the default stream.
    output = None if accumulates else task({"token_ids": torch.tensor(IDS[:8])}, training=True)
    with pytest.warns(UserWarning, match="launched one by one"):
        losses = losses_of_steps(task, 12)
    assert losses[-1] < losses[0]
    del output


def test_a_captured_step_never_waits_for_the_gpu():
    import torch

    task = make_task(dropout=0.1)
    task.compile(AdamW(1e-3), metrics=["accuracy"])
    task.fit(INPUTS, LABELS, batch_size=8, verbose=0)
    batch = ({name: array[:8] for name, array in INPUTS.items()}, LABELS[:8])
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message=".*called a synchronizing.*")
        torch.cuda.set_sync_debug_mode("warn")
        task.train_function([batch])
        torch.cuda.set_sync_debug_mode("default")


@pytest.mark.parametrize("jit_compile", [False, True])
def test_captured_predictions_are_those_of_eager_calls(captures, jit_compile):
    eager, task = make_task(), make_task()
    eager.compile(AdamW(), run_eagerly=True)
    task.compile(AdamW(), jit_compile=jit_compile)
    batches = [{n: x[:rows] for n, x in INPUTS.items()} for rows in (1, 8)]
    expected = [eager.predict(batch, verbose=0) for batch in batches]
    assert not captures
    with concurrent.futures.ThreadPoolExecutor(4) as threads:
        found = list(threads.map(lambda i: task.predict(batches[i % 2], verbose=0), range(24)))
    assert len(captures) == 2
    for i, logits in enumerate(found):
        np.testing.assert_allclose(logits, expected[i % 2], atol=1e-6)
    weight = task.weights[-1]
    weight.assign(weight + 1)
    np.testing.assert_allclose(task.predict(batches[1], verbose=0), expected[1] + 1, atol=1e-6)


def test_callbacks_see_the_logs_of_eager_steps():
    def logs_of(**options):
        task, logs = make_task(), []
        task.compile(AdamW(1e-3), metrics=["accuracy"], **options)
        seen = keras.callbacks.LambdaCallback(on_train_batch_end=lambda _, log: logs.append(log))
        task.fit(INPUTS, LABELS, batch_size=8, callbacks=[seen], shuffle=False, verbose=0)
        return [[log["loss"], log["accuracy"]] for log in logs]

    np.testing.assert_allclose(logs_of(), logs_of(run_eagerly=True), atol=1e-6)


@pytest.mark.each_backend
def test_dropout_keeps_the_share_that_it_should():
    layer = Dropout(0.25)
    outputs = keras.ops.convert_to_numpy(layer(keras.ops.ones((200, 300)), training=True))
    assert abs((outputs == 0).mean() - 0.25) < 0.01
    np.testing.assert_allclose(outputs[outputs != 0], 1 / 0.75, rtol=1e-3)
