"""The base class of every model in the package: its inputs and its config."""

import contextlib
import functools
import inspect
import itertools
import types
from collections.abc import Iterable, Sequence
from typing import Any, Self, TypeVar

import keras
import numpy as np

from bert_keras.engine import quantized
from bert_keras.engine.keras_internals import all_layers
from bert_keras.engine.safe_model import SafeModel
from bert_keras.inputs import TOKEN_IDS, check_keys
from bert_keras.migration_hints import NotHere, missing_attribute
from bert_keras.models.export_mixin import ExportMixin
from bert_keras.signatures import parameters_of, with_signature
from bert_keras.types import Inputs

_Layer = TypeVar("_Layer", bound=keras.layers.Layer)

_MODEL_ARGUMENTS = ("name", "dtype", "trainable")


class BuiltModel(ExportMixin, SafeModel):
    """A `keras.Model` whose variables all exist after construction.

    - A subclass creates its layers in `__init__`, builds them in `build`, which skips children that
      are already built, and calls `self.build((None, None))` as the last line of `__init__`.
    - A further subclass may create layers and metrics after `super().__init__()`, as in any Keras
      model. When the outermost `__init__` has returned, `complete` builds the layers that `call`
      calls.
    - Loading therefore never has to guess shapes or to build layers.
    - NumPy inputs are checked before any compute; tensors are not.

    A subclass sets `input_names`, has a method `check_arrays(inputs)`, and keeps each constructor
    argument as an attribute of the same name, from which its config is made.

    See `SafeModel` for training, prediction and files, and `ExportMixin` for presets and exports.
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
    from_pretrained = NotHere()

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        # Also if a mixin's constructor comes first in the MRO: it would not call `complete`.
        if "__init__" in vars(cls) or not hasattr(cls.__init__, "completes"):
            cls.__init__ = _completing(cls.__init__)

    def complete(self) -> None:
        """Ends construction: builds layers that subclasses added, and allows no further ones."""
        if not all(layer.built for layer in all_layers(self)):
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
        # Keras calls it after `build`, before a subclass's constructor has ended.
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

    def check_names(self, inputs: Inputs) -> None:
        """Raises `TypeError` or `ValueError` unless `inputs` is a dict with known names."""
        names = self.input_names
        if not (isinstance(inputs, dict) and TOKEN_IDS in inputs and inputs.keys() <= {*names}):
            check_keys(inputs, names)

    def check_inputs(self, inputs: Inputs) -> None:
        """Raises `TypeError` or `ValueError` when a dict of inputs does not fit this model.

        Args:
            inputs: dict of integer arrays or tensors, see `bert_keras.inputs`. Names are always
                checked, values if all of them are NumPy arrays.
        """
        self.check_names(inputs)
        if all(map(isinstance, inputs.values(), itertools.repeat(np.ndarray))):
            self.check_arrays(inputs)

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
        """Returns the constructor's parameters by name, with those that `**kwargs` passes on."""
        return parameters_of_constructor(cls)

    @classmethod
    def takes(cls, names: Iterable[str]) -> bool:
        """Returns whether the constructor takes arguments of all these names."""
        return arguments_of(cls).issuperset(names)

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Self:
        """Returns a model from a config that `get_config` returned.

        Raises:
            ValueError: an argument is unknown, as in a file that a newer version wrote.
        """
        config = dict(config)
        layers = config.pop("quantized_layers", [])
        argument_names = arguments_of(cls)
        unknown = [name for name in config if name not in argument_names]
        if unknown:
            raise ValueError(
                f"{cls.__name__} knows the arguments {sorted(argument_names)}. The config also has "
                f"{unknown}. Was it written by a newer version of bert_keras? Upgrade, then load "
                "it again."
            )
        is_trainable = config.pop("trainable", True)
        model = cls(**config)
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


def parameters_of_constructor(cls: type) -> dict[str, inspect.Parameter]:
    """Returns the parameters that `cls(...)` takes by their names, its parents' included.

    Of a model, those that Keras takes are left out: name, dtype, trainable.
    """
    found, is_model = {}, issubclass(cls, BuiltModel)
    for part in cls.__mro__[: cls.__mro__.index(BuiltModel) if is_model else 1]:
        if "__init__" in vars(part):
            parameters, takes_others = parameters_of(part.__init__)
            found = {**parameters, **found}
            if not takes_others:
                break
    left_out = (*cls.decided_arguments, *_MODEL_ARGUMENTS) if is_model else ()
    return {name: parameter for name, parameter in found.items() if name not in left_out}


@functools.cache
def arguments_of(cls: type) -> frozenset[str]:
    """Returns the names of the arguments that `cls(...)` takes, its parents' included."""
    of_keras = _MODEL_ARGUMENTS if issubclass(cls, BuiltModel) else ()
    return frozenset({*parameters_of_constructor(cls), *of_keras})


def settings_of(model: BuiltModel, exclude: Sequence[str] = ()) -> dict[str, Any]:
    """Returns a dict of a model's own constructor arguments, read from its attributes.

    Args:
        model: a `BuiltModel`.
        exclude: names to leave out.
    """
    names = sorted(arguments_of(type(model)) - {*_MODEL_ARGUMENTS, *exclude})
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
