"""Callbacks: a count of batches, weights that must not change, and the best epoch by any metric."""

import json
import math
import threading
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal

import keras

from bert_keras import distribution
from bert_keras.checks import check_choice, check_int, check_type
from bert_keras.engine.atomic_files import replacing
from bert_keras.engine.keras_internals import all_layers
from bert_keras.training.averages import swap_ema_weights


class BatchCounter(keras.callbacks.Callback):
    """Counts the batches of an epoch, in `batches_done`.

    It reads no logs, so it is `async_safe`: Keras then need not read the metrics of every step from
    the device. In return, Keras may call `on_train_batch_end` from several threads, in any order.

    Raises:
        ValueError: in `fit`, if `steps_per_execution` does not divide the steps of an epoch: Keras
            then reports more batches than it has trained on, or trains on more than an epoch has.
    """

    async_safe = True

    def __init__(self) -> None:
        super().__init__()
        self._lock = threading.Lock()
        self.batches_done = 0

    def on_epoch_begin(self, epoch, logs=None):
        self.batches_done = 0
        # A training loop of one's own may lack the number of steps.
        steps, group = (self.params or {}).get("steps"), self.model.steps_per_execution
        if steps and steps % group:
            raise ValueError(
                f"`steps_per_execution` must divide the {steps} steps of an epoch, since a log or "
                f"a checkpoint counts them. Received: {group}. Compile with another number."
            )

    def on_train_batch_end(self, batch, logs=None):
        with self._lock:
            self.batches_done = max(self.batches_done, batch + 1)


class RefuseOtherWeights(keras.callbacks.Callback):
    """Raises `ValueError` if another callback changes which weights train.

    The optimizer does not know weights that are added or unfrozen. TensorFlow would ignore such a
    change, and JAX fail with a message about states of the optimizer.
    """

    def _weights(self):
        # Of each layer: on PyTorch, `fit` lists those of the model once.
        return {id(x): x.path for layer in all_layers(self.model) for x in layer.trainable_weights}

    def set_model(self, model):
        super().set_model(model)
        self._known = self._weights()  # Before `on_train_begin` of any callback.

    def on_epoch_begin(self, epoch, logs=None):
        if changed := dict(self._known.items() ^ self._weights().items()):
            raise ValueError(
                "A callback must not add, freeze or unfreeze weights: the optimizer of `fit` would "
                f"not notice. Received: {min(changed.values())}, {len(changed)} in all. Do so "
                "before `fit`, or between two calls, and call `compile` after it."
            )

    on_epoch_end = on_epoch_begin


