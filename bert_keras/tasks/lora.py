"""LoRA for tasks: the settings, files with the adapters and the head alone, and merging."""

import json
import warnings
import zlib

import keras
import numpy as np

from bert_keras.engine.atomic_files import of_one_state
from bert_keras.models.adapters import DEFAULT_TARGETS
from bert_keras.presets.assign import assign, by_path, own_weights
from bert_keras.presets.safetensors_io import read_safetensors, write_safetensors
from bert_keras.tasks.freezing import idle_weights

LORA_ARGUMENTS = ("lora_rank", "lora_alpha", "lora_targets", "lora_layers")
# Keys of a file's metadata.
_SETTINGS, _BASE = "bert_keras_adapters", "base_crc32"


class Lora:
    """The LoRA adapters of a task. They are in its backbone, so tasks that share it share them.

    Args:
        task: a `Task`.
        lora_rank, lora_alpha, lora_targets, lora_layers: see `Task`.

    Raises:
        ValueError: a setting is out of range, or options come without a rank.
    """

    def __init__(self, task, lora_rank, lora_alpha, lora_targets, lora_layers):
        self._task = task
        has_options = (lora_alpha, lora_layers) != (None, None) or lora_targets != DEFAULT_TARGETS
        if lora_rank is None and has_options:
            raise ValueError(
                "`lora_alpha`, `lora_targets` and `lora_layers` are options of `lora_rank`. "
                "Received: lora_rank=None. Give the rank, for instance 8."
            )
        self._asked = lora_rank, lora_alpha, lora_targets, lora_layers
        self._check_frozen()

    def _check_frozen(self):
        task = self._task
        if task.frozen is not None and (self._asked[0], task.backbone.lora) != (None, None):
            raise ValueError(
                "With adapters everything in the backbone but them is frozen, so `frozen` must be "
                f"None. Received: frozen={task.frozen!r}. To adapt some layers only, pass "
                "`lora_layers`."
            )

    def add(self):
        """Adds the adapters that the task was asked for to its backbone."""
        if self._asked[0] is not None:
            self._task.backbone.add_adapters(*self._asked)

    def get_config(self):
        """Returns the settings of the adapters as arguments of the constructor, or `{}`.

        Raises:
            ValueError: another task has given adapters to a backbone of which this freezes parts.
        """
        self._check_frozen()
        return json.loads(json.dumps(self._task.backbone.lora or {}))

    def merge(self):
        """Folds the adapters into the kernels, see `Task.merge_lora`."""
        self._check_are_there()
        self._task.backbone.merge_adapters()

    def plain_copy(self):
        """Returns a copy of the task with the adapters merged, or itself where there are none."""
        task = self._task
        if task.backbone.lora is None:
            return task
        config = {k: v for k, v in task.get_config().items() if k not in LORA_ARGUMENTS}
        config |= {"backbone": task.backbone.without_adapters(), "preprocessor": task.preprocessor}
        plain = type(task).from_config(config)
        weights = own_weights(plain)
        for path, weight in own_weights(task).items():
            weights[path].assign(keras.ops.convert_to_numpy(weight))
        return plain

    def save(self, path):
        """Writes the adapters and the head, see `Task.save_adapters`."""
        self._check_are_there()
        tensors = {
            name: keras.ops.convert_to_numpy(weight)
            for name, weight in self._adapters_and_head().items()
        }
        settings = json.dumps(self._settings(), ensure_ascii=False)
        write_safetensors(path, tensors, metadata={_SETTINGS: settings, _BASE: self._base_crc32()})

    @of_one_state
    def load(self, path):
        """Reads the adapters and the head, see `Task.load_adapters`."""
        self._check_are_there()
        checkpoint = read_safetensors(path)
        self._check_settings(checkpoint.metadata.get(_SETTINGS), path)
        variables = self._adapters_and_head()
        assign(variables, {p: (p, None) for p in variables}, checkpoint, source=str(path))
        if checkpoint.metadata.get(_BASE) != self._base_crc32():
            warnings.warn(
                f"The adapters in {path} were trained on a backbone with other weights than this "
                "one's. On this backbone they mean little: use the preset that they began from.",
                stacklevel=4,
            )

    def _check_are_there(self):
        if self._task.backbone.lora is None:
            name = type(self._task).__name__
            raise ValueError(
                f"This {name} has no adapters. Make it with `lora_rank`, for instance "
                f"`{name}.from_preset(preset, lora_rank=8)`."
            )

    def _adapters_and_head(self):
        """Returns the variables of the file by their paths."""
        return {**by_path(self._task.backbone.adapter_weights), **own_weights(self._task)}

    def _settings(self):
        """Returns what must be equal between a file and a task: JSON values by argument."""
        config = json.loads(json.dumps(self._task.get_config()))
        names = (*LORA_ARGUMENTS, *self._task.head_arguments, "label_names")
        settings = {name: config[name] for name in names if name in config}
        return {"task": keras.saving.get_registered_name(type(self._task)), **settings}

    def _check_settings(self, text, path):
        try:
            saved = dict(json.loads(text))
        except (TypeError, ValueError, RecursionError) as error:
            raise ValueError(
                f"A file of adapters must have their settings under {_SETTINGS!r} in its metadata. "
                f"Received: {path}, which has not. Was it written by `save_adapters`?"
            ) from error
        own = self._settings()
        differences = [
            f"{name}={saved.get(name)!r}, here {own.get(name)!r}"
            for name in sorted(saved.keys() | own.keys())
            if saved.get(name) != own.get(name)
        ]
        if differences:
            raise ValueError(
                f"The settings of the adapters in {path} must be this task's. No weight was "
                f"changed. In the file: {'; '.join(differences)}. Make the task with the file's."
            )

    def _base_crc32(self):
        """Returns a checksum of what the adapters stand on: all frozen weights that are read."""
        adapters = {id(weight) for weight in self._task.backbone.adapter_weights}
        idle = {id(weight) for weight in idle_weights(self._task)}
        checksum = 0
        for weight in self._task.backbone.weights:
            if id(weight) not in adapters | idle:
                array = np.asarray(keras.ops.convert_to_numpy(weight), "float32")
                checksum = zlib.crc32(np.ascontiguousarray(array), checksum)
        return f"{checksum:08x}"
