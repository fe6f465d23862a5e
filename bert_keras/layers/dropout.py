"""Dropout whose random numbers cost little."""

import functools

import keras
import numpy as np


@keras.saving.register_keras_serializable(package="bert_keras")
class Dropout(keras.layers.Dropout):
    """`keras.layers.Dropout`, with cheaper random numbers where Keras's take long.

    `output = inputs * mask / (1 - rate)`, each element of the mask 1 with the probability
    `1 - rate` and 0 otherwise. A BERT draws as many random numbers in a training step as it has
    hidden states and attention weights, and Keras's own way of drawing them is a seventh of the
    step on a CPU with JAX and with PyTorch.

    - JAX: a hash of each element's place and of the seed instead of threefry, cheap enough that
      XLA computes it where the mask is used.
    - PyTorch on the CPU: 16 bits a number, four of a 64-bit draw, instead of one Bernoulli draw
      for each. The rate is rounded to a multiple of 1 / 65,536 below 1 then, and the scale is that
      of the rounded rate.
    - TensorFlow, and PyTorch on accelerators or under `torch.compile`: as in Keras.

    Of these, JAX and PyTorch on the CPU round half precision after scaling; the scale itself is
    not rounded, which at a rate of 0.1 would make all values 0.2 % too large or too small.

    Args:
        rate: float in [0, 1].
        **kwargs: as in `keras.layers.Dropout`.

    Call arguments:
        inputs: float tensor of any shape.
        training: bool; without it the inputs are returned as they are.

    Reference:
        [Srivastava et al., 2014](https://jmlr.org/papers/v15/srivastava14a.html).
    """

    def call(self, inputs, training=False):
        if training and 0 < self.rate < 1 and self.noise_shape is None:
            if keras.backend.backend() == "jax":
                return _drop_on_jax(inputs, self.rate, self.seed_generator.next())
            if keras.backend.backend() == "torch" and self._is_for_short_draws(inputs):
                return _drop_on_torch(inputs, self.rate)
        return super().call(inputs, training=training)

    def _is_for_short_draws(self, inputs):
        import torch

        # With a seed of its own, the layer cannot read the global generator. `torch.compile` draws
        # where the number is used, and cannot trace draws of 64 bits.
        return inputs.is_cpu and self.seed is None and not torch.compiler.is_compiling()


def _drop_on_jax(inputs, rate, seed):
    """Returns the inputs after dropout, by the seed, uint32 `(2,)`."""
    import jax

    places = jax.lax.iota("uint32", inputs.size).reshape(inputs.shape)
    kept = _hashed(places, seed) >= np.uint32(min(round(rate * 2**32), 2**32 - 1))
    scaled = inputs.astype("float32") * np.float32(1 / (1 - rate))
    return jax.numpy.where(kept, scaled, 0).astype(inputs.dtype)


def _hashed(places, seed):
    """Returns a random number for each place, uint32, that follows from it and from the seed.

    Two rounds with two words of the seed: after one, the numbers of two seeds would be the same
    but for a shift. Keras's seeds are a number of the layer and a count, so the words are mixed
    first.
    """
    first = _mixed(seed[0] + _mixed(seed[1]))
    second = _mixed(first ^ (seed[1] + np.uint32(0x9E3779B9)))
    return _mixed(_mixed(places + first) ^ second)


def _mixed(bits):
    """Returns uint32 in which each bit of the uint32 `bits` flips half of the bits.

    Reference:
        `fmix32` of [MurmurHash3](https://github.com/aappleby/smhasher).
    """
    bits = (bits ^ (bits >> 16)) * np.uint32(0x85EBCA6B)
    bits = (bits ^ (bits >> 13)) * np.uint32(0xC2B2AE35)
    return bits ^ (bits >> 16)


def _drop_on_torch(inputs, rate):
    """Returns the inputs after dropout, by the global generator of the CPU."""
    import torch

    draws = torch.empty(-(-inputs.numel() // 4), dtype=torch.int64, device=inputs.device)
    bits = draws.random_(-(2**63), None).view(torch.int16)[: inputs.numel()].view(inputs.shape)
    dropped = min(round(rate * 2**16), 2**16 - 1)
    kept, scale = bits >= dropped - 2**15, 2**16 / (2**16 - dropped)
    return _masked_scale()(inputs, kept, scale)


@functools.cache
def _masked_scale():
    """Returns a function for `inputs * scale * kept`.

    For its gradient it keeps `kept`, a byte an element, where the formula would keep `kept` as
    float, and it makes one float tensor where the formula makes three.
    """
    import torch

    class MaskedScale(torch.autograd.Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(inputs, kept, scale):
            return (inputs * scale).mul_(kept)

        @staticmethod
        def setup_context(ctx, inputs, output):
            _, kept, ctx.scale = inputs
            ctx.save_for_backward(kept)

        @staticmethod
        def backward(ctx, gradient):
            (kept,) = ctx.saved_tensors
            return (gradient * ctx.scale).mul_(kept), None, None

    return MaskedScale.apply
