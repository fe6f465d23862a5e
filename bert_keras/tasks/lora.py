"""LoRA for tasks: the settings, files with the adapters and the head alone, and merging."""

import json
import warnings
import zlib
from typing import Self

import keras
import numpy as np

from bert_keras.checks import refuse_options
from bert_keras.engine.atomic_files import reading, retry_if_changed
from bert_keras.models.adapters import DEFAULT_TARGETS
from bert_keras.presets.assign import arrays_of, assign, by_path, head_weights
from bert_keras.presets.formats import peft
from bert_keras.presets.safetensors_io import read_metadata, read_safetensors, write_safetensors
from bert_keras.types import Path

LORA_ARGUMENTS = ("lora_rank", "lora_alpha", "lora_targets", "lora_layers")
# Keys in a file's metadata.
_SETTINGS, _BASE = "bert_keras_adapters", "base_crc32"


class AdaptedTask:
    """The LoRA adapters of a task, which are part of its backbone: tasks that share it share them.

    A class to inherit from beside `keras.Model`, see `Task` for the arguments.
    """

    def _set_lora(self, rank, alpha, targets, layers):
        """Keeps the settings of the adapters to add.

        Raises:
            ValueError: options come without a rank, or the task freezes a part of the backbone.
        """
        if rank is None:
            options = {"lora_alpha": alpha, "lora_layers": layers}
            options["lora_targets"] = None if targets == DEFAULT_TARGETS else targets
            rule = "`lora_alpha`, `lora_targets` and `lora_layers` are options of `lora_rank`"
            refuse_options(rule, options, "Pass the rank, for instance 8.")
        self._lora = rank, alpha, targets, layers
        self._check_frozen_with_lora()

    def _check_frozen_with_lora(self):
        if (self._lora[0], self.backbone.lora) != (None, None):
            rule = "With adapters everything else is frozen, so `frozen` must be None"
            advice = "Leave it out. To adapt some layers only, pass `lora_layers`."
            refuse_options(rule, {"frozen": self.frozen}, advice)

    def _lora_config(self):
        """Returns the settings of the adapters as arguments of the constructor, or `{}`.

        Raises:
            ValueError: another task has added adapters to a backbone that this task freezes.
        """
        self._check_frozen_with_lora()
        return json.loads(json.dumps(self.backbone.lora or {}))

    def merge_lora(self) -> None:
        """Folds the adapters into the kernels: a plain task with the same outputs.

        Everything trains again then, as in a task made without `lora_rank`. The optimizer starts
        anew, with the settings it had. Other tasks on the same backbone lose their adapters too;
        compile them again before they train.

        Raises:
            ValueError: the task has no adapters.
        """
        self._check_has_adapters()
        self.backbone.merge_adapters()
        self.compile_with(self.recipe.fresh_optimizer(self))

    def without_adapters(self) -> Self:
        """Returns a copy with the adapters merged, or the task itself if it has none.

        `save_to_preset` and `export_to_huggingface` write this copy, which any reader can load. The
        task itself stays as it is.
        """
        if self.backbone.lora is None:
            return self
        config = {k: v for k, v in self.get_config().items() if k not in LORA_ARGUMENTS}
        config |= {"backbone": self.backbone.without_adapters(), "preprocessor": self.preprocessor}
        plain = type(self).from_config(config)
        weights = head_weights(plain)
        for path, weight in head_weights(self).items():
            weights[path].assign(keras.ops.convert_to_numpy(weight))
        return plain

    def save_adapters(self, path: Path, base: str | None = None) -> None:
        """Writes the adapters and the head, without the backbone, into one safetensors file.

        With `base`, they are written as a folder for Hugging Face's library peft instead.

        The file is small, and belongs to the backbone that the adapters were trained on, which
        `load_adapters` recognizes. Tensors are named after the paths of the weights; the settings
        are in the file's metadata. To continue training, use `save`.

        Args:
            path: str or path, in a folder that exists. An existing file is replaced in one step.
            base: name or folder of the checkpoint that the adapters were trained on, in Hugging
                Face's format, where `PeftModel` finds the backbone; or `None`.

        Raises:
            ValueError: the task has no adapters, or they have no counterpart in peft.
        """
        self._check_has_adapters()
        if base is not None:
            peft.write_adapters(self, path, base)
            return
        tensors = arrays_of(self._adapters_and_head())
        settings = json.dumps(self._lora_settings(), ensure_ascii=False)
        write_safetensors(path, tensors, metadata={_SETTINGS: settings, _BASE: self._base_crc32()})

    @retry_if_changed
    def load_adapters(self, path: Path) -> None:
        """Reads the adapters and the head that `save_adapters` or the library peft wrote.

        Args:
            path: str or path of the file, or of peft's folder. In a folder of peft without a head,
                this task's own head remains.

        Raises:
            FileNotFoundError: there is no such file.
            ValueError: the file is damaged or of another kind, or its settings or shapes are not
                this task's. No weight was changed.
        """
        self._check_has_adapters()
        if (folder := peft.folder_of(path)) is not None:
            with reading(folder):
                peft.read_adapters(self, folder)
            return
        checkpoint = read_safetensors(path)
        metadata = read_metadata(path)
        self._check_lora_settings(metadata.get(_SETTINGS), path)
        variables = self._adapters_and_head()
        assign(variables, {p: (p, None) for p in variables}, checkpoint, source=str(path))
        if metadata.get(_BASE) != self._base_crc32():
            warnings.warn(
                f"The adapters in {path} were trained on a backbone with other weights than this "
                "one's. On this backbone they mean little: use the preset that they began from.",
                stacklevel=3,
            )

    def _check_has_adapters(self):
        if self.backbone.lora is None:
            name = type(self).__name__
            raise ValueError(
                f"This {name} has no adapters. Make it with `lora_rank`, for instance "
                f"`{name}.from_preset(preset, lora_rank=8)`."
            )

    def _adapters_and_head(self):
        """Returns the variables of the file by their paths."""
        return {**by_path(self.backbone.adapter_weights), **head_weights(self)}

    def _lora_settings(self):
        """Returns what must be equal in a file and in a task: JSON values by argument."""
        config = json.loads(json.dumps(self.get_config()))
        names = (*LORA_ARGUMENTS, *self.head_config_keys, "label_names")
        settings = {name: config[name] for name in names if name in config}
        return {"task": keras.saving.get_registered_name(type(self)), **settings}

    def _check_lora_settings(self, text, path):
        try:
            saved = dict(json.loads(text))
        except (TypeError, ValueError, RecursionError) as error:
            raise ValueError(
                f"A file of adapters must have their settings under {_SETTINGS!r} in its metadata. "
                f"Received: {path}, which has not. Was it written by `save_adapters`?"
            ) from error
        peft.check_same_settings(path, saved, self._lora_settings())

    def _base_crc32(self):
        """Returns a checksum of the frozen weights that the adapters were trained on."""
        adapters = {id(weight) for weight in self.backbone.adapter_weights}
        idle = {id(weight) for weight in self.excluded_weights}
        checksum = 0
        for weight in self.backbone.weights:
            if id(weight) not in adapters | idle:
                array = np.asarray(keras.ops.convert_to_numpy(weight), "float32")
                checksum = zlib.crc32(np.ascontiguousarray(array), checksum)
        return f"{checksum:08x}"
