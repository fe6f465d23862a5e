"""Steps as CUDA graphs: when they are captured, and what they compute.

Without a GPU, a stand-in captures a step by keeping the function. `make test-gpu` captures graphs.
"""

import contextlib
from concurrent import futures

import keras
import numpy as np
import pytest
from checks import cases
from tiny import ready_inputs, tiny_classifier

from bert_keras.engine import cuda_graphs, kernels, prediction, train_step
from bert_keras.training import AdamW

pytestmark = pytest.mark.once


class Capture:
    """Counts what is captured. `wait` and `error` are reasons to refuse."""

    stream = staticmethod(contextlib.nullcontext)

    def __init__(self, wait=None, error=None):
        self.wait, self.error, self.num_captures, self.num_replays = wait, error, 0, 0

    def trial(self, step, batch):
        return step(batch), self.wait

    def captured(self, step, batch):
        if self.error:
            raise RuntimeError(self.error)
        self.num_captures += 1

        def replay(batch):
            self.num_replays += 1
            return step(batch)

        return replay


def total(batch):
    return {"total": sum(x.sum() for x in keras.tree.flatten(batch) if x is not None)}


def test_a_step_is_captured_for_each_shape_and_each_state():
    capture, state = Capture(), []
    step = cuda_graphs.GraphedStep(total, lambda: tuple(state), capture=capture)
    for _ in range(4):
        for shape in ((2, 3), (2, 4)):
            assert float(step([{"x": np.ones(shape)}, None])["total"]) == np.prod(shape)
    assert (capture.num_captures, capture.num_replays) == (2, 4)
    state.append("frozen")
    for _ in range(3):
        step([{"x": np.ones((2, 3))}, None])
    assert (capture.num_captures, capture.num_replays) == (3, 5)
    step([{"y": np.ones((2, 3))}, None])  # Another name.
    step([{"x": np.ones((2, 3), "int32")}, None])  # Another dtype.
    assert (capture.num_captures, capture.num_replays) == (3, 5)


def test_a_thread_captures_nothing_before_it_has_run_the_step():
    capture = Capture()
    step = cuda_graphs.GraphedStep(total, capture=capture)
    for _ in range(2):
        step([np.ones(3)])
    for expected in (0, 1):
        with futures.ThreadPoolExecutor(1) as thread:
            for _ in range(1 + expected):
                thread.submit(step, [np.ones(3)]).result()
        assert capture.num_captures == expected
    step([np.ones(3)])
    assert (capture.num_captures, capture.num_replays) == (1, 2)


def test_the_number_of_graphs_is_limited(monkeypatch):
    monkeypatch.setattr(cuda_graphs, "MOST_GRAPHS", 2)
    capture = Capture()
    step = cuda_graphs.GraphedStep(total, capture=capture)
    for length in range(1, 6):
        for _ in range(4):
            assert float(step([np.ones(length)])["total"]) == length
    assert capture.num_captures == 2


@cases(
    (Capture(wait="losses.py, line 3, waits for the GPU."), "losses.py, line 3"),
    (Capture(error="CUDA error: invalidated\nSearch for it"), "CUDA error: invalidated"),
)
def test_a_step_that_cannot_be_captured_runs_itself_and_says_why_once(capture, reason):
    step = cuda_graphs.GraphedStep(total, capture=capture)
    with pytest.warns(UserWarning, match="launched one by one") as caught:
        results = [float(step([np.ones(5)])["total"]) for _ in range(5)]
    assert results == [5.0] * 5
    assert [str(w.message).partition("The reason: ")[2] for w in caught] == [step.refusal]
    assert step.refusal.startswith(reason)
    assert "\n" not in step.refusal


@pytest.mark.parametrize("value", [3, 0.5, True, (8,), (), np.arange(4), np.ones((2, 2), "int8")])
def test_numbers_that_are_filled_in_have_the_dtype_and_shape_that_pytorch_gives_them(value):
    import torch

    sent = torch.as_tensor(value)
    with cuda_graphs.numbers_on_the_device():
        filled = torch.as_tensor(value, device="meta")
        assert torch.equal(torch.as_tensor(value), sent)
        assert torch.as_tensor(sent) is sent
    assert (filled.shape, filled.dtype, filled.device.type) == (sent.shape, sent.dtype, "meta")


@pytest.fixture
def as_on_a_gpu(monkeypatch):
    """`fit` as on a GPU: steps are captured, by the stand-in, and batches are sent to it."""
    import torch

    capture = Capture()
    monkeypatch.setattr(kernels, "has_accelerator", lambda: True)
    for module in (train_step, prediction):
        monkeypatch.setattr(module, "runs_cuda_graphs", lambda: True)
    monkeypatch.setattr(cuda_graphs, "_Capture", lambda: capture)
    monkeypatch.setattr(torch.Tensor, "pin_memory", lambda tensor: tensor)
    return capture


def trained(**options):
    keras.utils.set_random_seed(1)
    task = tiny_classifier()
    task.compile(AdamW(1e-2), **options)
    generator = np.random.default_rng(0)
    x, y = ready_inputs(12, 6, least=6), generator.integers(0, 2, 12)
    x["padding_mask"][:6, 4:] = 0
    history = task.fit(x, y, batch_size=3, epochs=3, shuffle=False, verbose=0).history
    return task, history, task.evaluate(x, y, batch_size=3, verbose=0)


def test_captured_steps_and_predictions_give_the_results_of_eager_ones(as_on_a_gpu):
    x = {"token_ids": np.arange(1, 13, dtype="int32").reshape(2, 6)}
    eager, expected, expected_loss = trained(run_eagerly=True)
    outputs = eager.predict(x, verbose=0)
    assert as_on_a_gpu.num_captures == 0
    task, history, loss = trained()
    # Batches with padding and batches without, of `fit` and of `evaluate`.
    assert as_on_a_gpu.num_captures == 2
    assert as_on_a_gpu.num_replays >= 2 * 4
    np.testing.assert_allclose(history["loss"], expected["loss"], rtol=1e-6)
    np.testing.assert_allclose(loss, expected_loss, rtol=1e-6)
    replays = as_on_a_gpu.num_replays
    for _ in range(4):
        np.testing.assert_allclose(task.predict(x, verbose=0), outputs, atol=1e-6)
    assert (as_on_a_gpu.num_captures, as_on_a_gpu.num_replays) == (3, replays + 2)
