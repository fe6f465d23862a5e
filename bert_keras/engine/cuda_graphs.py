"""Steps and predictions on an NVIDIA GPU with PyTorch, launched as CUDA graphs.

Why: a training step of BERT-base has about 2,000 operations. Python takes longer to launch them one
by one than the GPU takes to compute them (docs/en/guides/gpu.md has the times). A CUDA graph
launches all of them at once. As in the compiled steps of JAX and TensorFlow, the Python code of a
step then runs once for each shape of its batches.

Remove when `test_keras_s_steps_on_pytorch_run_their_python_code_for_each_batch` fails.
"""

import contextlib
import gc
import threading
import warnings
from collections.abc import Callable, Hashable
from typing import Any
from unittest import mock

import keras
import numpy as np

from bert_keras.engine import kernels

if keras.backend.backend() == "torch":
    import torch

# Graphs that one step keeps; each takes some megabytes, and its outputs.
MOST_GRAPHS = 64
# Graphs that one model's predictions keep; their outputs may be large.
MOST_PREDICTIONS = 16
# How often a step runs on batches of one shape before it is captured.
WARM_UPS = 2
# Steps that may wait on the GPU.
MOST_QUEUED = 4
# Longer arrays than this are data, not constants of a loss or a metric.
MOST_NUMBERS = 16
# Parts of two warnings of PyTorch: that an operation waits, and that such operations are reported.
_WAITS = "called a synchronizing CUDA operation"
_IS_CHECKING = "Synchronization debug mode"
# Trials and captures change settings of the whole process.
_lock = threading.RLock()


class GraphedStep:
    """A step that is captured as a CUDA graph for each shape of its batches, and then replayed.

    The first batches of each shape run the step itself. A step that waits for the GPU, for example
    to read a number that decides what it does next, cannot be captured. It always runs itself, and
    a warning says why. A thread captures only what it has run itself before.

    Args:
        step: function of a batch, a structure of tensors and `None`s, that returns a structure of
            tensors.
        state: function without arguments that returns what else the step depends on. A graph is
            replayed only while that is the same as when the graph was captured.
        finish: function that is applied to each result, on the stream of the step.
        most_graphs: int, how many graphs are kept.
        capture: object with the methods of `_Capture`.

    Attributes:
        refusal: str, why the step cannot be captured, or `None`.
    """

    def __init__(
        self,
        step: Callable[[Any], Any],
        state: Callable[[], Hashable] = tuple,
        finish: Callable[[Any], Any] = lambda outputs: outputs,
        most_graphs: int | None = None,
        capture: Any = None,
    ) -> None:
        self._step, self._state, self._finish = step, state, finish
        self._capture, self._most_graphs = capture or _Capture(), most_graphs or MOST_GRAPHS
        self._runs, self._replays, self._last_state = {}, {}, None
        self._thread_state, self._lock = threading.local(), threading.Lock()
        self.refusal: str | None = None

    def __call__(self, batch: Any) -> Any:
        # Replays of one graph share their inputs and outputs.
        with self._lock, self._capture.stream():
            return self._finish(self._run(keras.tree.map_structure(on_device, batch)))

    def _run(self, batch):
        state = self._state()
        if state != self._last_state:  # Graphs of earlier states are not used again.
            self._runs, self._replays, self._last_state = {}, {}, state
        key = _shapes(batch)
        if key in self._replays:
            return self._replays[key](batch)
        runs = self._runs[key] = self._runs.get(key, 0) + 1
        # The first operations of a thread make handles of cuBLAS, which no capture allows.
        is_new_thread = not getattr(self._thread_state, "has_run", False)
        self._thread_state.has_run = True
        is_full = len(self._replays) >= self._most_graphs
        if self.refusal or runs < WARM_UPS or is_full or (is_new_thread and runs > WARM_UPS):
            return self._step(batch)
        if runs == WARM_UPS:
            outputs, self.refusal = self._capture.trial(self._step, batch)
        else:
            try:
                self._replays[key] = self._capture.captured(self._step, batch)
            except RuntimeError as error:
                self.refusal = str(error).partition("\n")[0]
            outputs = self._step(batch) if self.refusal else self._replays[key](batch)
        if self.refusal:
            warnings.warn(
                "A step or a prediction cannot be captured as a CUDA graph, so its operations are "
                f"launched one by one, which takes longer. The reason: {self.refusal}",
                stacklevel=2,
            )
        return outputs


def _shapes(batch):
    """Returns names, shapes and dtypes of a batch, a tuple."""
    return tuple(
        (path, None if x is None else (tuple(x.shape), x.dtype))
        for path, x in keras.tree.flatten_with_path(batch)
    )


