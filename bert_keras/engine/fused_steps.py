"""The operations of an optimizer's step for which TensorFlow has kernels of its own.

Why: Keras updates moments and weights by separate operations, each a pass over memory; XLA fuses
them, PyTorch and TensorFlow do not (docs/benchmarks.md has the times; on PyTorch `AdamW` calls
PyTorch's kernel). And on TensorFlow, Keras squares the gradient of an embedding table before it
sums repeated tokens.

Remove when `test_keras_s_adamw_is_many_passes_over_memory_on_pytorch` and
`test_keras_squares_the_gradient_of_a_repeated_token_before_it_adds` fail.
"""

import keras


def tensorflow_step(variable, gradient, momentum, velocity, scalars):
    """Updates a TensorFlow variable and its moments in place with TensorFlow's Adam kernel.

    Args:
        variable, momentum, velocity: `tf.Variable`s of one shape.
        gradient: dense tensor of the same shape.
        scalars: dict of the scalars of a step, see `AdamW._scalars`. `zero` is one of them, since a
            constant of each variable's own would be an operation of the graph.
    """
    import tensorflow as tf

    tf.raw_ops.ResourceApplyAdam(
        var=variable.handle,
        m=momentum.handle,
        v=velocity.handle,
        # The bias corrections are part of the rate and of epsilon.
        beta1_power=scalars["zero"],
        beta2_power=scalars["zero"],
        lr=scalars["rate"] * scalars["correction"],
        beta1=scalars["beta_1"],
        beta2=scalars["beta_2"],
        epsilon=scalars["epsilon"],
        grad=gradient,
    )


def global_norm(gradients):
    """Returns the norm over all gradients, a float32 scalar, on JAX and TensorFlow."""
    gradients = [keras.ops.cast(gradient, "float32") for gradient in gradients]
    if keras.backend.backend() != "tensorflow":
        return keras.ops.sqrt(sum(keras.ops.sum(keras.ops.square(each)) for each in gradients))
    import tensorflow as tf

    return tf.linalg.global_norm(gradients)  # Its kernel writes no squares.


def dense_gradient(gradient):
    """Sums the rows of a sparse gradient, which TensorFlow returns for an embedding table.

    Repeated tokens are repeated rows. Keras squares them before it adds them up, so that on
    TensorFlow alone a token that is seen four times would move twice as far.
    """
    if gradient is None or keras.backend.backend() != "tensorflow":
        return gradient
    import tensorflow as tf

    return tf.convert_to_tensor(gradient) if isinstance(gradient, tf.IndexedSlices) else gradient
