"""What every model of the package, backbone or task, does beyond `keras.Model`."""

import glob
import inspect
import io
import os
import pathlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Literal, Self, TypeVar, Unpack

import keras
import numpy as np
from keras.src.utils.io_utils import ask_to_proceed_with_overwrite

from bert_keras import distribution
from bert_keras.engine import quantized, structure
from bert_keras.engine.atomic_files import replacing, replacing_files
from bert_keras.engine.forked import check_not_forked, note_process
from bert_keras.engine.prediction import batches_of, prediction_of, shown, with_progress
from bert_keras.engine.summary import output_shapes
from bert_keras.engine.tensorflow_data import call_untuned
from bert_keras.engine.whole_steps import WholeSteps, build_optimizer, whole_end, whole_steps
from bert_keras.export import programs as export
from bert_keras.export import text_program as from_text
from bert_keras.export.runtime_folder import write_folder
from bert_keras.inputs import ROW_PLACES, check_keys
from bert_keras.models.to_presets import ToPresets
from bert_keras.other_names import WithOtherNames, check_arguments
from bert_keras.types import Data, Inputs, LayerOptions, Path, Verbose

_Layer = TypeVar("_Layer", bound=keras.layers.Layer)

_MODEL_ARGUMENTS = ("name", "dtype", "trainable")
_MANY = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