class _Capture:
    """Tries and captures steps. All graphs share one pool of memory, since they run in turn."""

    def __init__(self):
        self._stream, self._pool = (
            torch.cuda.Stream(kernels.torch_device()),
            torch.cuda.graph_pool_handle(),
        )
        self._queued = []

    @contextlib.contextmanager
    def stream(self):
        """A context in which operations are launched on the stream of the captures.

        Steps that are not captured need it too: PyTorch adds up the gradients of a weight on the
        stream that computed the first of them.
        """
        callers = torch.cuda.current_stream(self._stream.device)
        self._stream.wait_stream(callers)
        try:
            with torch.cuda.stream(self._stream):
                yield
        finally:
            callers.wait_stream(self._stream)

    def trial(self, step, batch):
        """Returns the result of a step, and why the step cannot be captured, or `None`."""
        thread, waits = threading.get_ident(), []
        with _lock, warnings.catch_warnings(), numbers_on_the_device():
            mode, show = torch.cuda.get_sync_debug_mode(), warnings.showwarning
            for text in (_WAITS, _IS_CHECKING):
                warnings.filterwarnings("always", f".*{text}")

            def record_wait(message, category, filename, lineno, *args, **kwargs):
                if _WAITS in str(message):
                    # Another thread may wait: Keras reads the logs of earlier steps in one.
                    if threading.get_ident() == thread:
                        waits.append(f"{filename}, line {lineno}, waits for the GPU.")
                elif _IS_CHECKING not in str(message):
                    show(message, category, filename, lineno, *args, **kwargs)

            warnings.showwarning = record_wait
            torch.cuda.set_sync_debug_mode("warn")
            try:
                outputs = step(batch)
            finally:
                torch.cuda.set_sync_debug_mode(mode)
        return outputs, waits[0] if waits else None

    def captured(self, step, batch):
        """Returns a function like `step`, for batches of the same shapes."""
        inputs = keras.tree.map_structure(lambda x: x if x is None else x.clone(), batch)
        graph = torch.cuda.CUDAGraph()
        generator = torch.cuda.default_generators[self._stream.device_index]
        state = generator.clone_state()
        if torch.is_grad_enabled():
            gc.collect()  # Gradients of earlier steps may be tied to another stream.
        try:
            with (
                _lock,
                numbers_on_the_device(),
                torch.cuda.graph(graph, self._pool, self._stream, "thread_local"),
            ):
                outputs = step(inputs)
        except BaseException:
            generator.graphsafe_set_state(state)  # It would stay in the state of a capture.
            raise

        def replay(batch):
            for place, x in zip(keras.tree.flatten(inputs), keras.tree.flatten(batch), strict=True):
                if x is not None:
                    place.copy_(x)
            graph.replay()
            self._wait_for_earlier()
            return keras.tree.map_structure(
                lambda x: x.clone() if torch.is_tensor(x) else x, outputs
            )

        return replay

    def _wait_for_earlier(self):
        """Waits while many steps are queued: progress bars and Ctrl-C must not run far ahead."""
        self._queued.append(torch.cuda.Event())
        self._queued[-1].record()
        if len(self._queued) > MOST_QUEUED:
            self._queued.pop(0).synchronize()


class AsyncScalar:
    """A scalar that is being copied to the host; `float` waits until it is there.

    Keras reads the logs of each step in another thread. If these were tensors on the GPU, their
    copies would be launched between two steps, and the GPU would wait for that thread.

    Args:
        number: scalar tensor on a GPU.
    """

    def __init__(self, number: Any) -> None:
        self._number = torch.empty((), dtype=number.dtype, device="cpu", pin_memory=True)
        self._number.copy_(number.detach(), non_blocking=True)
        self._is_there = torch.cuda.Event()
        self._is_there.record()

    def __float__(self) -> float:
        self._is_there.synchronize()
        return self._number.item()


def async_logs(logs: dict) -> dict:
    """Returns logs whose scalars are on their way from a GPU to the host."""
    return {
        name: AsyncScalar(x) if torch.is_tensor(x) and x.is_cuda and x.ndim == 0 else x
        for name, x in logs.items()
    }


def on_device(x: Any) -> Any:
    """Returns an array as a tensor on the device, without waiting for a GPU; `None` stays."""
    if isinstance(x, np.ndarray) and x.dtype.kind in "bif":
        x = torch.from_numpy(np.ascontiguousarray(x))
    if isinstance(x, torch.Tensor) and x.is_cpu and kernels.has_accelerator():
        return x.pin_memory().to(kernels.torch_device(), non_blocking=True)
    return x if x is None else keras.ops.convert_to_tensor(x)


@contextlib.contextmanager
def numbers_on_the_device():
    """A context in which tensors of Python numbers are filled in on the GPU.

    Keras converts them by `torch.as_tensor`, which makes them on the CPU, copies them and waits. A
    CUDA graph cannot do that.
    """
    as_tensor = torch.as_tensor

    def as_filled_tensor(data, dtype=None, device=None):
        is_sent = torch.device(device or "cpu").type != "cpu"
        on_cpu = as_tensor(data, dtype=dtype) if is_sent else None
        if on_cpu is None or not on_cpu.is_cpu or on_cpu.numel() > MOST_NUMBERS:
            return as_tensor(data, dtype=dtype, device=device)
        tensor = torch.empty(on_cpu.shape, dtype=on_cpu.dtype, device=device)
        for place, number in zip(tensor.view(-1), on_cpu.reshape(-1).tolist(), strict=True):
            place.fill_(number)
        return tensor

    with mock.patch.object(torch, "as_tensor", as_filled_tensor):
        yield
