"""This package's own preset folder.

| file | what it holds |
|---|---|
| `config.json` | the backbone's registered name and constructor arguments |
| `model.weights.h5` | the backbone's weights, as `keras.Model.save_weights` writes them |
| `task.json` | for a task: registered name, constructor arguments, preprocessor |
| `task.weights.h5` | for a task: the weights of its head |
| `vocab.txt`, `tokenizer.json`, `tokenizer_config.json` | the tokenizer |
"""

import contextlib
import json
import os
import tempfile
import warnings
from pathlib import Path

import h5py
import keras

from bert_keras.presets.assign import listed, relative_path
from bert_keras.tokenizers.saved import TOKENIZER_FILES

_TASK_FILES = ("task.json", "task.weights.h5")


class KerasFolder:
    """An opened preset folder in this package's layout."""

    def __init__(self, folder, config):
        self.folder = Path(folder)
        self.name = self.folder.name  # in messages
        if not isinstance(config.get("config"), dict):
            raise ValueError(
                f"{self.folder / 'config.json'} must have the key 'config' with the backbone's "
                f"arguments. Its keys: {sorted(config)}."
            )
        self._config = config
        self._task = None
        if (self.folder / "task.json").is_file():
            try:
                self._task = json.loads((self.folder / "task.json").read_text(encoding="utf-8"))
            except (ValueError, RecursionError) as error:
                raise ValueError(
                    f"{self.folder / 'task.json'} is not valid JSON ({error}). Save the preset "
                    "again."
                ) from error
            if not isinstance(self._task, dict) or not {"registered_name", "config"} <= set(
                self._task
            ):
                raise ValueError(
                    f"{self.folder / 'task.json'} must be an object with the keys "
                    "'registered_name' and 'config'. Save the preset again."
                )

    @staticmethod
    def recognizes(config):
        """Whether a parsed `config.json` is of this format."""
        return isinstance(config.get("registered_name"), str)

    @property
    def tokenizer_folder(self):
        """Path of the folder with the tokenizer's files."""
        return self.folder

    def backbone_class(self, base):
        """Returns the backbone's class, which must derive from `base`."""
        return registered_class(self._config["registered_name"], base, self.folder)

    def backbone(self, base, **overrides):
        """Returns a new backbone with initial weights, of a class that derives from `base`."""
        return self.backbone_class(base).from_config({**self._config["config"], **overrides})

    def load_backbone_weights(self, backbone):
        """Loads `model.weights.h5`."""
        _load_weights(backbone, self.folder / "model.weights.h5")

    def task_name(self):
        """Returns the registered name of the saved task, or `None`."""
        return self._task and self._task["registered_name"]

    def task_arguments(self, task_class_name):
        """Returns the saved task's arguments when it is of that class, else `{}`."""
        return dict(self._task["config"]) if self._holds(task_class_name) else {}

    def preprocessor_config(self, task_class_name):
        """Returns the saved preprocessor as Keras serialized it, or `None`."""
        return self._task.get("preprocessor") if self._holds(task_class_name) else None

    def load_head_weights(self, task):
        """Loads `task.weights.h5` when it fits this task's head or a part of it; else it stays."""
        saved = self._task["registered_name"].split(">")[-1] if self._task else None
        head = task.head_saved_by(saved)
        loaded = []
        if head is not None:
            _load_weights(head, self.folder / "task.weights.h5")
            loaded = head.weights
        initial = [v for v in task.head.weights if not any(v is other for other in loaded)]
        if initial:
            warnings.warn(
                f"The preset {self.name!r} has no {type(task).__name__}, so these weights "
                "of the head keep their random initial values and need training before they mean "
                f"anything: {', '.join(map(relative_path, initial))}.",
                stacklevel=3,  # the line that called from_preset
            )

    def _holds(self, task_class_name):
        return self._task and self._task["registered_name"].split(">")[-1] == task_class_name


