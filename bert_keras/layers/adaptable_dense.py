"""LoRA: a dense layer that can train two small matrices in place of its kernel."""

from typing import Any

import keras
import numpy as np
from keras import ops

from bert_keras.engine import kernels
from bert_keras.engine.fast_layer_call import DirectCall
from bert_keras.engine.keras_internals import track_variables, tracker_of


@keras.saving.register_keras_serializable(package="bert_keras")
class AdaptableDense(DirectCall, keras.layers.Dense):
    """A `keras.layers.Dense` to which a low-rank adapter can be added, and merged again.

    LoRA assumes that fine-tuning changes a kernel `W (input_dim, units)` by a matrix of low rank
    `r`, the product of `A (input_dim, r)` and `B (r, units)`. These train while `W` stays.

    `output = activation(x W + scale * (x A) B + bias)`, `scale = alpha / rank`.

    `B` starts at 0, so that the adapted layer starts as the plain one. Difference from the paper:
    `A` is drawn uniformly from `+-1 / sqrt(input_dim)`, as in the authors' code and in PEFT, not
    from a Gaussian. Published learning rates are for this.

    Without an adapter the layer is equal to `Dense`, in files too. `Dense.enable_lora` merges the
    adapter into the kernel when the layer is saved, so that training cannot resume from the file.
    Here `A` and `B` are saved as they are. `x A` is computed first, so that the kernel needs no
    gradient.

    Args:
        units: int, width of the output.
        shard_axis: int, the axis along which the kernel may be split over several devices: 1 for
            its columns; 0 for its rows, in a layer that follows one whose columns are split, so
            that the values between the two stay on their devices.
        **kwargs: those of `keras.layers.Dense`.

    Reference:
        [Hu et al., 2021](https://arxiv.org/abs/2106.09685), section 4.1.
    """

    # `None` without an adapter.
    lora_a = lora_b = lora_scale = None
    # The kernel, or `None` where Keras computes it from other weights.
    plain_kernel = None

    def __init__(self, units: int, *args: Any, shard_axis: int = 1, **kwargs: Any) -> None:
        super().__init__(units, *args, **kwargs)
        self.shard_axis = shard_axis

    def build(self, input_shape):
        super().build(input_shape)
        # `kernel` looks for quantization and adapters of Keras at each call.
        is_computed = self.has_adapter or self.lora_enabled or self.quantization_mode
        self.plain_kernel = None if is_computed else self.kernel

    def get_config(self):
        config = super().get_config()
        return config if self.shard_axis else {**config, "shard_axis": 0}

    @property
    def has_adapter(self):
        """Whether the layer has an adapter now."""
        return self.lora_a is not None

    def add_adapter(self, rank, alpha):
        """Adds `lora_a (input_dim, rank)` and `lora_b (rank, units)`, which is 0.

        Args:
            rank: int, from 1.
            alpha: float, above 0; the adapter is multiplied by `alpha / rank`.

        Raises:
            ValueError: the layer is not built, is quantized, or has an adapter.
        """
        if not self.built or self.has_adapter or self.quantization_mode or self.lora_enabled:
            raise ValueError(
                "An adapter is for a layer that is built, not quantized, and without one. "
                f"Received: built={self.built}, quantization={self.quantization_mode}, has an "
                f"adapter={self.has_adapter or self.lora_enabled}. Merge an earlier adapter first; "
                "quantize after merging."
            )
        input_dim = self.kernel.shape[0]
        tracker_of(self).unlock()
        self.lora_a = self.add_weight(
            shape=(input_dim, rank),
            initializer=keras.initializers.VarianceScaling(1 / 3, "fan_in", "uniform"),
            name="lora_a",
        )
        self.lora_b = self.add_weight(shape=(rank, self.units), initializer="zeros", name="lora_b")
        tracker_of(self).lock()
        self.lora_scale = alpha / rank

    def merged_kernel(self):
        """Returns `W + scale * A B`, a float32 array `(input_dim, units)`."""
        kernel, a, b = (
            np.asarray(ops.convert_to_numpy(weight), "float32")
            for weight in (self.kernel, self.lora_a, self.lora_b)
        )
        return kernel + np.float32(self.lora_scale) * (a @ b)

    def merge_adapter(self):
        """Merges the adapter into the kernel. The layer is a plain one afterwards.

        Raises:
            ValueError: the layer has no adapter.
        """
        if not self.has_adapter:
            raise ValueError("Only an adapter that was added can be merged. The layer has none.")
        self.kernel.assign(self.merged_kernel())
        # Functions that were compiled before still read `lora_b`, and must not add it again.
        self.lora_b.assign(np.zeros(self.lora_b.shape))
        tracker_of(self).unlock()
        for weight in (self.lora_a, self.lora_b):
            tracker_of(self).untrack(weight)
        tracker_of(self).lock()
        track_variables(self)
        self.lora_a = self.lora_b = self.lora_scale = None

    def call(self, inputs, training=None):
        is_computed = self.lora_enabled or self.plain_kernel is None
        kernel = self.kernel if is_computed else self.plain_kernel
        x = kernels.dense(inputs, kernel, self.bias)
        if self.lora_a is not None:
            x = x + self.lora_scale * ops.matmul(ops.matmul(inputs, self.lora_a), self.lora_b)
        return x if self.activation is None else self.activation(x)

    def quantize(self, mode=None, type_check=True, config=None):
        """Like `Dense.quantize`, for a layer without an adapter, which would be left out."""
        if self.has_adapter:
            raise ValueError(
                "A layer with an adapter cannot be quantized. Merge the adapter first."
            )
        self.plain_kernel = None
        # Keras's check accepts exactly `Dense`: subclasses may hold more than it can quantize.
        super().quantize(mode, type_check=False, config=config)

    def save_own_variables(self, store):
        """Writes kernel and bias as `Dense` does, then the two weights of the adapter by name."""
        super().save_own_variables(store)
        if self.has_adapter:
            store["lora_a"], store["lora_b"] = self.lora_a, self.lora_b

    def load_own_variables(self, store):
        """Reads what `save_own_variables` wrote, with an adapter if this layer has one."""
        super().load_own_variables(store)
        if self.has_adapter:
            self.lora_a.assign(store["lora_a"])
            self.lora_b.assign(store["lora_b"])
