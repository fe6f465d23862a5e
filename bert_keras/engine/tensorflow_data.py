"""Feeds Keras's loops on TensorFlow through `tf.data` without autotuning.

Why: Keras reads arrays and `PyDataset`s through `tf.data`, which starts a thread for each iterator
to tune its buffers. The thread sleeps 10 ms, 20 ms, 40 ms, and so on. At the end of an epoch it is
woken and waited for; but it is woken before it can see that it should end (in TensorFlow,
`CancellationManager::StartCancel` runs its callbacks first, and `Model::OptimizeLoop` goes back to
sleep). If it is quick, the epoch lasts until the thread would have woken by itself: up to twice as
long, with the processor idle. Batches from Python leave nothing to tune, so the thread is not
started.

Remove when `test_keras_lets_tensorflow_tune_its_data` fails.
"""

import inspect

from bert_keras.engine.interrupts import defer_signals
from bert_keras.engine.keras_internals import data_adapters


def call_untuned(method, *args, **kwargs):
    """Calls `fit`, `evaluate` or `predict` of a `keras.Model` on TensorFlow, with untuned data.

    Args:
        method: bound method of `keras.Model`.
        *args, **kwargs: its arguments.

    Returns:
        What `method` returns.

    Raises:
        Exception: the error that Python raised while it made a batch, as on the other backends;
            TensorFlow would raise an error of its graph with that error in the message.
    """
    call = inspect.signature(method).bind(*args, **kwargs)
    call.apply_defaults()
    arguments = call.arguments
    if arguments.get("validation_split"):  # Keras splits arrays itself.
        return method(*args, **kwargs)
    validation = arguments.get("validation_data")
    if validation is not None:
        columns = validation if isinstance(validation, (tuple, list)) else (validation,)
        arguments["validation_data"] = untuned(
            *columns,
            batch_size=arguments["validation_batch_size"] or arguments["batch_size"],
            steps=arguments["validation_steps"],
        )
    names = ("y", "sample_weight", "batch_size", "class_weight", "shuffle")
    data = {name: arguments[name] for name in names if name in arguments}
    steps = arguments.get("steps", arguments.get("steps_per_epoch"))
    arguments["x"] = untuned(arguments["x"], steps=steps, **data)
    arguments.update((name, None) for name in data if name != "shuffle")
    adapters = [arguments.get(name) for name in ("x", "validation_data")]
    try:
        return method(*call.args, **call.kwargs)
    except Exception as error:
        for failure in (f for adapter in adapters for f in getattr(adapter, "failures", ())):
            raise failure from error
        raise


def untuned(
    x, y=None, sample_weight=None, batch_size=None, steps=None, shuffle=False, class_weight=None
):
    """Returns data for Keras's `fit`, `evaluate` or `predict` on TensorFlow, as `x` alone.

    Args:
        x: as for `keras.Model.fit`, as the following. A `tf.data.Dataset` stays as it is.
        y, sample_weight, batch_size, shuffle, class_weight: see there.
        steps: int, number of batches, or `None`.

    Returns:
        One of Keras's data adapters, which replaces `x` and all the other arguments.
    """
    import tensorflow as tf

    if isinstance(x, data_adapters.data_adapter.DataAdapter):
        return x
    adapter = data_adapters.get_data_adapter(
        x, y, sample_weight, batch_size, steps, shuffle, class_weight
    )
    if isinstance(adapter, data_adapters.TFDatasetAdapter):
        return adapter
    # Keras iterates over one of these when `tf.data` asks for a batch.
    adapter.failures = []
    for name in ("_get_iterator", "generator", "get_numpy_iterator"):
        if hasattr(adapter, name):
            setattr(adapter, name, _noting(getattr(adapter, name), adapter.failures))
    tuned = adapter.get_tf_dataset

    def get_tf_dataset():
        options = tf.data.Options()
        options.autotune.enabled = False
        # TensorFlow traces Python here, and could not trace it again after an interrupt.
        with defer_signals():
            return tuned().with_options(options)

    adapter.get_tf_dataset = get_tf_dataset
    return adapter


def _noting(iterate, failures):
    """Returns a function like `iterate` that also appends what the iteration raises to a list."""

    def noting():
        try:
            yield from iterate()
        except Exception as error:
            failures.append(error)
            raise

    return noting


def is_data_loader(x):
    """Returns whether `x` is a torch `DataLoader`, without importing PyTorch."""
    return data_adapters.is_torch_dataloader(x)
