"""Checkpoints from which a killed run continues as if nothing had happened."""

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
from bert_keras.engine.train_step import build_optimizer
from bert_keras.training.callbacks import BatchCounter
from bert_keras.training.random_state import RestoreState, as_json

_ADVICE = "Delete its folder to continue from the previous checkpoint."
_STEP_FOLDER = re.compile(r"step_(\d+)")


class TrainingCheckpoint(BatchCounter):
    """Regularly saves the whole state of a training run, and restores it exactly.

    The state is: the model's weights and seed generators (dropout); all variables of the optimizer
    (moments, step counter, accumulated gradients); torch's random number generators; and the number
    of steps done, which is the position in data with numbered batches, such as
    `PretrainingBatches`. If a run is killed at any moment and started again by the same code, on
    the same machine and backend, its losses are the same bit for bit, as far as the operations of
    the backend are deterministic (on a GPU this may need a setting). `keras.callbacks.
    BackupAndRestore` does not save seed generators.

    A checkpoint is a folder `step_00001000` with `variables.npz` and `state.json`. `state.json` is
    written last and deleted first, so a checkpoint that has it is complete.

    Checkpoints are made between epochs of `fit`, so set `steps_per_epoch` to a small part of the
    run, and at the end of each `fit`. The state is restored when `fit` begins (`restore` is for a
    run that has no steps left). The data must start at the checkpoint's step:

    ```python
    checkpoint = TrainingCheckpoint("run/checkpoints", every=1000, settings=settings)
    model = make_model()
    batches = PretrainingBatches("data", batch_size=64, start_step=checkpoint.step)
    epochs = (num_steps - checkpoint.step) // 100
    model.fit(batches, steps_per_epoch=100, epochs=epochs, shuffle=False, callbacks=[checkpoint])
    ```

    If several processes share a run, the first one writes and all read. The run may continue with
    more or fewer devices.

    Put this callback last: what the others do at the end of an epoch, such as an evaluation, is
    then part of the state.

    Args:
        folder: str or path, used by this run only; created if missing.
        every: int, steps between checkpoints. Each is made at the first end of an epoch at or after
            a multiple of `every`.
        settings: JSON value, what the run depends on. A run with other settings is refused.
        keep: int, how many of the newest checkpoints are kept.

    Attributes:
        step: int, steps done; at first those of the newest checkpoint.

    Raises:
        ValueError: an argument is out of range, the settings differ from those of the checkpoint,
            or a checkpoint is damaged or belongs to another model.
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
            # A run was killed while it wrote or deleted this checkpoint.
            if self._is_writer and not (path / "state.json").exists():
                shutil.rmtree(path, ignore_errors=True)
        complete = [path for path in self._step_folders() if (path / "state.json").exists()]
        self._source = next(reversed(complete), None)
        self._last_saved = self.step = 0
        if self._source is not None:
            state = _read_state(self._source)
            if differences := _differences(state["settings"], self.settings):
                raise ValueError(
                    "A run must continue with the settings it began with. Received: other settings "
                    f"than those of the checkpoint {self._source}: {'; '.join(differences)}. Use "
                    "the same settings, or begin a new run in another folder."
                )
            self._last_saved = self.step = state["step"]
        if distribution.broadcast_from_rank0(self.step) != self.step:
            raise ValueError(
                "All processes must see the checkpoints of the first one. Received: "
                f"{self.folder}, whose newest checkpoint differs in this process. Put the folder "
                "where all machines can read it."
            )

    def _step_folders(self):
        folders = [path for path in self.folder.iterdir() if _STEP_FOLDER.fullmatch(path.name)]
        return sorted(folders, key=lambda path: int(_STEP_FOLDER.fullmatch(path.name)[1]))

    def restore(self, model: keras.Model) -> None:
        """Restores the newest checkpoint into a model now, for a run that has no steps left.

        Args:
            model: the compiled `keras.Model`, unchanged if there is no checkpoint.
        """
        if self._source is not None:
            self.set_model(model)
            build_optimizer(model)
            self._restore()

    # During fit

    def on_train_begin(self, logs=None):
        build_optimizer(self.model)
        self._set_random_state(as_json(self.model))

    def _set_random_state(self, random_state):
        # Torch's data loader draws a number when it is made, once for each `fit`, so a resumed run
        # would have drawn one more.
        self._random_numbers = RestoreState(random_state, has_one_loader=True)
        self._random_numbers.set_model(self.model)

    def on_epoch_begin(self, epoch, logs=None):
        # Not when `fit` begins: Keras may then run the model once to infer its shapes.
        super().on_epoch_begin(epoch)
        if self._source is not None:
            self._set_random_state(self._restore())
            self._source = None
        self._random_numbers.on_epoch_begin(epoch)

    def on_train_batch_begin(self, batch, logs=None):
        self._random_numbers.on_train_batch_begin(batch)

    def on_epoch_end(self, epoch, logs=None):
        before, self.step = self.step, self.step + self.batches_done
        if self.step // self.every > before // self.every:
            self.save()

    def on_train_end(self, logs=None):
        if self.step > self._last_saved:
            self.save()

    # Files

    def save(self) -> None:
        """Writes a checkpoint of the current state, and deletes the oldest ones."""
        arrays = {}
        for name, variable in self._variables().items():
            array = distribution.as_numpy(variable)
            # NumPy saves no bfloat16, which float32 holds exactly.
            arrays[name] = array.astype("float32") if array.dtype.kind == "V" else array
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
        (folder / "state.json").unlink(missing_ok=True)  # It is missing if a disk was full.
        shutil.rmtree(folder)

    def _restore(self):
        """Assigns all variables; returns the state of the random numbers."""
        path = self._source / "variables.npz"
        with reading(path, _ADVICE), np.load(path) as file:
            arrays = {name: np.asarray(file[name]) for name in file.files}
        variables = self._variables()
        misfits = sorted(set(variables) ^ set(arrays)) + [
            f"{variable.path} {tuple(variable.shape)} {variable.dtype} <- "
            f"{arrays[name].shape} {arrays[name].dtype}"
            for name, variable in variables.items()
            if name in arrays and not _fits(arrays[name], variable)
        ]
        if misfits:
            raise ValueError(
                f"The checkpoint {self._source} belongs to another model or optimizer. These "
                f"variables do not fit: {misfits[:10]}. No variable was changed. Use the model and "
                "optimizer of the run, or another folder."
            )
        for name, variable in variables.items():
            variable.assign(arrays[name])
        return _read_state(self._source)["random_state"]

    def _variables(self):
        """Returns all saved variables by name; the model's include its seed generators."""
        owners = {"model": self.model, "optimizer": self.model.optimizer}
        return {
            f"{name}/{i}": v for name, own in owners.items() for i, v in enumerate(own.variables)
        }


def _read_state(folder):
    path = folder / "state.json"
    with reading(path, _ADVICE):
        state = json.loads(path.read_text(encoding="utf-8"))
        return {name: state[name] for name in ("step", "settings", "random_state")}


def _differences(saved, current):
    """Returns the differences between two JSON values as a list of str."""
    if not isinstance(saved, dict) or not isinstance(current, dict):
        return [] if saved == current else [f"{saved!r}, now {current!r}"]
    return [
        f"{name}: {saved.get(name)!r}, now {current.get(name)!r}"
        for name in sorted(saved.keys() | current.keys())
        if saved.get(name) != current.get(name)
    ]


def _fits(array, variable):
    """Whether an array has a variable's shape and kind; backends differ in their integer sizes."""
    are_floats = array.dtype.kind == "f", "float" in variable.dtype
    return array.shape == tuple(variable.shape) and are_floats[0] == are_floats[1]
