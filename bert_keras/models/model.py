"""The base class of every model in the package: training, prediction, files, inputs and config."""

import contextlib
import functools
import glob
import inspect
import io
import itertools
import os
import pathlib
import types
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Literal, Self, TypeVar, Unpack

import keras
import numpy as np

from bert_keras import distribution
from bert_keras.checks import check_not_empty
from bert_keras.engine import quantized, variable_paths
from bert_keras.engine.atomic_files import replacing, replacing_files
from bert_keras.engine.fast_layer_call import adds_nothing
from bert_keras.engine.keras_internals import all_layers, own_metrics
from bert_keras.engine.kernels import has_accelerator
from bert_keras.engine.prediction import batches_of, predicted, with_progress
from bert_keras.engine.train_step import (
    AtomicTrainStep,
    atomic_end,
    atomic_steps,
    build_optimizer,
    inner_optimizer,
    is_built,
    is_distributed,
)
from bert_keras.inputs import check_keys
from bert_keras.migration_hints import NotHere, missing_attribute
from bert_keras.models.export_mixin import ExportMixin
from bert_keras.presets.assign import warn
from bert_keras.signatures import check_arguments, parameters_of, with_signature
from bert_keras.types import Data, Inputs, LayerOptions, Path, Verbose

_Layer = TypeVar("_Layer", bound=keras.layers.Layer)

_MODEL_ARGUMENTS = ("name", "dtype", "trainable")


