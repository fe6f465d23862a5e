"""This package's own preset folder.

| file | what it holds |
|---|---|
| `config.json` | the backbone's registered name and constructor arguments |
| `model.weights.h5` | the backbone's weights, as `keras.Model.save_weights` writes them |
| `task.json` | for a task: registered name, constructor arguments, preprocessor |
| `task.weights.h5` | for a task: the weights of its head |
| `vocab.txt`, `tokenizer.json`, `tokenizer_config.json` | the tokenizer |
"""

import json
import os
import warnings
from pathlib import Path

import h5py
import keras

from bert_keras.presets.assign import listed


class KerasFolder:
    """An opened preset folder in this package's layout."""

    def __init__(self, folder, config):
        self.folder = Path(folder)
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
                f"The preset {self.folder.name!r} has no {type(task).__name__}, so these weights "
                "of the head keep their random initial values and need training before they mean "
                f"anything: {', '.join(v.path.split('/', 1)[1] for v in initial)}.",
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
    """Writes a backbone's config and weights into `folder`, each file in one step."""
    folder = Path(folder)
    config = {
        "registered_name": keras.saving.get_registered_name(type(backbone)),
        # Being frozen belongs to a task, not to the weights.
        "config": {**backbone.get_config(), "trainable": True},
    }
    json.dumps(config)  # raises before anything is written
    folder.mkdir(parents=True, exist_ok=True)
    _save_weights(backbone, folder / "model.weights.h5")
    for stale in ("task.json", "task.weights.h5"):  # the head of another backbone
        (folder / stale).unlink(missing_ok=True)
    _save_json(config, folder / "config.json")


def save_task(task, folder):
    """Writes a task, with its backbone and tokenizer, into `folder`, each file in one step."""
    folder = Path(folder)
    save_backbone(task.backbone, folder)
    _save_weights(task.head, folder / "task.weights.h5")
    config = task.get_config()
    preprocessor = config.pop("preprocessor")
    del config["backbone"]
    _save_json(
        {
            "registered_name": keras.saving.get_registered_name(type(task)),
            "config": config,
            "preprocessor": preprocessor,
        },
        folder / "task.json",
    )
    if task.preprocessor is not None:
        task.preprocessor.tokenizer.save(folder)


def _save_weights(layer, path):
    partial = path.with_name(f".partial-{os.getpid()}-{path.name}")
    try:
        keras.saving.save_weights(layer, str(partial))
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)


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


def _save_json(value, path):
    partial = path.with_name(f".partial-{os.getpid()}-{path.name}")
    try:
        partial.write_text(json.dumps(value, indent=2, ensure_ascii=False), encoding="utf-8")
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)
