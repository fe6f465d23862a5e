"""Recomputes inner values in the backward pass instead of keeping them, to save memory.

Why: around dropout, `keras.remat` gives wrong gradients on TensorFlow and fails on JAX.

Remove when `test_keras_s_remat_around_dropout_is_wrong` fails.
"""

import contextlib

import keras
from keras import ops

from bert_keras.engine.keras_internals import scopes

# More than a layer draws for one chunk, so that chunks have different masks.
_DRAWS_PER_CHUNK = 4096


def rematerialized(layer, inputs, shared=None, **arguments):
    """Returns the first output of `layer(inputs, **arguments)`; keeps only its inputs in memory.

    The backward pass computes everything between inputs and output again (gradient checkpointing).
    That is a third more compute, and memory for the inner values of one such layer at a time.
    Dropout has the same masks both times, and the same as without rematerialization.

    Around dropout, `keras.remat` alone gives wrong gradients on TensorFlow, silently, and fails on
    JAX: drawing a mask advances the state of a `SeedGenerator`, so that the second computation
    draws another one. Therefore the layer runs as a pure function here. The values of its variables
    go in, the new states of its generators come out and are assigned outside. On PyTorch dropout
    uses the global generator, whose state `keras.remat` restores.

    On JAX this saves no memory on the CPU, because XLA drops the barriers that delay the second
    computation until the backward pass. It keeps them if JAX starts with the environment variable
    `XLA_FLAGS=--xla_disable_hlo_passes=cse_barrier_expander,optimization_barrier_expander`.

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
    shared, states = shared or {}, seed_states(layer)

    def function(inputs, *values):
        output, *_ = layer(inputs, **dict(zip(shared, values, strict=True)), **arguments)
        return output, *(state.value for state in states)

    # Copies, because the variables have advanced the second time.
    old_states = [ops.copy(state) for state in states]
    output, *new_states = _recomputing(layer)(function, old_states, inputs, *shared.values())
    for state, value in zip(states, new_states, strict=True):
        state.assign(value)
    return output


def in_chunks(layer, function, inputs, chunk_size):
    """Returns `function(inputs, True)`, a tensor with a row for each row, computed in chunks.

    The backward pass computes a chunk again before it computes its gradient, so that the inner
    values of one chunk are in memory at a time. See `rematerialized` for dropout and memory.

    Args:
        layer: the layer whose weights and seeds the function uses.
        function: function of a dict of inputs and `training`.
        inputs: dict of int tensors `(num_rows, ...)`.
        chunk_size: int, rows in a chunk.

    Reference:
        [Gao et al., 2021](https://arxiv.org/abs/2101.06983), section 3.
    """
    num_rows = ops.shape(next(iter(inputs.values())))[0]
    num_chunks = -(-num_rows // chunk_size)

    def split(array):
        # Rows of zeros fill up the last chunk. Each chunk has rows of each device's share.
        padding = [(0, num_chunks * chunk_size - num_rows), *[(0, 0)] * (len(array.shape) - 1)]
        shape = (chunk_size, num_chunks, *ops.shape(array)[1:])
        return ops.swapaxes(ops.reshape(ops.pad(array, padding), shape), 0, 1)

    # Each chunk has seeds of its own, as if so many masks had been drawn for the one before.
    counts = ops.arange(num_chunks + 1, dtype="int32") * _DRAWS_PER_CHUNK
    shifts = ops.stack([ops.zeros_like(counts), counts], axis=1)
    seeds = []
    for state in seed_states(layer):
        states = ops.add(state, ops.cast(shifts, state.dtype))
        seeds.append(states[:-1])
        state.assign(states[-1])
    recomputed = _recomputing(layer)

    def compute(chunk):
        inputs, states = chunk
        return recomputed(lambda: function(inputs, True), states)

    chunks = {name: split(array) for name, array in inputs.items()}
    outputs = ops.swapaxes(_mapped(compute, (chunks, seeds)), 0, 1)
    return ops.reshape(outputs, (-1, *ops.shape(outputs)[2:]))[:num_rows]


def _mapped(function, rows):
    """Returns the outputs of a function, float32, for each row, computed one after another."""
    if keras.backend.backend() != "tensorflow":
        return ops.map(function, rows)
    import tensorflow as tf

    # `ops.map` may compute ten rows at a time, and once more the first, to learn the shape.
    return tf.map_fn(function, rows, fn_output_signature="float32", parallel_iterations=1)


def seed_states(layer):
    """Returns the states of the seed generators of a layer and its sublayers, a list."""
    return [v for v in layer.non_trainable_variables if v.name == "seed_generator_state"]


def _recomputing(layer):
    """Returns a function that computes a function of a layer again in the backward pass.

    The values of the layer's variables are read now: TensorFlow finds no gradient of a variable
    that is read inside a loop.

    Returns:
        A function of `function`, `old_states` and `*inputs` that returns `function(*inputs)`.
        `inputs` are float tensors, which have gradients. `old_states`, the seeds before it, are not
        arguments of `keras.remat`, because TensorFlow computes a gradient for each of those.
    """
    weights, states = layer.trainable_variables, seed_states(layer)
    others = [v for v in layer.non_trainable_variables if v.name != "seed_generator_state"]
    variables = (*weights, *others, *states)
    # In the backward pass, Keras has left the model's call and its precision.
    autocast = getattr(scopes, "autocast_scope", None)

    def in_precision(dtype):
        return type(autocast)(dtype) if autocast else contextlib.nullcontext()

    with in_precision(None):  # The gradients of chunks are added up in the weights' own dtype.
        weight_values, other_values = ([ops.cast(v, v.dtype) for v in x] for x in (weights, others))

    def recomputed(function, old_states, *inputs):
        def compute(*arguments):
            inner, weight_values = arguments[: len(inputs)], arguments[len(inputs) :]
            current = (*weight_values, *other_values, *old_states)
            with (
                in_precision(autocast and autocast.dtype),
                keras.StatelessScope(zip(variables, current, strict=True)),
            ):
                return function(*inner)

        return keras.remat(compute)(*inputs, *weight_values)

    return recomputed


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
    """Returns a function of TensorFlow that keeps only its arguments for its gradient.

    It suits values that are cheap to compute and large to keep. Unlike `keras.remat` it copies
    nothing.

    Args:
        function: function of tensors, some of which may be `None`, that returns a float tensor. It
            draws no random numbers and reads no tensors other than its arguments.
    """
    import tensorflow as tf

    def gradient(upstream, *inputs):
        tensors = [x for x in inputs if x is not None]
        with tf.GradientTape(watch_accessed_variables=False) as tape:
            tape.watch([x for x in tensors if x.dtype.is_floating])
            output = function(*inputs)
        gradients = iter(tape.gradient(output, tensors, upstream))
        return [None if x is None else next(gradients) for x in inputs]

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
                    gradients = gradient(upstream, *filled([tf.identity(x) for x in tensors]))
                return [g for g, x in zip(gradients, inputs, strict=True) if x is not None]

            return function(*filled(tensors)), backward

        # Variables are read now: their values may differ later or in another scope.
        return of_tensors(*(tf.convert_to_tensor(x) for x in inputs if x is not None))

    return late_gradient
