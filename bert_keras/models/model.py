"""What every model of the package, backbone or task, does beyond `keras.Model`."""

import inspect

import keras
import numpy as np

from bert_keras.inputs import check_keys
from bert_keras.models.quantized import check_can_quantize, quantize_again, replacing_weights
from bert_keras.models.tensorflow_data import call_untuned, only_batch


class BuiltModel(keras.Model):
    """A `keras.Model` whose variables all exist after construction.

    - A subclass creates its layers in `__init__`, builds them in `build`, which skips children that
      are built already, and calls `self.build()` as the last line of `__init__`. A further
      subclass that adds layers creates and builds them in its own `build`, before
      `super().build()`.
    - Loading therefore never has to guess shapes, and weights never meet an unbuilt layer.
    - Inputs given as NumPy arrays are checked before any compute; tensors are not.
    - An exception inside `evaluate` or `predict` leaves the weights as they were.

    A subclass sets `input_names` and has a method `check_arrays(inputs)`.
    """

    input_names = ()
    # Arguments that a subclass's constructor hands on by `**kwargs`.
    shared_arguments = ()

    def __call__(self, inputs, *args, **kwargs):
        self.check_inputs(inputs)
        return super().__call__(inputs, *args, **kwargs)

    def check_inputs(self, inputs):
        """Raises `TypeError` or `ValueError` when a dict of inputs does not fit this model.

        Args:
            inputs: dict of integer arrays or tensors, see `bert_keras.inputs`. Values are checked
                where all are NumPy arrays, names always.
        """
        check_keys(inputs, self.input_names)
        if all(isinstance(value, np.ndarray) for value in inputs.values()):
            self.check_arrays(inputs)

    @classmethod
    def from_config(cls, config):
        """Returns a model of a config that `get_config` made.

        Raises:
            ValueError: an argument is unknown, as in a file written by a newer version.
        """
        config = dict(config)
        quantized = config.pop("quantized_layers", [])
        known = arguments_of(cls)
        unknown = [name for name in config if name not in known]
        if unknown:
            raise ValueError(
                f"{cls.__name__} knows the arguments {sorted(known)}. The config also has "
                f"{unknown}. Was it written by a newer version of bert_keras? Upgrade, then load "
                "it again."
            )
        is_trainable = config.pop("trainable", True)
        model = cls(**config)
        quantize_again(model, quantized)
        if not is_trainable:
            # Once the variables exist: on TensorFlow they do not take it from the constructor.
            model.trainable = False
        return model

    def quantize(self, mode=None, config=None, filters=None, **kwargs):
        """Like `keras.Model.quantize`; a `.keras` file of the model brings its layers back so.

        It saves memory and files. On the CPU int8 saves time on JAX alone; TensorFlow and PyTorch
        multiply int8 several times as slowly as float32, see docs/benchmarks.md.

        Args:
            mode: `"int8"`, `"int4"` or `"float8"`; by default that of `config`.
            config: a `keras.quantizers.QuantizationConfig`, or `None` for Keras's own of the mode.
            filters: regular expressions of the names of layers, or a function of a layer; `None`
                for all layers.

        Raises:
            ValueError: another mode, or the model has adapters; nothing was changed.
        """
        check_can_quantize(self, mode, config)
        with replacing_weights():
            super().quantize(mode, config=config, filters=filters, **kwargs)

    def get_build_config(self):
        """Returns `None`: construction builds everything, so loading has nothing to rebuild."""
        return None

    def build_from_config(self, config):
        """Does nothing, see `get_build_config`."""

    def fit(self, *args, **kwargs):
        """Like `keras.Model.fit`."""
        return call_untuned(super().fit, *args, **kwargs)

    def evaluate(self, *args, **kwargs):
        """Like `keras.Model.evaluate`; an exception inside leaves the weights as they were."""
        return self._guarded(call_untuned, super().evaluate, *args, **kwargs)

    def predict(self, x, *args, **kwargs):
        """Like `keras.Model.predict`; an exception inside leaves the weights as they were.

        On TensorFlow, where a pipeline of batches takes longer to set up than a short text to
        read, what fits one batch goes without it if `verbose=0`.
        """
        if isinstance(x, dict):
            check_keys(x, self.input_names)
            x = {name: keras.ops.convert_to_numpy(value) for name, value in x.items()}
            self.check_arrays(x)
        batch = None if args else only_batch(self, x, **kwargs)
        if batch is not None:
            return self._guarded(self.predict_on_batch, batch)
        return self._guarded(call_untuned, super().predict, x, *args, **kwargs)

    def _guarded(self, method, *args, **kwargs):
        try:
            return method(*args, **kwargs)
        except BaseException:
            # On JAX, Keras hands the weights to the step function and takes them back at the end;
            # only its `fit` does so after an exception too.
            if hasattr(self, "jax_state_sync"):
                self.jax_state_sync()
            raise


def arguments_of(cls):
    """Returns the names of the arguments that `cls(...)` takes, a set of str."""
    own = set(inspect.signature(cls.__init__).parameters) - {"self", "kwargs"}
    own |= set(getattr(cls, "shared_arguments", ()))
    return own | ({"name", "dtype", "trainable"} if issubclass(cls, keras.Model) else set())
