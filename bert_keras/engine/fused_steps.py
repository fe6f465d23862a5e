"""The step of AdamW and LAMB through a backend's own kernel: few passes over memory.

Why: Keras updates moments and weights by separate operations, each a pass over memory; XLA fuses
them, PyTorch and TensorFlow do not (docs/benchmarks.md has the times). And on TensorFlow, Keras
squares the gradient of an embedding table before it sums repeated tokens.

Remove when `test_keras_s_adamw_is_many_passes_over_memory_on_pytorch` and
`test_keras_squares_the_gradient_of_a_repeated_token_before_it_adds` fail.
"""

import keras


def torch_step(variables, gradients, momentums, velocities, updates, **hyper):
    """Updates torch tensors in place with the fused kernel of `torch.optim.AdamW`.

    Args:
        variables: list of tensors of one group: same rate, same decay.
        gradients: list of tensors; on return divided by `grad_scale`.
        momentums, velocities: lists of tensors.
        updates: list of float32 scalars, how often each variable was updated before; each is
            increased by 1.
        **hyper: `lr` (float or scalar tensor), `weight_decay`, `beta1`, `beta2`, `eps` (floats)
            and `grad_scale` (scalar tensor or `None`), which divides the gradients.
    """
    import torch
    from torch.optim.adamw import adamw

    with torch.no_grad():
        adamw(
            variables,
            gradients,
            momentums,
            velocities,
            [],
            updates,
            fused=True,
            amsgrad=False,
            maximize=False,
            **hyper,
        )


def torch_lamb_step(
    variables, gradients, momentums, velocities, updates, lr, weight_decay, **hyper
):
    """Updates torch tensors in place as LAMB does: `torch_step`'s step, scaled to the variable.

    Args:
        variables, gradients, momentums, velocities, updates: as for `torch_step`.
        lr: float or scalar tensor.
        weight_decay: float; `None` for variables whose steps are neither decayed nor scaled.
        **hyper: the other arguments of `torch_step`.
    """
    import torch

    moments = zip(gradients, momentums, velocities, updates, strict=True)
    with torch.no_grad():
        for variable, tensors in zip(variables, moments, strict=True):
            # A variable that moves from 0 at a rate of -1 becomes the step itself.
            step = torch.zeros_like(variable)
            tensors = [[tensor] for tensor in tensors]
            torch_step([step], *tensors, lr=-1.0, weight_decay=0.0, **hyper)
            rate = torch.as_tensor(lr, dtype=variable.dtype, device=variable.device)
            if weight_decay is not None:
                step.add_(variable, alpha=weight_decay)
                norm, step_norm = torch.linalg.vector_norm(variable), torch.linalg.vector_norm(step)
                usable = (norm > 0) & (step_norm > 0)
                rate = rate * torch.where(usable, norm / step_norm, 1.0)
            variable.addcmul_(step, rate, value=-1)


def tensorflow_step(variable, gradient, momentum, velocity, beta_1, beta_2, rate, epsilon, zero):
    """Updates a TensorFlow variable and its moments in place with TensorFlow's Adam kernel.

    Args:
        variable, momentum, velocity: `tf.Variable`s of one shape.
        gradient: dense tensor of the same shape.
        beta_1, beta_2: scalars.
        rate: scalar, the learning rate with both bias corrections.
        epsilon: scalar, added to the uncorrected `sqrt(v)`.
        zero: scalar 0. A constant of each variable's own would be an operation of the graph.
    """
    import tensorflow as tf

    tf.raw_ops.ResourceApplyAdam(
        var=variable.handle,
        m=momentum.handle,
        v=velocity.handle,
        # The bias corrections are part of `rate`, because they may differ between variables.
        beta1_power=zero,
        beta2_power=zero,
        lr=rate,
        beta1=beta_1,
        beta2=beta_2,
        epsilon=epsilon,
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
