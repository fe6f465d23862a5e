"""Evaluates a model with its averaged weights in the middle of training."""

import contextlib

import keras

from bert_keras.engine.interrupts import defer_signals, run_on_exit
from bert_keras.engine.train_step import inner_optimizer


def steps_done(optimizer):
    """Returns how many updates an optimizer has made, also with copies on several devices."""
    return int(keras.ops.convert_to_numpy(optimizer.iterations))


@contextlib.contextmanager
def swap_ema_weights(model, enabled=True):
    """A context in which a model has the averages of its weights; afterwards exactly its own.

    The averages are those that the optimizer keeps with `use_ema`. Without averages, and before the
    first update, nothing changes. `keras.callbacks.SwapEMAWeights` swaps them in place, on
    TensorFlow by adding and subtracting, so that training continues from rounded weights.

    Args:
        model: a compiled `keras.Model`.
        enabled: bool, `False` changes nothing.
    """
    optimizer = inner_optimizer(model)
    has_averages = enabled and getattr(optimizer, "use_ema", False)
    # There are no averages before the first update.
    if not (has_averages and optimizer.built and steps_done(optimizer) > 0):
        yield
        return
    variables = model.trainable_variables
    weights = [variable.numpy() for variable in variables]

    def put_back():
        for variable, value in zip(variables, weights, strict=True):
            variable.assign(value)

    with run_on_exit(put_back):
        with defer_signals():
            optimizer.finalize_variable_values(variables)
            for variable in variables:
                # On JAX, weights and averages of Keras's optimizers now share one buffer, which
                # `evaluate` would donate.
                variable.assign(keras.ops.copy(variable))
        yield
