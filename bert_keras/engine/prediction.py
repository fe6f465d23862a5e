"""Prediction through one compiled function that donates no buffers.

Why: on JAX Keras's own `predict` hands the weights to a step and takes them back. In between the
variables hold deleted arrays: two threads that predict at once, or an exception, lose them. Here
weights are an argument like the inputs (JAX) or only read (TensorFlow, PyTorch). So any number of
threads may predict at once, and an exception in one of them leaves no trace.

Remove when `test_an_exception_in_a_loop_of_keras_loses_weights` fails.
"""

import functools
import sys
import threading

import keras

from bert_keras import distribution
from bert_keras.checks import check_choice, check_int
from bert_keras.engine import variable_paths
from bert_keras.engine.fast_layer_call import outer_call
from bert_keras.engine.interrupts import defer_signals
from bert_keras.engine.keras_internals import data_adapters, takes_training, values
from bert_keras.engine.kernels import input_tensors
from bert_keras.engine.train_step import is_distributed, runs_cuda_graphs

_lock = threading.Lock()


def predicted(model, batches):
    """Yields a model's outputs for batches as NumPy arrays.

    A batch is sent to the device before the outputs of the previous one are waited for. Signals
    wait during a call: they would leave Keras's record of the current call behind, and NumPy may
    swallow the exception that a handler raises.

    Args:
        model: a `keras.Model` whose variables exist.
        batches: iterable of dicts of arrays, or of tuples that begin with them.
    """
    predict, last = _function_of(model), None
    for batch in batches:
        with defer_signals():
            outputs = predict(inputs_of(batch))
        if last is not None:
            yield _as_numpy(last)
        last = outputs
    if last is not None:
        yield _as_numpy(last)


def _function_of(model):
    """Returns a model in inference mode, compiled as the model is; anew if the model has changed.

    It is a function from a dict of arrays to outputs.
    """
    if keras.backend.backend() == "torch" and model.training:
        model.eval()  # As in Keras's `predict`.
    shared = keras.distribution.distribution()
    settings = variable_paths.version, model.run_eagerly, model.jit_compile, shared
    with _lock:
        compiled_for, function = model._prediction or (None, None)
        if compiled_for != settings:
            options = {"training": False} if takes_training(model) else {}
            function = _FUNCTIONS[keras.backend.backend()](model, options)
            model._prediction = settings, function
        return function


def _jax_function(model, options):
    import jax

    from bert_keras.engine.jax_compilation_cache import keep_compiled_programs

    is_shared = keras.distribution.distribution() is not None
    is_eager = (model.run_eagerly or not model.jit_compile) and not is_shared
    keep_compiled_programs()
    variables = model.variables

    def computed(weights, inputs):
        with keras.StatelessScope(zip(variables, weights, strict=True)):
            return model(inputs, **options)

    compiled = distribution.over_devices(computed) if is_shared else jax.jit(computed)

    def predict(inputs):
        model.settle()  # A callback of `fit` may predict.
        if is_eager:
            return model(input_tensors(inputs), **options)
        return compiled(values(variables), inputs)

    return predict


def _tensorflow_function(model, options):
    import tensorflow as tf

    call = functools.partial(model, **options)
    if not model.run_eagerly:
        call = tf.function(
            call, reduce_retracing=True, jit_compile=model.jit_compile, autograph=False
        )
    return lambda inputs: call(input_tensors(inputs))


def _torch_function(model, options):
    import torch

    is_compiled = model.jit_compile and not model.run_eagerly
    call = functools.partial(torch.compile(model) if is_compiled else model, **options)
    if model.run_eagerly or not runs_cuda_graphs():
        adds_losses = None

        @torch.inference_mode()
        def predict(inputs):
            nonlocal adds_losses
            tensors = input_tensors(inputs, is_compiled)
            if adds_losses is False:
                with outer_call(training=False):
                    return call(tensors)
            outputs = call(tensors)
            # The context of a call would make `torch.compile` compile again.
            adds_losses = is_compiled or bool(model.losses)
            return outputs

        return predict
    from bert_keras.engine import cuda_graphs

    graphed = cuda_graphs.GraphedStep(call, most_graphs=cuda_graphs.MOST_PREDICTIONS)
    return torch.inference_mode()(graphed.__call__)


_FUNCTIONS = {"jax": _jax_function, "tensorflow": _tensorflow_function, "torch": _torch_function}


_as_numpy = defer_signals()(functools.partial(keras.tree.map_structure, keras.ops.convert_to_numpy))


def resolve_verbose(verbose):
    """Returns `verbose` with `"auto"` resolved: a bar if the output is a terminal, else a line.

    Of several processes only the first one prints.

    Raises:
        ValueError: it is none of `"auto"`, 0, 1 and 2.
    """
    if verbose not in (choices := ("auto", 0, 1, 2)):
        check_choice("verbose", verbose, choices)
    if verbose == "auto" and is_distributed() and distribution.process()[0]:
        return 0
    can_move = sys.stdout.isatty() or "ipykernel" in sys.modules
    return (1 if can_move else 2) if verbose == "auto" else verbose


def with_progress(outputs, batches, verbose):
    """Yields `outputs`, one for each of `batches`, with Keras's progress bar."""
    num_batches = batches.num_batches if hasattr(batches, "num_batches") else len(batches)
    bar = keras.utils.Progbar(num_batches, verbose=resolve_verbose(verbose), unit_name="step")
    done = 0
    for done, output in enumerate(outputs, start=1):
        bar.update(done, finalize=False)
        yield output
    bar.target = done
    bar.update(done, finalize=True)


def batches_of(x, batch_size, check):
    """Returns batches to predict.

    Args:
        x: dict of arrays, or a dataset that `keras.Model.predict` takes and that yields inputs, or
            tuples that begin with them.
        batch_size: int, rows in a batch of arrays, or `None` for Keras's 32.
        check: function of a dict of inputs that raises if they do not fit. It is called for every
            batch, except those of a dataset whose `is_checked` or `checks_batches` is true.

    Returns:
        An iterable of dicts of arrays.
    """
    if isinstance(x, dict):
        x = {name: keras.ops.convert_to_numpy(value) for name, value in x.items()}
        check(x)
        size = 32 if batch_size is None else check_int("batch_size", batch_size)
        starts = range(0, len(next(iter(x.values()))), size)
        return [{name: v[start : start + size] for name, v in x.items()} for start in starts]
    if getattr(x, "is_checked", False):
        return x
    return _CheckedBatches(x, batch_size, check)


class _CheckedBatches:
    """Batches of the user's dataset as arrays, each checked."""

    def __init__(self, x, batch_size, check):
        self._adapter = data_adapters.get_data_adapter(x, batch_size=batch_size)
        self._check = None if getattr(x, "checks_batches", False) else check
        self.num_batches = self._adapter.num_batches

    def __iter__(self):
        adapter = self._adapter
        # Keras's own iterator over a `DataLoader` of dicts yields their keys.
        is_loader = isinstance(adapter, data_adapters.TorchDataLoaderAdapter)
        batches = adapter.get_torch_dataloader() if is_loader else adapter.get_numpy_iterator()
        adapter.on_epoch_begin()
        try:
            for batch in batches:
                inputs = keras.tree.map_structure(keras.ops.convert_to_numpy, inputs_of(batch))
                if self._check is not None:
                    self._check(inputs)
                yield inputs
        finally:
            self._adapter.on_epoch_end()


def inputs_of(batch):
    """Returns the inputs of a batch: the batch itself, or the first item of a tuple."""
    return batch[0] if isinstance(batch, (tuple, list)) else batch
