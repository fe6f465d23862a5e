"""Several batches that make one update count by their weights, as rows of one large batch do.

Why: with `gradient_accumulation_steps=k`, a Keras optimizer averages the gradients of `k` batches
as if they weighed the same. A batch of one long sentence then counts as much as a batch of many,
and class weights cancel out within each small batch.

Remove when `test_keras_averages_unequal_batches_equally` fails.
"""

import contextlib
import threading
import types
import warnings

import keras
from keras import ops

from bert_keras import distribution
from bert_keras.engine import fused_steps as fused
from bert_keras.engine.train_step import after, inner_optimizer, is_distributed

# What the present batch weighs; TensorFlow runs each of several devices in a thread of its own.
_PRESENT = threading.local()


def weigh_batches(model):
    """Lets an optimizer that accumulates weigh the batches of an update, see `weighed`.

    The optimizer gets a variable, the sum of the weights so far. It is part of its saved state.
    """
    optimizer = inner_optimizer(model)
    if reason := why_unequal(model, model.loss):
        warnings.warn(
            f"{reason}. With `gradient_accumulation_steps` an update therefore differs from that "
            "of one large batch.",
            stacklevel=4,
        )
    if not hasattr(optimizer, "_accumulated_weight"):
        optimizer._accumulated_weight = optimizer.add_variable(
            (), "zeros", "float32", name="accumulated_weight"
        )
        # Always after the counter, so that the saved order does not depend on when it was built.
        optimizer._variables.insert(1, optimizer._variables.pop())
        optimizer.apply = types.MethodType(_apply, optimizer)


def why_unequal(model, loss):
    """Returns why several batches cannot make the update of one large batch, or `None`."""
    losses = [*keras.tree.flatten(loss), model]
    if names := [type(x).__name__ for x in losses if getattr(x, "compares_rows", False)]:
        return f"{names[0]} compares the rows of a batch, and smaller batches have fewer"
    if not getattr(model, "losses_share_weights", True):
        return f"{type(model).__name__} has several losses, which weigh a batch differently"
    return None


def own_variables(optimizer, name):
    """Returns the optimizer's variables of one kind, such as `"average"`, in the weights' order."""
    return [variable for variable in optimizer.variables if variable.name.endswith(f"_{name}")]


@contextlib.contextmanager
def weighed(model, batch):
    """A context of a training step in which the optimizer knows what the batch weighs.

    Args:
        model: a compiled `keras.Model`, see `weigh_batches`.
        batch: `(inputs, labels, weights)`.
    """
    _PRESENT.weight = _weight_of(model, *keras.utils.unpack_x_y_sample_weight(batch))
    try:
        yield
    finally:
        _PRESENT.weight = None


def _weight_of(model, x, y, sample_weight):
    """Returns the divisor of the batch's mean loss, a float32 scalar, or `None` for a sum."""
    if hasattr(model, "batch_weights"):  # A task.
        sample_weight = model.batch_weights(x, y, sample_weight)
    if not getattr(model, "losses_share_weights", True):
        return ops.ones(())
    losses = keras.tree.flatten(model.loss)
    reduction = getattr(losses[0], "reduction", "sum_over_batch_size")
    if reduction == "sum":
        return None
    weights = [weight for weight in keras.tree.flatten(sample_weight) if weight is not None]
    if weights and reduction == "mean_with_sample_weight":
        total = ops.sum(ops.cast(weights[0], "float32"))
    else:
        per_token = getattr(model, "label_per_token", False)
        shape = ops.shape(keras.tree.flatten(y if per_token else x)[0])
        total = ops.cast(shape[0] * (shape[1] if per_token else 1), "float32")
    return distribution.summed([total])[0] if is_distributed() else total


def _apply(optimizer, grads, trainable_variables=None):
    """Keras's `apply`, with gradients and their sum so far scaled to a mean over all weights.

    With weights `w` and gradients `g`, the accumulator holds `k * sum(w * g) / sum(w)` after `j`
    batches, summed over them; Keras then divides it by `k`.
    """
    apply, weight = type(optimizer).apply, getattr(_PRESENT, "weight", 1.0)
    steps, total = optimizer.gradient_accumulation_steps, optimizer._accumulated_weight
    grads = [fused.dense_gradient(gradient) for gradient in grads]
    with after(grads):
        kept, factor = 1.0, steps
        if weight is not None:
            new = total + weight
            kept, factor = (ops.divide_no_nan(x, new) for x in (total, weight * steps))
            is_last = (optimizer.variables[0] + 1) % steps == 0  # The number of batches.
            for gradients in own_variables(optimizer, "gradient_accumulator"):
                gradients.assign(gradients * ops.cast(kept, gradients.dtype))
            total.assign(ops.where(is_last, 0.0, new))
        grads = [g if g is None else g * ops.cast(factor, g.dtype) for g in grads]
        apply(optimizer, grads, trainable_variables)
