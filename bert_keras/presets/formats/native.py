"""This package's own preset folder.

| file | what it holds |
|---|---|
| `config.json` | the backbone's registered name and constructor arguments |
| `model.safetensors`, or its index and shards | the weights of backbone and head, by path |
| `task.json` | for a task: registered name, constructor arguments, preprocessor |
| `tokenizer.json`, `tokenizer_config.json` | the tokenizer |
"""

import functools
import pathlib

import keras

from bert_keras.engine.atomic_files import read_json, requiring
from bert_keras.presets.assign import arrays_of, assign, by_path, head_weights
from bert_keras.presets.families import has_head_of
from bert_keras.presets.formats.checkpoint import Preset, merged, weights_of, write_folder
from bert_keras.presets.safetensors_io import read_safetensors
from bert_keras.tokenizers.tokenizer_files import TOKENIZER_FILES


class NativePreset(Preset):
    """An opened preset folder in this package's layout."""

    def __init__(self, folder, config, path, name):
        super().__init__(folder, config, path, name)
        self.backbone_name, self.config = _name_and_arguments(config, path)
        self._task_path = folder / "task.json"
        self._task_name, self._kind, self._task = None, None, {}
        if self._task_path.is_file():
            task = read_json(self._task_path)
            self._task_name, self._task = _name_and_arguments(task, self._task_path)
            self._kind = self._task_name.split(">")[-1]
            if (saved := task.get("preprocessor")) is not None:
                self.preprocessor_config = _name_and_arguments(saved, self._task_path)

    def _backbone_arguments(self, cls):
        return self.config

    def load_backbone_weights(self, backbone, task=None):
        """Assigns every weight its tensor. See `Checkpoint.load_backbone_weights`."""
        weights = weights_of(backbone)
        # If the user asks for a pooler that was not saved, a warning names it. The user may also
        # ask for none.
        has_pooler = self.config.get("has_pooler", True)
        optional = () if has_pooler else ("pooler/",)
        skipped = ("head/", "pooler/") if has_pooler and backbone.pooler is None else ("head/",)
        tensors = self.tensors.only(name for name in self.tensors if not name.startswith(skipped))
        names = {path: (path, None) for path in weights}
        assign(weights, names, tensors, optional=optional, source=self.source)

    def task_name(self):
        """Returns the registered name of the saved task, or `None`."""
        return self._task_name

    def task_class(self, cls):
        """Returns `cls`, or the user's subclass of it whose task was saved.

        Raises:
            ValueError: the saved class is not registered, and may be such a subclass: its config
                has all arguments of `cls`, or its head would be used.
        """
        name = self._task_name
        if name is None or name.startswith("bert_keras>"):
            return cls
        own = cls.parameters_of_constructor().keys() - {"backbone", "preprocessor"}
        own = {name for name in own if not name.startswith("lora_")}
        is_similar = own <= self._task.keys() or self.task_arguments(cls)
        if not (is_similar or keras.saving.get_registered_object(name)):
            return cls
        saved = self.registered_class(name, object)
        return saved if issubclass(saved, cls) else cls

    def task_arguments(self, task, chosen=()):
        """Returns those of the saved task's arguments that apply to this task."""
        if self._is_of(task):
            return {**self._decided_for(task), **self._task}
        name = "head_options"
        is_shared = self._kind in task.compatible_heads and name in task.argument_names()
        return {name: self._task[name]} if is_shared and name in self._task else {}

    def pooling_of_new_head(self, task, has_weights):
        """Returns the pooling of the saved task, which the encoder was trained with.

        That of a head of classes, which has dropout, is for such heads only.
        """
        fits = "dropout" in task.argument_names() or "dropout" not in self._task
        return self._task.get("pooling") if fits else None

    def _is_of(self, task):
        if self._decided_for(task):
            return True
        # A task that borrows the saved task's head (`head_like`) has other arguments.
        return has_head_of(task, self._kind) and getattr(task, "head_like", None) != self._kind

    def _decided_for(self, cls):
        """Returns the arguments that the saved task's class decides for its parent class, or `{}`.

        A `FewShotClassifier` is a `TextClassifier` with some arguments decided, so a saved one may
        be opened as either.

        Args:
            cls: a task or its class.
        """
        cls = cls if isinstance(cls, type) else type(cls)
        saved = self._task_name and keras.saving.get_registered_object(self._task_name)
        if not isinstance(saved, type) or saved is cls or not issubclass(saved, cls):
            return {}
        return dict(saved.decided_arguments) if self._task.keys() <= cls.argument_names() else {}

    def load_head_weights(self, task):
        """Assigns the saved weights of the head, and warns about the others.

        Raises:
            ValueError: a file is damaged, or a name or a shape does not fit.
        """
        weights, is_own = head_weights(task), self._is_of(task)
        prefixes = task.compatible_heads.get(self._kind, {})
        prefixes = {"head/": "head/"} if is_own or has_head_of(task, self._kind) else prefixes
        names = {
            path: (theirs + path.removeprefix(ours), None)
            for path in weights
            for ours, theirs in prefixes.items()
            if path.startswith(ours)
        }
        taken = {name for name, _ in names.values()}
        tensors = [x for x in self.tensors if x in taken or (is_own and x.startswith("head/"))]
        fresh = [path for path in weights if path not in names]
        assign(weights, names, self.tensors.only(tensors), fresh, source=self.source)

    @functools.cached_property
    def tensors(self):
        """All tensors of the folder."""
        return read_safetensors(self.folder)


