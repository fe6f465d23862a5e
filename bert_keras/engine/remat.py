"""Recomputes inner values in the backward pass instead of keeping them, to save memory.

Why: around dropout, `keras.remat` gives wrong gradients on TensorFlow and fails on JAX.

Goes when `test_keras_s_remat_around_dropout_is_wrong` fails.
"""

import os
import warnings

import keras
from keras import ops

# The flag that XLA needs on the CPU.
_KEEP_BARRIERS = "--xla_disable_hlo_passes=cse_barrier_expander,optimization_barrier_expander"


def warn_where_useless():
    """Warns if the backend is JAX on the CPU, where XLA keeps all values, see `rematerialized`."""
    if keras.backend.backend() != "jax":
        return
    import jax

    if jax.default_backend() == "cpu" and "barrier_expander" not in os.environ.get("XLA_FLAGS", ""):
        warnings.warn(
            "`remat=True` saves no memory with JAX on the CPU: XLA undoes it. Set "
            f"XLA_FLAGS={_KEEP_BARRIERS} before JAX starts, or use PyTorch or TensorFlow.",
            stacklevel=5,
        )


def rematerialized(layer, inputs, shared=None, **arguments):
    """Returns the first output of `layer(inputs, **arguments)`, and keeps little for its gradient.

    The backward pass computes everything between inputs and output again (gradient checkpointing).
    That is a third more compute, and memory for the inner values of one such layer at a time.
    Dropout has the same masks both times, and the same as without rematerialization.

    Around dropout, `keras.remat` alone gives wrong gradients on TensorFlow, silently, and fails on
    JAX: drawing a mask advances the state of a `SeedGenerator`, so that the second computation
    draws another one. Therefore the layer runs as a pure function here. The values of its variables
    go in, the new states of its generators come out and are assigned outside. On PyTorch dropout
    uses the global generator, whose state `keras.remat` restores.

    On JAX this saves no memory on the CPU, because XLA drops the barriers that delay the second
    computation until the backward pass. With the `XLA_FLAGS` of `warn_where_useless` it keeps them.

    Args:
        layer: a built `keras.layers.Layer` that returns a tuple.
        inputs: float tensor. It has a gradient, as the layer's weights have.
        shared: dict of further call arguments, float tensors that have gradients too, or `None`.
        **arguments: further call arguments; tensors among them are constants.

    Returns:
        float tensor.

    Reference:
        [Chen et al., 2016](https://arxiv.org/abs/1604.06174).
    """
    shared, weights = shared or {}, layer.trainable_variables
    states = [v for v in layer.non_trainable_variables if v.name == "seed_generator_state"]
    others = [v for v in layer.non_trainable_variables if v.name != "seed_generator_state"]
    # Copies, because the variables have advanced the second time. They are no arguments of
    # `compute`, because TensorFlow computes a gradient for each of those.
    old_states = [ops.copy(state) for state in states]

    def compute(inputs, *values):
        further = dict(zip(shared, values, strict=False))
        values = [*values[len(shared) :], *(variable.value for variable in others), *old_states]
        variables = [*weights, *others, *states]
        with keras.StatelessScope(zip(variables, values, strict=True)) as scope:
            output = layer(inputs, **further, **arguments)[0]
            return output, *(scope.get_current_value(state) for state in states)

    values = *shared.values(), *(weight.value for weight in weights)
    output, *new_states = keras.remat(compute)(inputs, *values)
    for state, value in zip(states, new_states, strict=True):
        state.assign(value)
    return output


def with_gradient(function, gradient):
    """Returns a function with the same values and a given gradient, computed in the backward pass.

    TensorFlow would compute parts of the gradient in the forward pass and keep them. Here all of it
    waits for the upstream gradient. XLA moves computation in the same way, and computes expressions
    that both passes share only once: a gradient that keeps little must use other expressions than
    the function. On JAX the function has no forward-mode derivative (`jax.jvp`).

    Args:
        function: function of tensors of JAX or TensorFlow, some of which may be `None`, that
            returns a float tensor.
        gradient: function of the upstream gradient and the same tensors, which returns a gradient
            for each tensor, `None` for integers.
    """
    on_backend = _on_jax if keras.backend.backend() == "jax" else _on_tensorflow
    return on_backend(function, gradient)


def computed_again(function):
    """Returns a function that, on TensorFlow, keeps only its arguments for its gradient.

    It suits values that are cheap to compute and large to keep. Unlike `keras.remat` it copies
    nothing. On other backends it returns the function itself.

    Args:
        function: function of tensors, some of which may be `None`, that returns a float tensor. It
            draws no random numbers and reads no tensors other than its arguments.
    """
    if keras.backend.backend() != "tensorflow":
        return function
    import tensorflow as tf

    def gradient(upstream, *inputs):
        tensors = [x for x in inputs if x is not None]
        with tf.GradientTape(watch_accessed_variables=False) as tape:
            tape.watch([x for x in tensors if x.dtype.is_floating])
            output = function(*inputs)
        found = iter(tape.gradient(output, tensors, upstream))
        return [None if x is None else next(found) for x in inputs]

    return with_gradient(function, gradient)


def _on_jax(function, gradient):
    import jax

    own_gradient = jax.custom_vjp(function)
    own_gradient.defvjp(
        lambda *inputs: (function(*inputs), inputs),
        lambda inputs, upstream: tuple(gradient(upstream, *inputs)),
    )
    return own_gradient


def _on_tensorflow(function, gradient):
    import tensorflow as tf

    def late_gradient(*inputs):
        def filled(tensors):
            tensors = iter(tensors)
            return [None if x is None else next(tensors) for x in inputs]

        @tf.custom_gradient
        def of_tensors(*tensors):
            def backward(upstream):
                with tf.control_dependencies([upstream]):
                    found = gradient(upstream, *filled([tf.identity(x) for x in tensors]))
                return [g for g, x in zip(found, inputs, strict=True) if x is not None]

            return function(*filled(tensors)), backward

        # Variables are read now: their values may differ later or in another scope.
        return of_tensors(*(tf.convert_to_tensor(x) for x in inputs if x is not None))

    return late_gradient
