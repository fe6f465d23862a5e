"""How data reaches Keras's loops on TensorFlow: through `tf.data` untuned."""

import inspect

import keras

from bert_keras.engine.interrupts import signals_wait


def call_untuned(method, *args, **kwargs):
    """Calls `fit`, `evaluate` or `predict` of a `keras.Model`, on TensorFlow with untuned data.

    Args:
        method: bound method of `keras.Model`.
        *args: its arguments.
        **kwargs: its arguments.

    Returns:
        What `method` returns.

    Raises:
        Exception: what Python raised while it made a batch, as on the other backends: TensorFlow
            would raise an error of its graph with that in its message.
    """
    if keras.backend.backend() != "tensorflow":
        return method(*args, **kwargs)
    call = inspect.signature(method).bind(*args, **kwargs)
    call.apply_defaults()
    given = call.arguments
    if given.get("validation_split"):  # Keras splits arrays itself.
        return method(*args, **kwargs)
    validation = given.get("validation_data")
    if validation is not None:
        columns = validation if isinstance(validation, (tuple, list)) else (validation,)
        given["validation_data"] = untuned(
            *columns,
            batch_size=given["validation_batch_size"] or given["batch_size"],
            steps=given["validation_steps"],
        )
    names = ("y", "sample_weight", "batch_size", "class_weight", "shuffle")
    data = {name: given[name] for name in names if name in given}
    steps = given.get("steps", given.get("steps_per_epoch"))
    given["x"] = untuned(given["x"], steps=steps, **data)
    given.update((name, None) for name in data if name != "shuffle")
    failures = [getattr(given.get(name), "failures", []) for name in ("x", "validation_data")]
    try:
        return method(*call.args, **call.kwargs)
    except Exception as error:
        for failure in (*failures[0], *failures[1]):
            raise failure from error
        raise


def untuned(
    x,
    y=None,
    sample_weight=None,
    batch_size=None,
    steps=None,
    shuffle=False,
    class_weight=None,
):
    """Returns data for Keras's `fit`, `evaluate` or `predict` on TensorFlow, as `x` alone.

    Keras reads arrays and `PyDataset`s through `tf.data`, which starts a thread for each iterator
    to tune its buffers. The thread sleeps 10 ms, 20 ms, 40 ms, and so on. At the end of an epoch it
    is woken and waited for; but it is woken before it can see that it shall end (in TensorFlow,
    `CancellationManager::StartCancel` calls its callbacks first, and `Model::OptimizeLoop` goes
    back to sleep). Where it is quick, the epoch lasts until the thread would have woken by itself:
    up to twice as long, with the processor idle. Batches that Python makes leave nothing to tune,
    so the thread is not started. A `tf.data.Dataset` stays as it is.

    Args:
        x, y, sample_weight, batch_size, shuffle, class_weight: as for `keras.Model.fit`.
        steps: int, number of batches, or `None`.

    Returns:
        One of Keras's data adapters, which take the place of `x` and all the others.
    """
    import tensorflow as tf
    from keras.src.trainers import data_adapters

    if isinstance(x, data_adapters.data_adapter.DataAdapter):
        return x
    adapter = data_adapters.get_data_adapter(
        x, y, sample_weight, batch_size, steps, shuffle, class_weight
    )
    if isinstance(adapter, data_adapters.TFDatasetAdapter):
        return adapter
    # Keras iterates over one of these, as `tf.data` asks for it.
    adapter.failures = []
    for name in ("_get_iterator", "generator", "get_numpy_iterator"):
        if hasattr(adapter, name):
            setattr(adapter, name, _noting(getattr(adapter, name), adapter.failures))
    tuned = adapter.get_tf_dataset

    def get_tf_dataset():
        options = tf.data.Options()
        options.autotune.enabled = False
        # TensorFlow traces Python there, and after an interrupt could trace nothing any more.
        with signals_wait():
            return tuned().with_options(options)

    adapter.get_tf_dataset = get_tf_dataset
    return adapter


def _noting(iterate, failures):
    """Returns a function like `iterate` that also adds to a list what the iteration raises."""

    def noting():
        try:
            yield from iterate()
        except Exception as error:
            failures.append(error)
            raise

    return noting
