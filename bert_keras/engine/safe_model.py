"""A `keras.Model` that keeps its weights and files whole, for any number of threads.

Why: each method overrides one of `keras.Model`. The module that the method calls explains the bug,
and names the test that fails once Keras has fixed it, such as
`test_an_exception_in_keras_s_predict_loses_weights`.
"""

import glob
import io
import os
import pathlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Literal, Unpack

import keras
import numpy as np

from bert_keras import distribution
from bert_keras.checks import check_not_empty
from bert_keras.engine import quantized, variable_paths
from bert_keras.engine.atomic_files import replacing, replacing_files
from bert_keras.engine.fast_layer_call import adds_nothing
from bert_keras.engine.keras_internals import all_layers, own_metrics
from bert_keras.engine.prediction import batches_of, prediction_of, resolve_verbose, with_progress
from bert_keras.engine.train_step import (
    AtomicTrainStep,
    atomic_end,
    atomic_steps,
    build_optimizer,
    inner_optimizer,
    is_distributed,
)
from bert_keras.signatures import check_arguments, parameters_of
from bert_keras.types import Data, Inputs, LayerOptions, Path, Verbose

_FIT_ARGUMENTS = parameters_of(keras.Model.fit)[0].keys()


class SafeModel(AtomicTrainStep, keras.Model):
    """A `keras.Model` that no exception or signal leaves half changed.

    - Any number of threads may predict at once, since `predict` changes nothing.
    - When `fit` or `evaluate` ends, even by an exception or Ctrl-C, the weights are those after the
      last whole step. Signals wait for the end of a step.
    - A file is written whole, or stays as it was.

    A subclass defines `check_inputs(inputs)`, which raises if a dict of inputs does not fit, and
    `check_names(inputs)`, which only looks at the names.
    """

    _prediction = _compiled_for = None
    # Keras and PyTorch look these up; a missing attribute would raise an error each time.
    output_names, _is_replica = None, False

    def __init__(self, **kwargs: Unpack[LayerOptions]) -> None:
        if keras.distribution.distribution() is not None:
            distribution.check_engine()
        super().__init__(**kwargs)

    def __call__(self, inputs: Inputs, *args: Any, **kwargs: Any) -> Any:
        self.check_inputs(inputs)
        if adds_nothing(self, (inputs, *args), kwargs):
            return self.call(inputs, *args, **kwargs)
        if kwargs.keys() - {"training", "mask"}:
            check_arguments(kwargs, self.call, ["mask"])
        return super().__call__(inputs, *args, **kwargs)

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
        """Like `keras.Model.compile`; `predict` compiles anew too."""
        super().compile(*args, **kwargs)
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
        """Like `keras.Model.fit`; however it ends, the weights are those of a whole step.

        If the standard output is not a terminal, `verbose="auto"` prints one line per epoch.
        """
        if unknown := kwargs.keys() - _FIT_ARGUMENTS:
            check_arguments(unknown, keras.Model.fit)
        if len(args) < 5 and kwargs.get("verbose", "auto") == "auto":
            kwargs["verbose"] = resolve_verbose("auto")
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
        if len(args) < 4 and kwargs.get("verbose", "auto") == "auto":
            kwargs["verbose"] = resolve_verbose("auto")
        self._drop_stale_functions()
        with atomic_steps(self):
            return super().evaluate(*args, **kwargs)

    def train_on_batch(self, x: Inputs, *args: Any, **kwargs: Any) -> Any:
        """Like `keras.Model.train_on_batch`, see `fit`."""
        self.check_names(x)
        build_optimizer(self)
        with atomic_steps(self):
            return super().train_on_batch(x, *args, **kwargs)

    def test_on_batch(self, x: Inputs, *args: Any, **kwargs: Any) -> Any:
        """Like `keras.Model.test_on_batch`, see `evaluate`."""
        self.check_names(x)
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
        self.check_names(x)
        return self.predict(x, batch_size=len(next(iter(x.values()))), verbose=0)

    def predict_batches(self, batches: Iterable[Any], verbose: Verbose = 0) -> Iterator[Any]:
        """Yields the model's outputs batch by batch. The arrays in the inputs are not checked.

        Args:
            batches: iterable of dicts of arrays, or of tuples that begin with them.
            verbose: as for `predict`.

        Yields:
            NumPy arrays `(batch, ...)` in the structure of the model's output.
        """
        outputs = prediction_of(self).over(batches)
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
        elif _may_write(filepath, overwrite) and not is_one:
            shards = f"{glob.escape(path.name.split('.')[0])}_*.weights.h5"
            stale = [shard.name for shard in path.parent.glob(shards)]
            path.parent.mkdir(parents=True, exist_ok=True)
            with replacing_files(path.parent, stale, index=path.name) as new:
                super().save_weights(str(new / path.name), True, max_shard_size)
        elif _may_write(filepath, overwrite):
            weights = _WeightsFile()
            super().save_weights(weights)
            with replacing(filepath) as temporary, open(temporary, "wb") as file:
                file.write(weights.getbuffer())

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
        and PyTorch multiply int8 several times as slowly as float32, see docs/benchmarks.md.

        Args:
            mode: `"int8"`, `"int4"` or `"float8"`; by default that of `config`.
            config: a `keras.quantizers.QuantizationConfig`, or `None` for Keras's default for the
                mode.
            filters: regular expressions of layer names, or a function of a layer; `None` for all
                layers.

        Raises:
            ValueError: another mode, or the model has adapters; nothing was changed.
        """
        quantized.check_can_quantize(self, mode, config)
        with quantized.replacing_weights():
            super().quantize(mode, config=config, filters=filters, **kwargs)


class _WeightsFile(io.BytesIO):
    """A file in memory with a name for Keras: on a full disk HDF5 would end the process."""

    def __str__(self):
        return ".weights.h5"


def _may_write(path, overwrite):
    """Whether to write a file; asks on the terminal, as Keras does, if it must not be replaced."""
    may_write = overwrite or not os.path.exists(path)
    return may_write or input(f"{path} exists. Overwrite it? [y/n] ").strip().lower() == "y"