class BuiltModel(WithOtherNames, ToPresets, WholeSteps, keras.Model):
    """A `keras.Model` whose variables all exist after construction.

    - A subclass creates its layers in `__init__`, builds them in `build`, which skips children that
      are built already, and calls `self.build()` as the last line of `__init__`. A further
      subclass that adds layers creates and builds them in its own `build`, before
      `super().build()`.
    - Loading therefore never has to guess shapes, and weights never meet an unbuilt layer.
    - Inputs given as NumPy arrays are checked before any compute; tensors are not.
    - `predict` changes nothing, so any number of threads may predict at once.
    - Whatever ends `fit` or `evaluate`, an exception or Ctrl-C, leaves the weights as the last
      whole step had them. Signals wait for the end of a step.

    A subclass sets `input_names`, has a method `check_arrays(inputs)`, and keeps each argument of
    its constructor as an attribute of the same name, from which its config is made.
    """

    input_names = ()
    # Axes of the inputs: texts, tokens.
    num_input_axes = 2
    # Inputs beside the backbone's without which there is no call.
    further_inputs = ()
    # Arguments of a parent's constructor that this class decides itself.
    decided_arguments = ()
    _prediction = _compiled_for = None

    def __init__(self, **kwargs: Unpack[LayerOptions]) -> None:
        note_process()
        distribution.check_engine()
        super().__init__(**kwargs)

    def __call__(self, inputs: Inputs, *args: Any, **kwargs: Any) -> Any:
        check_not_forked()
        self.check_inputs(inputs)
        return super().__call__(inputs, *args, **kwargs)

    def __getattr__(self, name):
        # Reached for what is not there; on PyTorch that is also where layers are kept.
        if name in ("input", "inputs", "output", "outputs"):
            raise AttributeError(
                f"{type(self).__name__} is a subclassed model, which has no symbolic `{name}`. For "
                "a functional model call it: inputs = {name: keras.Input((None,), dtype='int32', "
                "name=name) for name in model.input_names}; keras.Model(inputs, model(inputs))."
            )
        if keras.backend.backend() == "torch":
            return super().__getattr__(name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def check_inputs(self, inputs: Inputs) -> None:
        """Raises `TypeError` or `ValueError` when a dict of inputs does not fit this model.

        Args:
            inputs: dict of integer arrays or tensors, see `bert_keras.inputs`. Values are checked
                where all are NumPy arrays, names always.
        """
        check_keys(inputs, (*self.input_names, ROW_PLACES))
        if all(isinstance(value, np.ndarray) for value in inputs.values()):
            self.check_arrays(inputs)

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Self:
        """Returns a model of a config that `get_config` made.

        Raises:
            ValueError: an argument is unknown, as in a file written by a newer version.
        """
        config = dict(config)
        layers = config.pop("quantized_layers", [])
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
        quantized.quantize_again(model, layers)
        if not is_trainable:
            # Once the variables exist: on TensorFlow they do not take it from the constructor.
            model.trainable = False
        return model

    def quantize(
        self,
        mode: Literal["int8", "int4", "float8"] | None = None,
        config: Any = None,
        filters: str | Sequence[str] | Callable[[keras.layers.Layer], bool] | None = None,
        **kwargs: Any,
    ) -> None:
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
        quantized.check_can_quantize(self, mode, config)
        with quantized.replacing_weights():
            super().quantize(mode, config=config, filters=filters, **kwargs)

    def get_config(self) -> dict[str, Any]:
        """Returns what all models' configs have: name, dtype, and which layers are quantized."""
        return {
            "name": self.name,
            "trainable": self.trainable,
            "dtype": keras.dtype_policies.serialize(self.dtype_policy),
            **quantized.quantized_config(self),
        }

    def get_build_config(self) -> None:
        """Returns `None`: construction builds everything, so loading has nothing to rebuild."""
        return None

    def build_from_config(self, config: Any) -> None:
        """Does nothing, see `get_build_config`."""

    def compile(self, *args: Any, **kwargs: Any) -> None:
        """Like `keras.Model.compile`, also for what `predict` has compiled."""
        super().compile(*args, **kwargs)
        self._prediction = self._compiled_for = None
        self._give_up_older_functions()

    def _give_up_older_functions(self):
        """Compiles anew where layers, maybe shared with another model, have other variables now."""
        if self._compiled_for != structure.version:
            self._compiled_for = structure.version
            self.train_function = self.test_function = self.predict_function = None

    def summary(self, *args: Any, **kwargs: Any) -> None:
        """Like `keras.Model.summary`, with the shapes of the layers that `call` calls."""
        with output_shapes(self):
            super().summary(*args, **kwargs)

    def save(
        self, filepath: Path, overwrite: bool = True, zipped: bool | None = None, **kwargs: Any
    ) -> None:
        """Like `keras.Model.save`; the file is whole or as it was, whatever ends the call.

        Raises:
            OSError: it cannot be written, as on a full disk; it says what is there now.
            ValueError: the path does not end with `.keras`: HDF5 and folders hold no vocabulary.
        """
        if not str(filepath).endswith(".keras"):
            raise ValueError(
                "A model is saved in a file `*.keras`, which holds all that it needs. Received: "
                f"{str(filepath)!r}. A folder is written by `save_to_preset`, weights alone by "
                "`save_weights('*.weights.h5')`."
            )
        if "://" in str(filepath):  # Which Keras writes by other means.
            super().save(filepath, overwrite, zipped, **kwargs)
        elif _may_write(filepath, overwrite):
            with replacing(filepath) as temporary:
                super().save(temporary, zipped=zipped, **kwargs)

    def save_weights(
        self, filepath: Path, overwrite: bool = True, max_shard_size: float | None = None
    ) -> None:
        """Like `keras.Model.save_weights`; the file is whole or as it was, whatever ends the call.

        So are several files, which `max_shard_size` asks for. Not so is what
        `keras.saving.save_model(model, path)` writes, which never asks the model: use `save`.

        Raises:
            OSError: it cannot be written, as on a full disk; it says what is there now.
        """
        is_one = max_shard_size is None and str(filepath).endswith(".weights.h5")
        path = pathlib.Path(filepath)
        if "://" in str(filepath):
            super().save_weights(filepath, overwrite, max_shard_size)
        elif _may_write(filepath, overwrite) and not is_one:
            shards = f"{glob.escape(path.name.split('.')[0])}_*.weights.h5"
            stale = [found.name for found in path.parent.glob(shards)]
            with replacing_files(path.parent, stale, index=path.name) as new:
                super().save_weights(str(new / path.name), True, max_shard_size)
        elif _may_write(filepath, overwrite):
            weights = _WeightsFile()
            super().save_weights(weights)
            with replacing(filepath) as temporary, open(temporary, "wb") as file:
                file.write(weights.getbuffer())

    def export(
        self,
        filepath: Path,
        format: Literal["tf_saved_model", "litert", "onnx", "openvino", "torch"] = "tf_saved_model",
        verbose: bool | None = None,
        input_signature: Any = None,
        *,
        text: bool = False,
        **kwargs: Any,
    ) -> None:
        """Like `keras.Model.export`, by default for any number of rows and tokens.

        The program takes the dict of inputs that a task's backbone takes, int32 `(batch, seq_len)`,
        all of them, and returns a dict of outputs: `logits`, or where a model has several each by
        its name, such as `start_logits`. A language model's are at every token, of a tagger with a
        CRF the emissions. Inputs and outputs have these names in each format. What the backend
        cannot write, another does in a process of its own. Files that are there are replaced, all
        or on an error none.

        | format | file | written by |
        |---|---|---|
        | `"tf_saved_model"` | a folder | TensorFlow, JAX |
        | `"litert"` | `*.tflite` | TensorFlow |
        | `"onnx"` | `*.onnx`, above 1.5 GB with `*.onnx.data` | PyTorch and onnxscript |
        | `"openvino"` | `*.xml` and `*.bin` | PyTorch, onnxscript and openvino |
        | `"torch"` | `*.pt2` | PyTorch |

        Args:
            filepath: str or path; with `"onnx"` one that does not end with `.onnx` is a folder that
                answers without Keras, see `bert_keras.export.runtime`.
            format: str, see above.
            verbose: bool, see `keras.Model.export`.
            input_signature: see `keras.Model.export`; `None` for any number of rows and tokens,
                which ONNX and OpenVINO always take.
            text: bool, whether the program takes texts instead, with the tokenizer inside, and
                answers with probabilities and labels too: a SavedModel, by TensorFlow, of a task
                whose texts are classified, scored or embedded. See docs/text_in.md.
            **kwargs: the format's own, where the backend writes it: see `keras.Model.export`.

        Raises:
            ImportError: a package that writes the format is missing; it says which.
            RuntimeError: the other backend's process failed; it says why.
            ValueError: the format, the path or an argument does not fit.

        Example:
        ```python
        classifier.export("served")
        served = tf.saved_model.load("served")  # needs neither Keras nor this package
        inputs = {name: tf.constant(ids) for name, ids in preprocessor(texts).items()}
        served.serve(inputs)["logits"]
        ```
        """
        if text:
            from_text.check(self, format, input_signature, kwargs)
            return export.export(self, filepath, "texts", verbose)
        options = {"input_signature": input_signature, **kwargs}
        if format in ("onnx", "openvino"):
            if input_signature is not None or kwargs:
                raise ValueError(
                    f"{format!r} is exported for any number of rows and tokens, without "
                    f"`input_signature` or other arguments. Received: {options}."
                )
            options = {}
        if format == "onnx" and not str(filepath).endswith(".onnx"):
            return write_folder(self, filepath, verbose)
        export.export(self, filepath, format, verbose, **options)

    def fit(self, *args: Any, **kwargs: Any) -> keras.callbacks.History:
        """Like `keras.Model.fit`; whatever ends it leaves the weights of the last whole step.

        Where standard output is no terminal, `verbose="auto"` prints a line an epoch.
        """
        check_arguments(kwargs, keras.Model.fit)
        if len(args) < 5:
            kwargs["verbose"] = shown(kwargs.get("verbose", "auto"))
        self._give_up_older_functions()
        build_optimizer(self)
        distribution.begin_alike(self)
        with whole_steps(self), whole_end(self):
            return call_untuned(super().fit, *args, **kwargs)

    def evaluate(self, *args: Any, **kwargs: Any) -> Any:
        """Like `keras.Model.evaluate`; whatever ends it leaves the weights as they were."""
        if len(args) < 4:
            kwargs["verbose"] = shown(kwargs.get("verbose", "auto"))
        self._give_up_older_functions()
        with whole_steps(self):
            return call_untuned(super().evaluate, *args, **kwargs)

    def train_on_batch(self, *args: Any, **kwargs: Any) -> Any:
        """Like `keras.Model.train_on_batch`, see `fit`."""
        check_keys(_first(args, kwargs), (*self.input_names, ROW_PLACES))
        build_optimizer(self)
        with whole_steps(self):
            return super().train_on_batch(*args, **kwargs)

    def test_on_batch(self, *args: Any, **kwargs: Any) -> Any:
        """Like `keras.Model.test_on_batch`, see `evaluate`."""
        check_keys(_first(args, kwargs), (*self.input_names, ROW_PLACES))
        with whole_steps(self):
            return super().test_on_batch(*args, **kwargs)

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
                `tf.data.Dataset` or a torch `DataLoader` of such dicts or of tuples that begin with
                them, or a generator of such tuples.
            batch_size: int, rows of a batch of arrays, 32 by default.
            verbose: `"auto"` and 1 for a progress bar, 2 for a line at the end, 0 for neither.
            steps: int, number of batches. With it, and with `callbacks`, Keras predicts, in one
                thread at a time.
            callbacks: list of `keras.callbacks.Callback`.

        Returns:
            NumPy arrays `(num_rows, ...)` in the structure of the model's output.

        Raises:
            TypeError, ValueError: inputs do not fit, or there are none.
        """
        has_own_step = type(self).predict_step is not keras.Model.predict_step
        if steps is not None or callbacks or has_own_step:
            with whole_steps(self):
                return call_untuned(
                    super().predict, x, batch_size, verbose, steps=steps, callbacks=callbacks
                )
        outputs = list(self.predict_batches(batches_of(x, batch_size, self.check_inputs), verbose))
        if not outputs:
            raise ValueError("`predict` needs at least one row. Received: none.")
        return keras.tree.map_structure(lambda *parts: np.concatenate(parts), *outputs)

    def predict_on_batch(self, x: Inputs) -> Any:
        """Returns the model's outputs for a dict of arrays, all at once, as NumPy arrays."""
        check_keys(x, (*self.input_names, ROW_PLACES))
        return self.predict(x, batch_size=len(next(iter(x.values()))), verbose=0)

    def predict_batches(self, batches: Iterable[Any], verbose: Verbose = 0) -> Iterator[Any]:
        """Yields the model's outputs batch by batch. The arrays in the inputs are not checked.

        Args:
            batches: iterable of dicts of arrays, or of tuples that begin with them.
            verbose: as for `predict`.

        Yields:
            NumPy arrays `(batch, ...)` in the structure of the model's output, maybe read-only.
        """
        self.settle()  # A callback of `fit` may predict.
        outputs = prediction_of(self).over(batches)
        return with_progress(outputs, batches, verbose) if verbose else outputs


class _WeightsFile(io.BytesIO):
    """A file in memory, since HDF5 ends the process where a disk is full, with a name for Keras."""

    def __str__(self):
        return ".weights.h5"


def _may_write(path, overwrite):
    return overwrite or not os.path.exists(path) or ask_to_proceed_with_overwrite(path)


def _first(args, kwargs):
    """Returns the argument `x` of a call."""
    return args[0] if args else kwargs.get("x")


def arguments_of(cls: type) -> set[str]:
    """Returns the names of the arguments that `cls(...)` takes, and hands on, a set of str."""
    is_model = issubclass(cls, BuiltModel)
    names = set(_MODEL_ARGUMENTS if is_model else ())
    for part in cls.__mro__[: cls.__mro__.index(BuiltModel) if is_model else 1]:
        parameters = inspect.signature(part.__init__).parameters if "__init__" in vars(part) else {}
        names |= {name for name, p in parameters.items() if p.kind not in _MANY}
        if parameters and all(p.kind != p.VAR_KEYWORD for p in parameters.values()):
            break
    return names - {"self", *getattr(cls, "decided_arguments", ())}


def settings_of(model: BuiltModel, but: Sequence[str] = ()) -> dict[str, Any]:
    """Returns the constructor's arguments but Keras's, from the attributes, a dict.

    Args:
        model: a `BuiltModel`.
        but: names to leave out.
    """
    names = sorted(arguments_of(type(model)) - {*_MODEL_ARGUMENTS, *but})
    values = {name: getattr(model, name) for name in names}
    return {name: list(v) if isinstance(v, tuple) else v for name, v in values.items()}


def layer_for(
    backbone: keras.Model, layer_class: type[_Layer], name: str, **options: Any
) -> _Layer:
    """Returns a layer or a head with the sizes and rates of a backbone.

    Args:
        backbone: a `Backbone`. An argument of the class that is an attribute of the backbone, such
            as `hidden_dim`, is that.
        layer_class: a class of layers.
        name: str.
        **options: arguments of the class that are others than the backbone's.
    """
    known = inspect.signature(layer_class).parameters
    shared = {key: getattr(backbone, key) for key in known if hasattr(backbone, key)}
    return layer_class(**{"dtype": backbone.dtype_policy, "name": name, **shared, **options})