class BestOnMetric(keras.callbacks.Callback):
    """Measures the model after each epoch, keeps the best weights, and can stop early.

    A metric such as entity F1, SQuAD F1 or Matthews correlation is not a mean over batches: it is
    computed from the answers to the whole development set. So `measure` is a function of the model.
    With an optimizer that averages weights (`use_ema`), the averages are measured and kept, since
    `fit` ends with them.

    Unlike `keras.callbacks.EarlyStopping`, this callback restores the best weights even when
    training runs to its end, counts the first epoch, and never takes NaN as the best. The optimizer
    keeps its last state.

    Args:
        measure: callable, `measure(model)` returns a float, or a dict of floats by name.
        name: str, the value is logged as `val_<name>`. If `measure` returns a dict, every value is
            logged under its own name, and the one called `name` decides.
        mode: `"max"` if higher is better, or `"min"`.
        patience: int, training stops after this many epochs without a new best; `None` never stops
            early.
        restore_best_weights: bool, whether training ends with the best weights or the last ones.
        path: str, a `.keras` file that holds the best model so far, so that a killed run does not
            lose it; `None` keeps the weights in memory only. The file also holds the value and the
            epoch, in `best.json`. A run resumed with `fit(initial_epoch=...)` reads them, and ends
            like a run that was never interrupted.
        verbose: bool, whether to print each new best and the reason for stopping.

    Attributes:
        best: float, the best value, or `None` before the first epoch.
        best_epoch: int, its epoch, counted from 0.

    Raises:
        TypeError: `measure` is not callable.
        ValueError: an argument is out of range; `measure` returns a dict without `name`.

    Example:
    ```python
    best = BestOnMetric(
        lambda model: entity_f1(dev_tags, model.tag(dev_sentences)), name="entity_f1", patience=2
    )
    model.fit(sentences, tags, epochs=10, callbacks=[best])
    ```
    """

    def __init__(
        self,
        measure: Callable[[Any], float | Mapping[str, float]],
        name: str = "metric",
        mode: Literal["max", "min"] = "max",
        patience: int | None = None,
        restore_best_weights: bool = True,
        path: Path | None = None,
        verbose: bool = False,
    ) -> None:
        super().__init__()
        if patience is not None:
            check_int("patience", patience, advice="None never stops early.")
        if path is not None and not str(path).endswith(".keras"):
            raise ValueError(f"`path` must end in '.keras'. Received: {str(path)!r}.")
        self.measure = check_type("measure", measure, Callable, "a function of the model")
        self.name = name
        self.mode = check_choice("mode", mode, ("max", "min"))
        self.patience = patience
        self.restore_best_weights = restore_best_weights
        self.path = None if path is None else Path(path)
        self.verbose = verbose
        self.best = None
        self.best_epoch = None

    def on_train_begin(self, logs=None):
        self.best = self.best_epoch = self._best_weights = self._first_epoch = None
        if self.path:  # If the folder cannot be made, this fails before the first epoch.
            self.path.parent.mkdir(parents=True, exist_ok=True)

    def on_epoch_begin(self, epoch, logs=None):
        if self._first_epoch is None:
            self._first_epoch = epoch
            if epoch and self.path and self.path.exists():
                self._read_best()

    def on_epoch_end(self, epoch, logs=None):
        with swap_ema_weights(self.model):
            value = self._measure_and_log(logs)
            if self._is_best(value):
                self.best, self.best_epoch = value, epoch
                self._best_weights = self.model.get_weights()
                self._write_best()
                self._print(f"Epoch {epoch + 1}: {self.name} {value:.4f} is the best so far.")
        waited = epoch - (self._first_epoch - 1 if self.best is None else self.best_epoch)
        if self.patience is not None and waited >= self.patience:
            self._print(f"Epoch {epoch + 1}: no better {self.name} for {waited} epochs, stopping.")
            self.model.stop_training = True

    def on_train_end(self, logs=None):
        if self.restore_best_weights and self.best is not None:
            self._print(f"Restoring the weights of epoch {self.best_epoch + 1}.")
            if self._best_weights is None:  # The best epoch came before this run resumed.
                self.model.load_weights(self.path)
            else:
                self.model.set_weights(self._best_weights)
        self._best_weights = None

    def _write_best(self):
        if not self.path or distribution.process()[0]:
            return
        state = {"name": self.name, "value": self.best, "epoch": self.best_epoch}
        with replacing(self.path) as temporary:
            self.model.save(temporary)
            with zipfile.ZipFile(temporary, "a") as file:
                file.writestr("best.json", json.dumps(state))

    def _read_best(self):
        with zipfile.ZipFile(self.path) as file:
            if "best.json" not in file.namelist():  # Not written by this callback.
                return
            state = json.loads(file.read("best.json"))
        if state["name"] != self.name:
            raise ValueError(
                f"`path` must hold the best model by {self.name!r}. Received: {self.path}, the "
                f"best by {state['name']!r}. Pass another `path`."
            )
        # A best epoch that this run will train again does not count.
        if state["epoch"] < self._first_epoch:
            self.best, self.best_epoch = state["value"], state["epoch"]

    def _measure_and_log(self, logs):
        measured = self.measure(self.model)
        values = measured if isinstance(measured, dict) else {self.name: measured}
        if self.name not in values:
            raise ValueError(
                f"`measure` must return a float, or a dict with the key {self.name!r}. Received: "
                f"a dict with the keys {sorted(values)}."
            )
        if logs is not None:
            logs.update({f"val_{name}": float(value) for name, value in values.items()})
        return float(values[self.name])

    def _is_best(self, value):
        if math.isnan(value) or self.best is None:
            return not math.isnan(value)
        return value > self.best if self.mode == "max" else value < self.best

    def _print(self, message):
        if self.verbose:
            print(message)
