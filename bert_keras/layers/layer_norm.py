"""Layer normalization that keeps few tensors in memory for its gradient."""

import functools

import keras
from keras import ops

from bert_keras.engine import kernels
from bert_keras.engine.fast_layer_call import DirectCall
from bert_keras.engine.remat import with_gradient


@keras.saving.register_keras_serializable(package="bert_keras")
class LayerNorm(DirectCall, keras.layers.LayerNormalization):
    """`keras.layers.LayerNormalization` over the last axis. Training keeps only its input.

    `output = gamma (x - mean) / sqrt(variance + epsilon) + beta`. With the
    normalized input `h` and `d = gamma * upstream`, the gradient is

    `(d - mean(d) - h mean(d h)) / sqrt(variance + epsilon)`.

    From Keras's formula, JAX and TensorFlow would derive a gradient that keeps up to five tensors
    of the input's size. PyTorch's own kernel is used there. With another axis, without `gamma`, or
    with `rms_scaling`, this is Keras's layer. Keras's `rms_scaling` is not RMSNorm.

    Args:
        **kwargs: those of `keras.layers.LayerNormalization`.

    Call arguments:
        inputs: float tensor `(..., hidden_dim)`.

    Returns:
        float tensor of the shape of `inputs`.

    Reference:
        [Ba et al., 2016](https://arxiv.org/abs/1607.06450).
    """

    def build(self, input_shape):
        """Makes the weights. The last axis stays the last for inputs of another rank."""
        is_last = self.axis in (-1, [-1])
        super().build(input_shape)
        if is_last:  # Keras 3.16 replaces -1 by the number of the axis.
            self.axis = [-1]

    def call(self, inputs):
        if self.axis != [-1] or not self.scale or self.rms_scaling:
            return super().call(inputs)
        if keras.backend.backend() == "torch":
            gamma = kernels.value_of(self.gamma)
            if inputs.dtype != gamma.dtype:
                return super().call(inputs)
            return kernels.layer_norm(inputs, gamma, self.beta, self.epsilon)
        weights = (w if w is None else ops.convert_to_tensor(w) for w in (self.gamma, self.beta))
        formula = functools.partial(ops.layer_normalization, axis=-1, epsilon=self.epsilon)
        normalize = with_gradient(formula, lambda *args: _gradient(*args, self.epsilon))
        outputs = normalize(ops.convert_to_tensor(inputs), *weights)
        return ops.cast(outputs, self.compute_dtype)


@kernels.computed_once
def _gradient(upstream, x, gamma, beta, epsilon):
    dtypes = x.dtype, gamma.dtype
    dtype = keras.backend.result_type(x.dtype, "float32")
    upstream, x, gamma = (ops.cast(tensor, dtype) for tensor in (upstream, x, gamma))
    centred = x - ops.mean(x, axis=-1, keepdims=True)
    variance = ops.mean(centred * centred, axis=-1, keepdims=True)
    # Adding `0 * upstream` makes this depend on the upstream gradient, so that XLA cannot
    # compute what follows in the forward pass and keep it.
    inverse = ops.rsqrt(variance + epsilon + 0 * upstream[..., :1])
    normal = centred * inverse
    along = upstream * normal
    if kernels.has_accelerator():
        means = [ops.mean(d * gamma, axis=-1, keepdims=True) for d in (upstream, along)]
    else:  # As products, since XLA on a CPU would store `gamma` for each row.
        weights = ops.expand_dims(gamma / x.shape[-1], -1)
        means = kernels.dense(upstream, weights), kernels.dense(along, weights)
    x_gradient = inverse * (upstream * gamma - means[0] - normal * means[1])
    rows = tuple(range(len(x.shape) - 1))
    gamma_gradient = ops.cast(ops.sum(along, axis=rows), dtypes[1])
    beta_gradient = None if beta is None else ops.cast(ops.sum(upstream, axis=rows), beta.dtype)
    return ops.cast(x_gradient, dtypes[0]), gamma_gradient, beta_gradient