class BuiltModel(ExportMixin, AtomicTrainStep, keras.Model):
    """A `keras.Model` whose variables all exist after construction, and never stay half changed.

    - Any number of threads may predict at once, since `predict` changes nothing.
    - When `fit` or `evaluate` ends, even by an exception or Ctrl-C, the weights are those after the
      last whole step. Signals wait for the end of a step.
    - A file is written whole, or stays as it was.
    - A subclass creates its layers in `__init__`, and builds them in `build`, which skips children
      that are already built. `complete` calls it when the outermost `__init__` has returned.
    - A further subclass may create layers and metrics after `super().__init__()`, as in any Keras
      model. `complete` builds those that `call` calls.
    - Loading therefore never has to guess shapes or to build layers.
    - NumPy inputs are checked before any compute; tensors are not.

    A subclass sets `input_names`, has a method `check_arrays(inputs)`, and keeps each constructor
    argument as an attribute of the same name, from which its config is made.

    Each method that overrides one of `keras.Model` corrects it: the module of `engine` that it
    calls explains the bug, and names the test that fails once Keras has fixed it. See `ExportMixin`
    for presets and exports.
    """

    input_names = ()
    # Axes of the inputs: texts, tokens.
    num_input_axes = 2
    # Required inputs beyond those of the backbone.
    further_inputs = ()
    # Inputs beyond those of the backbone with a value for each token.
    token_inputs = ()
    # Arguments of a parent's constructor that this class decides itself -> their values.
    decided_arguments = types.MappingProxyType({})
    _is_complete = False
    _prediction = _compiled_for = None
    # Keras and PyTorch look these up; a missing attribute would raise an error each time.
    output_names, _is_replica = None, False
    from_pretrained = NotHere()

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        # Also if a mixin's constructor comes first in the MRO: it would not call `complete`.
        if "__init__" in vars(cls) or not hasattr(cls.__init__, "completes"):
            cls.__init__ = _completing(cls.__init__)

    def __init__(self, **kwargs: Unpack[LayerOptions]) -> None:
        if keras.distribution.distribution() is not None:
            distribution.check_engine()
        super().__init__(**kwargs)

    def complete(self) -> None:
        """Ends construction: builds all layers, and allows no further ones."""
        if not self.built:
            self.build((None, None))
        if not is_built(self):
            # Padded to one length, since some layers, such as `Flatten`, need to know it.
            longest = getattr(getattr(self, "backbone", self), "max_sequence_length", None)
            length = getattr(getattr(self, "preprocessor", None), "max_length", longest or 8)
            ids = keras.KerasTensor((*(None,) * (self.num_input_axes - 1), length), "int32")
            # A layer that this call does not reach is built when it is called, as in Keras.
            with contextlib.suppress(Exception):
                self.compute_output_spec(dict.fromkeys(self.input_names, ids))
        self._is_complete = True
        self._lock_state()

    def _lock_state(self):
        # Keras calls it after `build`, which a constructor may call before that of a subclass ends.
        if self._is_complete:
            super()._lock_state()

    @property
    def input(self) -> Any:
        """Symbolic inputs by name, from which a functional model may begin, see `output`."""
        return self._symbolic_call()[0]

    @property
    def output(self) -> Any:
        """Symbolic outputs for `input`, in the structure of a call, for a functional model.

        Example:
        ```python
        logits = keras.layers.Dense(3)(backbone.output["pooled_output"])
        model = keras.Model(backbone.input, logits)
        ```
        """
        return self._symbolic_call()[1]

    def _symbolic_call(self):
        if "_symbolic" not in vars(self):
            with contextlib.suppress(AttributeError):  # Of a call by the user, as in Keras.
                return super().input, super().output
            options = {"shape": (None,) * (self.num_input_axes - 1), "dtype": "int32"}
            inputs = {name: keras.Input(**options, name=name) for name in self.input_names}
            vars(self)["_symbolic"] = inputs, self(inputs)
        return vars(self)["_symbolic"]

    def __getattr__(self, name):
        if name in ("inputs", "outputs"):
            return keras.tree.flatten(getattr(self, name[:-1]))
        try:
            return super().__getattr__(name)  # PyTorch keeps layers there.
        except AttributeError:
            raise AttributeError(missing_attribute(type(self), name)) from None

    # Inputs

    def __call__(self, inputs: Inputs, *args: Any, **kwargs: Any) -> Any:
        self.check_inputs(inputs)
        if adds_nothing(self, (inputs, *args), kwargs):
            return self.call(inputs, *args, **kwargs)
        if kwargs.keys() - {"training", "mask"} and not parameters_of(self.call)[1]:
            check_arguments(kwargs, self.call, ["mask"])
        return super().__call__(inputs, *args, **kwargs)

    def check_inputs(self, inputs: Inputs) -> None:
        """Raises `TypeError` or `ValueError` when a dict of inputs does not fit this model.

        Args:
            inputs: dict of integer arrays or tensors, see `bert_keras.inputs`. Names are always
                checked, values if all of them are NumPy arrays.
        """
        check_keys(inputs, self.input_names, self.further_inputs)
        if all(map(isinstance, inputs.values(), itertools.repeat(np.ndarray))):
            self.check_arrays(inputs)

    # Training

    @property
    def metrics(self) -> list[keras.metrics.Metric]:
        """Like `keras.Model.metrics`, with a metric of a nested layer once.

        Keras collects them from every layer, and every layer from all layers inside it. Several
        processes would add up the counts of such a metric twice.
        """
        metrics = own_metrics(self)
        for layer in all_layers(self, include_self=False):
            if not isinstance(layer, keras.Model):
                metrics += layer._metrics
        return metrics

    def compile(self, *args: Any, **kwargs: Any) -> None:
        """Like `keras.Model.compile`; `predict` compiles anew too, and metrics begin at 0."""
        super().compile(*args, **kwargs)
        # A metric that another model used still has its counts: on TensorFlow and PyTorch, Keras
        # does not know the metrics before the first batch, and cannot reset them.
        for argument in keras.tree.flatten([args, kwargs]):
            if isinstance(argument, keras.metrics.Metric) and argument.variables:
                argument.reset_state()
        if getattr(inner_optimizer(self), "gradient_accumulation_steps", None):
            from bert_keras.engine.accumulation import weigh_batches

            weigh_batches(self)
        self._prediction = self._compiled_for = None
        self._drop_stale_functions()

    def _drop_stale_functions(self):
        """Drops compiled steps if layers, perhaps shared with another model, changed variables."""
        if self._compiled_for != variable_paths.version:
            self._compiled_for = variable_paths.version
            self.train_function = self.test_function = self.predict_function = None

    def fit(self, *args: Any, **kwargs: Any) -> keras.callbacks.History:
        """Like `keras.Model.fit`; however it ends, the weights are those of a whole step."""
        self._drop_stale_functions()
        build_optimizer(self)
        if is_distributed(self):
            distribution.copy_first_weights(self)
        with atomic_steps(self), atomic_end(self):
            return super().fit(*args, **kwargs)

    def train_step(self, *args):
        """Like `keras.Model.train_step`; batches that make one update count by their weights."""
        if not getattr(inner_optimizer(self), "gradient_accumulation_steps", None):
            return super().train_step(*args)
        from bert_keras.engine.accumulation import weighed

        with weighed(self, args[-1]):
            return super().train_step(*args)

    def evaluate(self, *args: Any, **kwargs: Any) -> Any:
        """Like `keras.Model.evaluate`; however it ends, the weights stay as they were."""
        self._drop_stale_functions()
        with atomic_steps(self):
            return super().evaluate(*args, **kwargs)

    def train_on_batch(self, x: Inputs, *args: Any, **kwargs: Any) -> Any:
        """Like `keras.Model.train_on_batch`, see `fit`."""
        build_optimizer(self)
        with atomic_steps(self):
            return super().train_on_batch(x, *args, **kwargs)

    def test_on_batch(self, x: Inputs, *args: Any, **kwargs: Any) -> Any:
        """Like `keras.Model.test_on_batch`, see `evaluate`."""
        with atomic_steps(self):
            return super().test_on_batch(x, *args, **kwargs)

    # Prediction

    def predict(
        self,
        x: Data,
        batch_size: int | None = None,
        verbose: Verbose = "auto",
        steps: int | None = None,
        callbacks: Sequence[keras.callbacks.Callback] | None = None,
    ) -> Any:
        """Like `keras.Model.predict`, from any number of threads at once.

        Args:
            x: dict of arrays, see `bert_keras.inputs`, or a `keras.utils.PyDataset`, a
                `tf.data.Dataset` or a torch `DataLoader` of such dicts, or of tuples that begin
                with them, or a generator of such tuples.
            batch_size: int, rows in a batch of arrays, 32 by default.
            verbose: `"auto"` or 1 for a progress bar, 2 for a line at the end, 0 for neither.
            steps: int, number of batches. With `steps` or `callbacks`, Keras itself predicts, in
                one thread at a time.
            callbacks: list of `keras.callbacks.Callback`.

        Returns:
            NumPy arrays `(num_rows, ...)` in the structure of the model's output.

        Raises:
            TypeError, ValueError: inputs do not fit, or there are none.
        """
        has_own_step = type(self).predict_step is not keras.Model.predict_step
        if steps is not None or callbacks or has_own_step:
            with atomic_steps(self):
                return super().predict(x, batch_size, verbose, steps=steps, callbacks=callbacks)
        outputs = list(self.predict_batches(batches_of(x, batch_size, self.check_inputs), verbose))
        check_not_empty(outputs, "`predict` needs at least one row")
        return keras.tree.map_structure(lambda *parts: np.concatenate(parts), *outputs)

    def predict_on_batch(self, x: Inputs) -> Any:
        """Returns the model's outputs for a dict of arrays, in one batch, as NumPy arrays."""
        check_keys(x, self.input_names)
        return self.predict(x, batch_size=len(next(iter(x.values()))), verbose=0)

    def predict_batches(self, batches: Iterable[Any], verbose: Verbose = 0) -> Iterator[Any]:
        """Yields the model's outputs batch by batch. The arrays in the inputs are not checked.

        Args:
            batches: iterable of dicts of arrays, or of tuples that begin with them.
            verbose: as for `predict`.

        Yields:
            NumPy arrays `(batch, ...)` in the structure of the model's output.
        """
        outputs = predicted(self, batches)
        return with_progress(outputs, batches, verbose) if verbose else outputs

    # Files

    def save(
        self, filepath: Path, overwrite: bool = True, zipped: bool | None = None, **kwargs: Any
    ) -> None:
        """Like `keras.Model.save`; the file is written whole, or stays as it was.

        Raises:
            OSError: it cannot be written, as on a full disk; the message says what is there now.
            ValueError: the path does not end with `.keras`: HDF5 and folders hold no vocabulary.
        """
        if not str(filepath).endswith(".keras"):
            raise ValueError(
                "A model is saved in a file `*.keras`, which holds all that it needs. Received: "
                f"{str(filepath)!r}. A folder is written by `save_to_preset`, weights alone by "
                "`save_weights('*.weights.h5')`."
            )
        if "://" in str(filepath):  # Keras writes to an address by other means.
            super().save(filepath, overwrite, zipped, **kwargs)
        elif _may_write(filepath, overwrite):
            with replacing(filepath) as temporary:
                super().save(temporary, zipped=zipped, **kwargs)

    def save_weights(
        self, filepath: Path, overwrite: bool = True, max_shard_size: float | None = None
    ) -> None:
        """Like `keras.Model.save_weights`; files are written whole, or stay as they were.

        This also holds for the several files of `max_shard_size`. It does not hold for
        `keras.saving.save_model(model, path)`, which does not call the model: use `save`.

        Raises:
            OSError: they cannot be written, as on a full disk; the message says what is there now.
        """
        is_one = max_shard_size is None and str(filepath).endswith(".weights.h5")
        path = pathlib.Path(filepath)
        if "://" in str(filepath):
            super().save_weights(filepath, overwrite, max_shard_size)
        elif not _may_write(filepath, overwrite):
            return
        elif is_one:
            weights = _WeightsFile()
            super().save_weights(weights)
            with replacing(filepath) as temporary, open(temporary, "wb") as file:
                file.write(weights.getbuffer())
        else:
            shards = f"{glob.escape(path.name.split('.')[0])}_*.weights.h5"
            stale = [shard.name for shard in path.parent.glob(shards)]
            path.parent.mkdir(parents=True, exist_ok=True)
            with replacing_files(path.parent, stale, index=path.name) as new:
                super().save_weights(str(new / path.name), True, max_shard_size)

    # Layers

    def quantize(
        self,
        mode: Literal["int8", "int4", "float8"] | None = None,
        config: Any = None,
        filters: str | Sequence[str] | Callable[[keras.layers.Layer], bool] | None = None,
        **kwargs: Any,
    ) -> None:
        """Like `keras.Model.quantize`; a `.keras` file restores the quantized layers.

        It saves memory and makes files smaller. On the CPU, int8 saves time only on JAX; TensorFlow
        and PyTorch multiply int8 several times as slowly as float32, and a warning says so. An
        exported float32 program that is quantized afterwards is faster, see docs/export.md.

        Args:
            mode: `"int8"`, `"int4"` or `"float8"`; by default that of `config`.
            config: a `keras.quantizers.QuantizationConfig`, or `None` for Keras's default for the
                mode.
            filters: regular expressions of layer names, or a function of a layer; `None` for all
                layers.

        Raises:
            ValueError: another mode, or the model has adapters; nothing was changed.
        """
        mode = quantized.check_can_quantize(self, mode, config)
        if mode == "int8" and keras.backend.backend() != "jax" and not has_accelerator():
            warn(
                "On a CPU, int8 saves memory, not time: TensorFlow and PyTorch multiply it several "
                "times as slowly as float32. For speed, export the float32 model by "
                "`export('model.onnx', 'onnx')` or `export('model.xml', 'openvino')`, and quantize "
                "that program, see docs/export.md."
            )
        with quantized.replacing_weights(), warnings.catch_warnings():
            # Of layers without weights to quantize, such as dropout.
            warnings.filterwarnings("ignore", "Layer .* does not have a `quantize`")
            super().quantize(mode, config=config, filters=filters, **kwargs)

    # Config

    def get_config(self) -> dict[str, Any]:
        """Returns what every model's config has: name, dtype, and which layers are quantized."""
        return {
            "name": self.name,
            "trainable": self.trainable,
            "dtype": keras.dtype_policies.serialize(self.dtype_policy),
            **quantized.quantized_config(self),
        }

    @classmethod
    def parameters_of_constructor(cls) -> dict[str, inspect.Parameter]:
        """Returns the parameters of the constructor, with those that `**kwargs` passes on.

        Those of every model are left out: `name`, `dtype`, `trainable`.
        """
        found = {}
        for part in cls.__mro__[: cls.__mro__.index(BuiltModel)]:
            if "__init__" in vars(part):
                parameters, takes_others = parameters_of(part.__init__)
                found = {**parameters, **found}
                if not takes_others:
                    break
        for name in (*cls.decided_arguments, *_MODEL_ARGUMENTS):
            found.pop(name, None)
        return found

    @classmethod
    @functools.cache
    def argument_names(cls) -> frozenset[str]:
        """Returns the names of all arguments of the constructor."""
        return frozenset({*cls.parameters_of_constructor(), *_MODEL_ARGUMENTS})

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Self:
        """Returns a model from a config that `get_config` returned.

        Raises:
            ValueError: an argument is unknown, as in a file that a newer version wrote.
        """
        config = dict(config)
        layers = config.pop("quantized_layers", [])
        argument_names = cls.argument_names()
        unknown = [name for name in config if name not in argument_names]
        if unknown:
            raise ValueError(
                f"{cls.__name__} knows the arguments {sorted(argument_names)}. The config also has "
                f"{unknown}. Was it written by a newer version of bert_keras? Upgrade, then load "
                "it again."
            )
        is_trainable = config.pop("trainable", True)
        model = cls(**config)
        if layers:
            quantized.quantize_again(model, layers)
        if not is_trainable:
            # Now that variables exist: on TensorFlow they ignore the constructor's `trainable`.
            model.trainable = False
        return model

    def get_build_config(self) -> None:
        """Returns `None`: construction builds everything, so loading has nothing to rebuild."""
        return None

    def build_from_config(self, config: Any) -> None:
        """Does nothing, see `get_build_config`."""


