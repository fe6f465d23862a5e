"""LoRA: a dense layer that learns by two small matrices beside its kernel."""

from types import MappingProxyType

import keras
import numpy as np
from keras import ops

from bert_keras.engine.kernels import dense


@keras.saving.register_keras_serializable(package="bert_keras")
class AdaptableDense(keras.layers.Dense):
    """A `keras.layers.Dense` to which a low-rank adapter can be added, and merged again.

    The change that fine-tuning makes to a kernel `W (input_dim, units)` is taken to have a low rank
    `r`: it is the product of `A (input_dim, r)` and `B (r, units)`, which train while `W` stays.

    `output = activation(x W + scale * (x A) B + bias)`, `scale = alpha / rank`.

    `B` begins at 0, so the adapted layer begins as the plain one. Difference from the paper: `A` is
    drawn evenly from `+-1 / sqrt(input_dim)`, as the authors' code and PEFT do it, not from a
    Gaussian; published learning rates are for this.

    Without an adapter the layer is `Dense` in all respects, its weights in files too. The adapter
    that `Dense.enable_lora` makes is folded into the kernel when it is saved: a run could not go on
    from the file. Here `A` and `B` are saved as they are. `x A` is computed first, so that the
    kernel needs no gradient.

    Args:
        units: int, width of the output.
        cut_axis: int, the axis along which several devices may share the kernel: 1, its columns,
            or 0, its rows, for a layer that follows one whose columns are shared. What lies between
            the two then stays where it is.
        **kwargs: those of `keras.layers.Dense`.

    Reference:
        [Hu et al., 2021](https://arxiv.org/abs/2106.09685), section 4.1.
    """

    # `None` without an adapter.
    lora_a = lora_b = lora_scale = None

    def __init__(self, units: int, cut_axis: int = 1, **kwargs) -> None:
        super().__init__(units, **kwargs)
        self.cut_axis = cut_axis

    def get_config(self):
        return {**super().get_config(), "cut_axis": self.cut_axis}

    @property
    def has_adapter(self):
        """Whether the layer has an adapter now."""
        return self.lora_a is not None

    @property
    def is_plain(self):
        """Whether the layer has neither an adapter nor a quantized kernel."""
        return not (self.has_adapter or self.lora_enabled or self.quantization_mode)

    def add_adapter(self, rank, alpha):
        """Adds `lora_a (input_dim, rank)` and `lora_b (rank, units)`, which is 0.

        Args:
            rank: int, from 1.
            alpha: float, above 0; the adapter counts `alpha / rank` times.

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
        self._tracker.unlock()
        self.lora_a = self.add_weight(
            shape=(input_dim, rank),
            initializer=keras.initializers.VarianceScaling(1 / 3, "fan_in", "uniform"),
            name="lora_a",
        )
        self.lora_b = self.add_weight(shape=(rank, self.units), initializer="zeros", name="lora_b")
        self._tracker.lock()
        self.lora_scale = alpha / rank

    def merged_kernel(self):
        """Returns `W + scale * A B`, a float32 array `(input_dim, units)`."""
        kernel, a, b = (
            np.asarray(ops.convert_to_numpy(weight), "float32")
            for weight in (self._kernel, self.lora_a, self.lora_b)
        )
        return kernel + np.float32(self.lora_scale) * (a @ b)

    def merge_adapter(self):
        """Folds the adapter into the kernel, and is a plain layer afterwards.

        Raises:
            ValueError: the layer has no adapter.
        """
        if not self.has_adapter:
            raise ValueError("Only an adapter that was added can be merged. The layer has none.")
        self._kernel.assign(self.merged_kernel())
        # For functions compiled before, which still read it: they must not count it twice.
        self.lora_b.assign(np.zeros(self.lora_b.shape))
        for weight in (self.lora_a, self.lora_b):
            self._untrack_variable(weight)
        self.lora_a = self.lora_b = self.lora_scale = None

    def call(self, inputs, training=None):
        x = dense(inputs, self.kernel, self.bias)
        if self.has_adapter:
            x = x + self.lora_scale * ops.matmul(ops.matmul(inputs, self.lora_a), self.lora_b)
        return x if self.activation is None else self.activation(x)

    def quantize(self, mode=None, type_check=True, config=None):
        """Like `Dense.quantize`, of a layer without an adapter: the adapter would be left out."""
        if self.has_adapter:
            raise ValueError(
                "A layer with an adapter cannot be quantized. Merge the adapter first."
            )
        # The check is for exactly `Dense`: others may hold more than Keras knows how to quantize.
        super().quantize(mode, type_check=False, config=config)

    def save_own_variables(self, store):
        """Writes kernel and bias as `Dense` does, then the adapter's two under their names."""
        super().save_own_variables(store)
        if self.has_adapter:
            store["lora_a"], store["lora_b"] = self.lora_a, self.lora_b

    def load_own_variables(self, store):
        """Reads what `save_own_variables` wrote; a layer with and one without adapter differ."""
        super().load_own_variables(store)
        if self.has_adapter:
            self.lora_a.assign(store["lora_a"])
            self.lora_b.assign(store["lora_b"])


def adaptable_layers(*parts):
    """Returns the adaptable layers of the parts of a block, a read-only mapping from their names.

    Args:
        *parts: layers with a mapping `adaptable`, name -> attribute.
    """
    layers = {name: getattr(p, found) for p in parts for name, found in p.adaptable.items()}
    # No dict: Keras would look for layers in it, and name them so in files.
    return MappingProxyType(layers)