def registered_class(name, base, where):
    """Returns the class registered with Keras under `name`, which must derive from `base`.

    Raises:
        ValueError: nothing, or a class of another kind, is registered under the name.
    """
    found = keras.saving.get_registered_object(name)
    if found is None:
        raise ValueError(
            f"{where} holds {name!r}, which is not registered. Was it saved by a newer version of "
            "the package, or is a custom class not imported?"
        )
    if not (isinstance(found, type) and issubclass(found, base)):
        raise ValueError(f"{where} holds {name!r}, which is not a {base.__name__}.")
    return found


def save_backbone(backbone, folder):
    """Writes a backbone's config and weights into `folder`: all files, or on an error none."""
    config = _json(_backbone_config(backbone))
    with _replacing(folder, stale=_TASK_FILES) as new:
        keras.saving.save_weights(backbone, str(new / "model.weights.h5"))
        (new / "config.json").write_text(config, encoding="utf-8")


def save_task(task, folder):
    """Writes a task, with its backbone and tokenizer, into `folder`: all files, or none."""
    config = task.get_config()
    preprocessor = config.pop("preprocessor")
    del config["backbone"]
    saved = {
        "registered_name": keras.saving.get_registered_name(type(task)),
        "config": config,
        "preprocessor": preprocessor,
    }
    texts = {"task.json": _json(saved), "config.json": _json(_backbone_config(task.backbone))}
    # Of files that an older preset had, those of its tokenizer would speak for this one.
    with _replacing(folder, stale=(*_TASK_FILES, *TOKENIZER_FILES)) as new:
        keras.saving.save_weights(task.backbone, str(new / "model.weights.h5"))
        keras.saving.save_weights(task.head, str(new / "task.weights.h5"))
        if task.preprocessor is not None:
            task.preprocessor.tokenizer.save(new)
        for name, text in texts.items():
            (new / name).write_text(text, encoding="utf-8")


def _backbone_config(backbone):
    config = backbone.get_config()
    # How a backbone was trained, in how much memory, belongs to no preset.
    config.pop("remat", None)
    return {
        "registered_name": keras.saving.get_registered_name(type(backbone)),
        # Being frozen belongs to a task, not to the weights.
        "config": {**config, "trainable": True},
    }


def _json(value):
    return json.dumps(value, indent=2, ensure_ascii=False)


@contextlib.contextmanager
def _replacing(folder, stale):
    """Yields an empty folder whose files replace those of `folder` at the end, all or none.

    Args:
        folder: str or path, made when missing.
        stale: names of files that go where there is no new one.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".partial-", dir=folder) as partial:
        new, old = Path(partial, "new"), Path(partial, "old")
        new.mkdir()
        old.mkdir()
        yield new
        # Configs go first and come last: what lies between is no preset, never a mixed one.
        names = sorted((path.name for path in new.iterdir()), key=lambda name: ".json" in name)
        moved = []
        try:
            for name in (*reversed(names), *stale):
                if (folder / name).exists():
                    os.replace(folder / name, old / name)
            for name in names:
                os.replace(new / name, folder / name)
                moved.append(name)
        except BaseException:
            for name in moved:
                (folder / name).unlink(missing_ok=True)
            for path in old.iterdir():
                os.replace(path, folder / path.name)
            raise


def _load_weights(layer, path):
    if not path.is_file():
        raise FileNotFoundError(f"The preset folder {path.parent} lacks {path.name}.")
    try:
        _check_count(layer, path)
        keras.saving.load_weights(layer, str(path))
    except Exception as error:
        raise ValueError(
            f"{path} is damaged, or does not belong to the config beside it: {error}"
        ) from error


def _check_count(layer, path):
    """Raises `ValueError` when a file has other numbers of arrays: Keras skips surplus ones."""
    names = []

    def note(name, item):
        if isinstance(item, h5py.Dataset):
            names.append(name)

    with h5py.File(path) as file:
        file.visititems(note)
    if len(names) != len(layer.weights):
        raise ValueError(
            f"The config's model has {len(layer.weights)} weights, the file {len(names)} arrays. "
            f"Weights: {listed([weight.path for weight in layer.weights])}. Arrays: "
            f"{listed(names)}."
        )
