"""Checkpoints from which a killed run goes on as if nothing had happened."""

import json
import os
import re
import shutil
from pathlib import Path

import keras
import numpy as np

from bert_keras.training.random_state import backend_state, set_backend_state

_STEP_FOLDER = re.compile(r"step_(\d+)")
_PARTIAL = ".partial-"


class TrainingCheckpoint(keras.callbacks.Callback):
    """Saves the whole state of a training run every so many steps, and restores it exactly.

    The state is: the model's weights and seed generators (dropout), all of the optimizer's
    variables (moments, number of steps, accumulated gradients), on torch its random number
    generators, and the number of steps done, which is the position in data whose batches are
    numbered, such as `PretrainingBatches`. A run that was killed at any moment, started again by
    the same code on the same machine and backend, then gives the same losses bit for bit, where the
    backend's own operations do (on a GPU they may have to be told to). `keras.callbacks.
    BackupAndRestore` keeps no seed generators.

    A checkpoint is a folder `step_00001000` with `variables.npz` and `state.json`. It is written
    under another name and renamed when it is complete, so a folder of that name always is.

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

    def __init__(self, folder, every=1000, settings=None, keep=2):
        super().__init__()
        if every < 1 or keep < 1:
            raise ValueError(
                f"`every` and `keep` must be at least 1. Received: every={every}, keep={keep}."
            )
        self.folder = Path(folder)
        self.every = every
        self.settings = json.loads(json.dumps(settings))
        self.keep = keep
        self.folder.mkdir(parents=True, exist_ok=True)
        self._remove_partial()
        self._source = self._newest()
        self._last_saved = self.step = 0
        if self._source is not None:
            state = _read_state(self._source)
            self._check_settings(state)
            self._last_saved = self.step = state["step"]

    def _newest(self):
        found = self._step_folders()
        return found[-1] if found else None

    def _step_folders(self):
        found = {}
        for path in self.folder.iterdir():
            match = _STEP_FOLDER.fullmatch(path.name)
            if match:
                found[int(match[1])] = path
        return [found[step] for step in sorted(found)]

    def _remove_partial(self):
        """Removes what runs that were killed while they wrote, or deleted, have left."""
        for path in self.folder.glob(f"{_PARTIAL}*"):
            shutil.rmtree(path, ignore_errors=True)

    def _check_settings(self, state):
        differences = _differences(state["settings"], self.settings)
        if differences:
            raise ValueError(
                f"A run goes on with the settings it began with. The checkpoint {self._source} has "
                f"others: {'; '.join(differences)}. Use the same settings, or begin a new run in "
                "another folder."
            )

    def restore(self, model):
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
        self._random_state = backend_state()
        self._is_first_batch = True
        self._batches_done = 0

    def on_epoch_begin(self, epoch, logs=None):
        # Not before: Keras may run the model once for its shapes when `fit` begins.
        self._batches_done = 0
        if self._source is not None:
            self._random_state = self._restore()
            self._source = None

    def on_train_batch_begin(self, batch, logs=None):
        if self._is_first_batch:
            # Torch's loader draws a number when it is made, once for each `fit`: a run that goes on
            # has made one more.
            set_backend_state(self._random_state)
            self._is_first_batch = False

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

    def save(self):
        """Writes a checkpoint of the present state, and deletes those that are too old."""
        final = self.folder / f"step_{self.step:08d}"
        partial = self.folder / f"{_PARTIAL}{os.getpid()}-{final.name}"
        partial.mkdir()
        arrays = backend_state()
        for kind, variables in self._variables().items():
            for i, variable in enumerate(variables):
                arrays[f"{kind}/{i}"] = _storable(keras.ops.convert_to_numpy(variable))
        with open(partial / "variables.npz", "wb") as file:
            np.savez(file, **arrays)
            _flush(file)
        state = {"step": self.step, "settings": self.settings, "backend": keras.backend.backend()}
        with open(partial / "state.json", "w", encoding="utf-8") as file:
            json.dump(state, file, indent=2)
            _flush(file)
        if final.exists():
            self._delete(final)
        os.replace(partial, final)
        self._last_saved = self.step
        for path in self._step_folders()[: -self.keep]:
            self._delete(path)

    def _delete(self, path):
        # Renamed first: a half-deleted folder must not look like a checkpoint.
        trash = self.folder / f"{_PARTIAL}{os.getpid()}-old-{path.name}"
        os.replace(path, trash)
        shutil.rmtree(trash)

    def _restore(self):
        """Assigns all variables; returns the state of the random number generators."""
        path = self._source / "variables.npz"
        try:
            with np.load(path, allow_pickle=False) as file:
                arrays = {name: file[name] for name in file.files}
        except Exception as error:  # zipfile, zlib and NumPy each have their own
            raise ValueError(
                f"{path} is damaged: {error}. Delete its folder to go on from the checkpoint "
                "before it."
            ) from error
        random_state = {name: arrays.pop(name) for name in list(arrays) if "rng" in name}
        wanted = {
            f"{kind}/{i}": variable
            for kind, variables in self._variables().items()
            for i, variable in enumerate(variables)
        }
        misfits = sorted(set(wanted) ^ set(arrays)) + [
            f"{variable.path} {tuple(variable.shape)} <- {arrays[name].shape}"
            for name, variable in wanted.items()
            if name in arrays and arrays[name].shape != tuple(variable.shape)
        ]
        if misfits:
            raise ValueError(
                f"The checkpoint {self._source} belongs to another model or optimizer. What does "
                f"not fit: {misfits[:10]}. No variable was changed."
            )
        for name, variable in wanted.items():
            variable.assign(_restored(arrays[name], variable))
        return random_state

    def _variables(self):
        """Returns what is saved by kind; the model's variables include its seed generators."""
        return {"model": self.model.variables, "optimizer": self.model.optimizer.variables}


def _flush(file):
    file.flush()
    os.fsync(file.fileno())


def _read_state(folder):
    try:
        state = json.loads((folder / "state.json").read_text(encoding="utf-8"))
        return {"step": int(state["step"]), "settings": state["settings"]}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ValueError(
            f"{folder / 'state.json'} is damaged: {error!r}. Delete its folder to go on from the "
            "checkpoint before it."
        ) from error


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


def _restored(array, variable):
    dtype = keras.ops.convert_to_numpy(variable).dtype
    return array.view(dtype) if dtype.kind == "V" else array
