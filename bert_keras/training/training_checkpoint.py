"""Checkpoints from which a killed run goes on as if nothing had happened."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import keras
import numpy as np

from bert_keras import distribution
from bert_keras.checks import check_int
from bert_keras.engine.atomic_files import reading, replacing, write_json
from bert_keras.engine.random_state import GoOn, as_json

_ADVICE = "Delete its folder to go on from the checkpoint before it."
_STEP_FOLDER = re.compile(r"step_(\d+)")


class TrainingCheckpoint(keras.callbacks.Callback):
    """Saves the whole state of a training run every so many steps, and restores it exactly.

    The state is: the model's weights and seed generators (dropout), all of the optimizer's
    variables (moments, number of steps, accumulated gradients), on torch its random number
    generators, and the number of steps done, which is the position in data whose batches are
    numbered, such as `PretrainingBatches`. A run that was killed at any moment, started again by
    the same code on the same machine and backend, then gives the same losses bit for bit, where the
    backend's own operations do (on a GPU they may have to be told to). `keras.callbacks.
    BackupAndRestore` keeps no seed generators.

    A checkpoint is a folder `step_00001000` with `variables.npz` and `state.json`. The latter is
    the last to be written and the first to be deleted, so with it a checkpoint is complete.

    Checkpoints are made between epochs of `fit`: set `steps_per_epoch` to a small share of the run.
    One is made at the end of each `fit` too. Restoring happens by itself when `fit` begins
    (`restore` is for a run that has no steps left); tell it where the data goes on:

    ```python
    checkpoint = TrainingCheckpoint("run/checkpoints", every=1000, settings=settings)
    model = make_model()
    batches = PretrainingBatches("data", batch_size=64, start_step=checkpoint.step)
    epochs = (num_steps - checkpoint.step) // 100
    model.fit(batches, steps_per_epoch=100, epochs=epochs, shuffle=False, callbacks=[checkpoint])
    ```

    Where several processes share a run, the first one writes, all read, and the run may go on with
    more or fewer devices.

    Put it last among the callbacks: what those before it do at the end of an epoch, such as an
    evaluation, is then part of the state.

    Args:
        folder: str or path, of this run alone; made when missing.
        every: int, steps between checkpoints. One is made at the first epoch's end at or after
            each multiple.
        settings: JSON value, what the run depends on. A run with other settings is refused.
        keep: int, checkpoints that stay, the newest ones.

    Attributes:
        step: int, steps done: those of the newest checkpoint at first.

    Raises:
        ValueError: an argument is out of range, the settings are not those of the checkpoint, or a
            checkpoint is damaged or belongs to another model.
    """

    def __init__(
        self, folder: Path, every: int = 1000, settings: Any = None, keep: int = 2
    ) -> None:
        super().__init__()
        self.folder = Path(folder)
        self.every = check_int("every", every)
        self.settings = json.loads(json.dumps(settings))
        self.keep = check_int("keep", keep)
        self.folder.mkdir(parents=True, exist_ok=True)
        self._is_writer = distribution.process()[0] == 0
        for path in self._step_folders():
            # A killed run was writing it, or deleting it.
            if self._is_writer and not (path / "state.json").exists():
                shutil.rmtree(path, ignore_errors=True)
        whole = [path for path in self._step_folders() if (path / "state.json").exists()]
        self._source = next(reversed(whole), None)
        self._last_saved = self.step = 0
        if self._source is not None:
            state = _read_state(self._source)
            self._check_settings(state)
            self._last_saved = self.step = state["step"]
        if distribution.of_first(self.step) != self.step:
            raise ValueError(
                "All processes must see the checkpoints of the first one. Received: "
                f"{self.folder} with another newest checkpoint here. Put it where all machines see "
                "it."
            )

    def _step_folders(self):
        found = [path for path in self.folder.iterdir() if _STEP_FOLDER.fullmatch(path.name)]
        return sorted(found, key=lambda path: int(_STEP_FOLDER.fullmatch(path.name)[1]))

    def _check_settings(self, state):
        differences = _differences(state["settings"], self.settings)
        if differences:
            raise ValueError(
                f"A run goes on with the settings it began with. The checkpoint {self._source} has "
                f"others: {'; '.join(differences)}. Use the same settings, or begin a new run in "
                "another folder."
            )

    def restore(self, model: keras.Model) -> None:
        """Gives a model the newest checkpoint's state at once, for a run with no steps left.

        Args:
            model: the compiled `keras.Model`. Without a checkpoint it stays as it is.
        """
        if self._source is not None:
            self.set_model(model)
            self._build_optimizer()
            self._restore()

    # During fit

    def _build_optimizer(self):
        if not self.model.optimizer.built:
            self.model.optimizer.build(self.model.trainable_variables)

    def on_train_begin(self, logs=None):
        self._build_optimizer()
        self._go_on(as_json(self.model))
        self._batches_done = 0

    def _go_on(self, random_state):
        # Torch's loader draws a number when it is made, once for each `fit`: a run that goes on has
        # made one more.
        self._random_numbers = GoOn(random_state, has_one_loader=True)
        self._random_numbers.set_model(self.model)

    def on_epoch_begin(self, epoch, logs=None):
        # Not before: Keras may run the model once for its shapes when `fit` begins.
        self._batches_done = 0
        if self._source is not None:
            self._go_on(self._restore())
            self._source = None
        self._random_numbers.on_epoch_begin(epoch)

    def on_train_batch_begin(self, batch, logs=None):
        self._random_numbers.on_train_batch_begin(batch)

    def on_train_batch_end(self, batch, logs=None):
        self._batches_done = batch + 1

    def on_epoch_end(self, epoch, logs=None):
        before, self.step = self.step, self.step + self._batches_done
        self._batches_done = 0
        if self.step // self.every > before // self.every:
            self.save()

    def on_train_end(self, logs=None):
        if self.step > self._last_saved:
            self.save()

    # Files

    def save(self) -> None:
        """Writes a checkpoint of the present state, and deletes those that are too old."""
        arrays = {
            name: _storable(distribution.as_numpy(variable))
            for name, variable in self._variables().items()
        }
        self._last_saved = self.step
        if not self._is_writer:
            return
        folder = self.folder / f"step_{self.step:08d}"
        if folder.exists():
            self._delete(folder)
        folder.mkdir()
        with replacing(folder / "variables.npz") as path, open(path, "wb") as file:
            np.savez(file, **arrays)
        state = {"step": self.step, "settings": self.settings, "random_state": as_json(self.model)}
        write_json(folder / "state.json", state)
        for path in self._step_folders()[: -self.keep]:
            self._delete(path)

    def _delete(self, folder):
        (folder / "state.json").unlink(missing_ok=True)  # None where a disk was full.
        shutil.rmtree(folder)

    def _restore(self):
        """Assigns all variables; returns the state of the random numbers."""
        path = self._source / "variables.npz"
        with reading(path, _ADVICE), np.load(path) as file:
            arrays = {name: np.asarray(file[name]) for name in file.files}
        wanted = self._variables()
        misfits = sorted(set(wanted) ^ set(arrays)) + [
            f"{variable.path} {tuple(variable.shape)} {variable.dtype} <- "
            f"{arrays[name].shape} {arrays[name].dtype}"
            for name, variable in wanted.items()
            if name in arrays and not _fits(arrays[name], variable)
        ]
        if misfits:
            raise ValueError(
                f"The checkpoint {self._source} belongs to another model or optimizer. What does "
                f"not fit: {misfits[:10]}. No variable was changed."
            )
        for name, variable in wanted.items():
            variable.assign(_restored(arrays[name], variable))
        return _read_state(self._source)["random_state"]

    def _variables(self):
        """Returns what is saved, by name; the model's variables include its seed generators."""
        kinds = {"model": self.model.variables, "optimizer": self.model.optimizer.variables}
        return {f"{kind}/{i}": v for kind, found in kinds.items() for i, v in enumerate(found)}


def _read_state(folder):
    path = folder / "state.json"
    with reading(path, _ADVICE):
        state = json.loads(path.read_text(encoding="utf-8"))
        return {name: state[name] for name in ("step", "settings", "random_state")}


def _differences(saved, given):
    """Returns a list of str, what differs between two JSON values."""
    if not isinstance(saved, dict) or not isinstance(given, dict):
        return [] if saved == given else [f"{saved!r}, now {given!r}"]
    return [
        f"{name}: {saved.get(name)!r}, now {given.get(name)!r}"
        for name in sorted(saved.keys() | given.keys())
        if saved.get(name) != given.get(name)
    ]


def _storable(array):
    """Returns an array that NumPy's format knows: bfloat16 as the integers of its bits."""
    return array.view(f"u{array.itemsize}") if array.dtype.kind == "V" else array


def _fits(array, variable):
    """Whether an array is of a variable's shape and kind; backends' integers are of two sizes."""
    own = _storable(keras.ops.convert_to_numpy(variable))
    kinds = {array.dtype.kind, own.dtype.kind}
    return array.shape == own.shape and (len(kinds) == 1 or kinds == {"i", "u"})


def _restored(array, variable):
    dtype = keras.ops.convert_to_numpy(variable).dtype
    return array.view(dtype) if dtype.kind == "V" else array
