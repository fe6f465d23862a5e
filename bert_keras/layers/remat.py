"""Layers whose inner values are computed again in the backward pass instead of kept."""

import os
import warnings

import keras
from keras import ops

# What XLA needs to be told on the CPU.
_KEEP_BARRIERS = "--xla_disable_hlo_passes=cse_barrier_expander,optimization_barrier_expander"


def warn_where_useless():
    """Warns on JAX on the CPU, where XLA keeps all values anyway, see `rematerialized`."""
    if keras.backend.backend() != "jax":
        return
    import jax

    if jax.default_backend() == "cpu" and "barrier_expander" not in os.environ.get("XLA_FLAGS", ""):
        warnings.warn(
            "`remat=True` saves no memory with JAX on the CPU: XLA undoes it. Set "
            f"XLA_FLAGS={_KEEP_BARRIERS} before JAX starts, or use PyTorch or TensorFlow.",
            stacklevel=5,
        )


def rematerialized(layer, inputs, **arguments):
    """Returns the first output of `layer(inputs, **arguments)`, with little kept for its gradient.

    The backward pass computes everything between inputs and output once more: a third more compute
    for memory that holds the values inside of one such layer at a time (gradient checkpointing).
    Dropout has the same masks both times, the same as without rematerialization.

    Around dropout, `keras.remat` alone gives wrong gradients on TensorFlow, without a word, and
    fails on JAX: to draw a mask is to move on the state of a `SeedGenerator`, and the second time
    it has moved on. So the layer runs as a pure function here: the values of its variables go in,
    the new states of its generators come out, and are assigned outside. On PyTorch dropout reads
    the global generator, which `keras.remat` sets back by itself.

    JAX on the CPU saves no memory by it: XLA drops the barriers that hold the second computation
    back until the backward pass. It keeps them with the `XLA_FLAGS` of `warn_where_useless`.

    Args:
        layer: a built `keras.layers.Layer` that returns a tuple.
        inputs: float tensor, to which gradients flow back, as they do to the layer's weights.
        **arguments: further call arguments; tensors among them are taken as constants.

    Returns:
        float tensor.

    Reference:
        [Chen et al., 2016](https://arxiv.org/abs/1604.06174).
    """
    weights = layer.trainable_variables
    states = [v for v in layer.non_trainable_variables if v.name == "seed_generator_state"]
    others = [v for v in layer.non_trainable_variables if v.name != "seed_generator_state"]
    # Copies, because the second time the variables have moved on. Not arguments of `compute`,
    # because TensorFlow asks for the gradient of every one of those.
    old_states = [ops.copy(state) for state in states]

    def compute(inputs, *values):
        values = [*values, *(variable.value for variable in others), *old_states]
        variables = [*weights, *others, *states]
        with keras.StatelessScope(zip(variables, values, strict=True)) as scope:
            output = layer(inputs, **arguments)[0]
            return output, *(scope.get_current_value(state) for state in states)

    output, *new_states = keras.remat(compute)(inputs, *(weight.value for weight in weights))
    for state, value in zip(states, new_states, strict=True):
        state.assign(value)
    return output
