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

import contextlib
import contextvars

from bert_keras.engine.interrupts import defer_signals
from bert_keras.engine.keras_internals import data_adapters

# What Python raised while it made batches for the present call, a list, or `None` outside of one.
_failures = contextvars.ContextVar("failures", default=None)
_get_data_adapter = data_adapters.get_data_adapter


@contextlib.contextmanager
def untuned():
    """A context in which Keras's loops on TensorFlow read untuned data.

    A `tf.data.Dataset` stays as it is.

    Raises:
        Exception: the error that Python raised while it made a batch, as on the other backends;
            TensorFlow would raise an error of its graph with that error in the message.
    """
    data_adapters.get_data_adapter, failures = _get_untuned, []
    token = _failures.set(failures)
    try:
        yield
    except Exception as error:
        for failure in failures:
            raise failure from error
        raise
    finally:
        _failures.reset(token)


def _get_untuned(*args, **kwargs):
    adapter, failures = _get_data_adapter(*args, **kwargs), _failures.get()
    if failures is not None and not isinstance(adapter, data_adapters.TFDatasetAdapter):
        _untune(adapter, failures)
    return adapter


def _untune(adapter, failures):
    """Changes a data adapter of Keras, which iterates over Python's batches for `tf.data`."""
    import tensorflow as tf

    for name in ("_get_iterator", "generator", "get_numpy_iterator"):
        if hasattr(adapter, name):
            setattr(adapter, name, _noting(getattr(adapter, name), failures))
    tuned = adapter.get_tf_dataset

    def get_tf_dataset():
        options = tf.data.Options()
        options.autotune.enabled = False
        # TensorFlow traces Python here, and could not trace it again after an interrupt.
        with defer_signals():
            return tuned().with_options(options)

    adapter.get_tf_dataset = get_tf_dataset


def _noting(iterate, failures):
    """Returns a function like `iterate` that also appends what the iteration raises to a list."""

    def noting():
        try:
            yield from iterate()
        except Exception as error:
            failures.append(error)
            raise

    return noting