def _completing(init):
    """Returns a constructor that calls `complete` if no subclass's constructor called it."""

    @functools.wraps(init)
    def completing(self, *args, **kwargs):
        init(self, *args, **kwargs)
        if type(self).__init__ is completing:
            self.complete()

    completing.completes = True
    return with_signature(completing, init)


def settings_of(model: BuiltModel, exclude: Sequence[str] = ()) -> dict[str, Any]:
    """Returns a dict of a model's own constructor arguments, read from its attributes.

    Args:
        model: a `BuiltModel`.
        exclude: names to leave out.
    """
    names = sorted(type(model).argument_names() - {*_MODEL_ARGUMENTS, *exclude})
    if missing := [name for name in names if not hasattr(model, name)]:
        raise AttributeError(
            "A model is saved with the arguments of its constructor, which must be attributes of "
            f"the same names. {type(model).__name__} has no attributes {missing}. Set them in its "
            f"`__init__`, `self.{missing[0]} = {missing[0]}`, or write a `get_config`."
        )
    values = {name: getattr(model, name) for name in names}
    return {name: list(v) if isinstance(v, tuple) else v for name, v in values.items()}


def flatten_texts(inputs: Inputs) -> Inputs:
    """Returns inputs `(batch, group, seq_len)` as a backbone takes them.

    Args:
        inputs: dict of ints `(batch, group, seq_len)`, see `bert_keras.inputs`.

    Returns:
        A dict of ints `(batch * group, seq_len)`, the texts of a group one after the other.
    """
    return {key: keras.ops.reshape(x, (-1, keras.ops.shape(x)[-1])) for key, x in inputs.items()}


def layer_for(
    backbone: keras.Model, layer_class: type[_Layer], name: str, *shared: str, **options: Any
) -> _Layer:
    """Returns a layer or a head with the width, the initial values and the dtype of a backbone.

    Args:
        backbone: a `Backbone`.
        layer_class: a class of layers with the arguments `hidden_dim` and `initializer_range`.
        name: str.
        *shared: further arguments of the class that take the backbone's value of that name.
        **options: other arguments of the class.
    """
    shared = ("hidden_dim", "initializer_range", *shared)
    values = {argument: getattr(backbone, argument) for argument in shared}
    return layer_class(**{"dtype": backbone.dtype_policy, "name": name, **values, **options})


class _WeightsFile(io.BytesIO):
    """A file in memory with a name for Keras: on a full disk HDF5 would end the process."""

    def __str__(self):
        return ".weights.h5"


def _may_write(path, overwrite):
    """Whether to write a file; asks on the terminal, as Keras does, if it must not be replaced."""
    may_write = overwrite or not os.path.exists(path)
    return may_write or input(f"{path} exists. Overwrite it? [y/n] ").strip().lower() == "y"