def _name_and_arguments(saved, path):
    """Returns the registered name and the arguments of a serialized object."""
    with requiring(path, "have a 'registered_name' and a 'config', an object"):
        return str(saved["registered_name"]), {**saved["config"]}


def save_preset(model, folder):
    """Writes a backbone, or a task with its backbone and tokenizer, with merged adapters.

    Args:
        model: a `Backbone` or a `Task`.
        folder: str or path, made when missing. Either all files are replaced, or on an error none.

    Raises:
        ValueError: the preprocessor's class is not registered, so it could not be loaded again; or
            the folder holds an exported task.
    """
    if all((pathlib.Path(folder) / name).exists() for name in ("model.onnx", "runtime.py")):
        raise ValueError(
            "A preset goes into a folder of its own. Received: "
            f"{folder}, which holds an exported task. Name another folder."
        )
    model = merged(model)
    backbone = getattr(model, "backbone", model)
    config = backbone.get_config()
    # A preset holds a model to start from: neither `remat`, a setting of training, nor that the
    # backbone is frozen, which a task decides.
    config.pop("remat", None)
    configs = {"config.json": _serialized(backbone, {**config, "trainable": True})}
    weights, tokenizer = by_path(backbone.weights), None
    if backbone is not model:
        weights |= head_weights(model)
        config, tokenizer = model.get_config(), model.tokenizer
        name = keras.saving.get_registered_name(type(model.preprocessor))
        if tokenizer is not None and keras.saving.get_registered_object(name) is None:
            raise ValueError(
                f"A preprocessor's class must be registered. Received: {name}. Decorate it with "
                "`keras.saving.register_keras_serializable`."
            )
        saved = config.pop("preprocessor")
        # Weights that were frozen by hand are trainable for the next user.
        config = {k: v for k, v in config.items() if k not in ("backbone", "frozen_weights")}
        configs["task.json"] = {**_serialized(model, config), "preprocessor": saved}
    # A new task must not be read with the tokenizer of the preset that it replaces.
    stale = ("task.json", *(TOKENIZER_FILES if len(configs) == 2 else ()))
    write_folder(folder, model, arrays_of(weights), configs, tokenizer, stale, "bert_keras")


def _serialized(model, config):
    return {"registered_name": keras.saving.get_registered_name(type(model)), "config": config}
