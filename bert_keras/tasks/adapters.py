"""LoRA for tasks: the settings, files with the adapters and the head alone, and merging."""

import json
import warnings
import zlib

import keras
import numpy as np

from bert_keras.models.adapters import DEFAULT_TARGETS
from bert_keras.presets.assign import assign, relative_path
from bert_keras.presets.safetensors_io import read_safetensors, write_safetensors

LORA_ARGUMENTS = ("lora_rank", "lora_alpha", "lora_targets", "lora_layers")
# Keys of a file's metadata.
_SETTINGS, _BASE = "bert_keras_adapters", "base_crc32"


class AdaptedTask:
    """The part of `Task` that is about LoRA adapters.

    The adapters are in the backbone, so tasks that share it share them.
    """

    # Arguments of the constructor that every task has.
    shared_arguments = LORA_ARGUMENTS

    def _add_adapters(self, rank, alpha, targets, layers):
        has_options = (alpha, layers) != (None, None) or targets != DEFAULT_TARGETS
        if rank is None and has_options:
            raise ValueError(
                "`lora_alpha`, `lora_targets` and `lora_layers` are options of `lora_rank`. "
                "Received: lora_rank=None. Give the rank, for instance 8."
            )
        if self.frozen is not None and not (rank is None and self.backbone.lora is None):
            raise ValueError(
                "With adapters everything in the backbone but them is frozen, so `frozen` must be "
                f"None. Received: frozen={self.frozen!r}. To adapt some layers only, pass "
                "`lora_layers`."
            )
        if rank is not None:
            self.backbone.add_adapters(rank, alpha, targets, layers)

    def _lora_config(self):
        """Returns the settings of the adapters as arguments of the constructor, or `{}`."""
        return json.loads(json.dumps(self.backbone.lora or {}))

    def _check_has_adapters(self):
        if self.backbone.lora is None:
            raise ValueError(
                f"This {type(self).__name__} has no adapters. Make it with `lora_rank`, for "
                f"instance `{type(self).__name__}.from_preset(preset, lora_rank=8)`."
            )

    def merge_lora(self):
        """Folds the adapters into the kernels: a plain task that computes the same.

        Everything trains again then, as in a task made without `lora_rank`. The optimizer starts
        anew, with the settings it had. Other tasks on the same backbone lose their adapters too;
        compile them again before they train.

        Raises:
            ValueError: the task has no adapters.
        """
        self._check_has_adapters()
        self.backbone.merge_adapters()
        self._renew_optimizer()

    def _renew_optimizer(self):
        """Compiles with a new optimizer of the same settings, since the weights are others now."""
        if self._has_own_recipe:
            optimizer = self._recipe_optimizer()
        else:
            optimizer = type(self.optimizer).from_config(self.optimizer.get_config())
        self._compile_with(optimizer)
        self.train_function = self.test_function = self.predict_function = None

    def without_adapters(self):
        """Returns a copy with the adapters merged, or itself where there are none.

        `save_to_preset` and `export_to_huggingface` write this copy, which others can read without
        knowing of adapters. The task itself stays as it is.
        """
        if self.backbone.lora is None:
            return self
        config = {k: v for k, v in self.get_config().items() if k not in LORA_ARGUMENTS}
        config |= {"backbone": self.backbone.without_adapters(), "preprocessor": self.preprocessor}
        plain = type(self).from_config(config)
        for copy, weight in zip(plain.head.weights, self.head.weights, strict=True):
            copy.assign(keras.ops.convert_to_numpy(weight))
        return plain

    def save_adapters(self, path):
        """Writes the adapters and the head, without the backbone, into one safetensors file.

        The file is small and goes with the backbone that the adapters were trained on, which
        `load_adapters` recognizes. Tensors are called by the paths of the weights; the settings are
        in the file's metadata. To go on with training, use `save`.

        Args:
            path: str or path, in a folder that exists. A file there is replaced in one step.

        Raises:
            ValueError: the task has no adapters.
        """
        self._check_has_adapters()
        tensors = {
            name: keras.ops.convert_to_numpy(weight)
            for name, weight in self._adapters_and_head().items()
        }
        settings = json.dumps(self._adapter_settings(), ensure_ascii=False)
        write_safetensors(path, tensors, metadata={_SETTINGS: settings, _BASE: self._base_crc32()})

    def load_adapters(self, path):
        """Reads the adapters and the head that `save_adapters` wrote.

        Args:
            path: str or path of the file.

        Raises:
            FileNotFoundError: there is no such file.
            ValueError: the file is damaged or of another kind, or its settings or shapes are not
                those of this task. No weight was changed.
        """
        self._check_has_adapters()
        checkpoint = read_safetensors(path)
        self._check_settings(checkpoint.metadata.get(_SETTINGS), path)
        variables = self._adapters_and_head()
        assign(variables, {p: (p, None) for p in variables}, checkpoint, source=str(path))
        if checkpoint.metadata.get(_BASE) != self._base_crc32():
            warnings.warn(
                f"The adapters in {path} were trained on a backbone with other weights than this "
                "one's. On this backbone they mean little: use the preset that they began from.",
                stacklevel=2,
            )

    def _adapters_and_head(self):
        """Returns the variables of the file by their paths."""
        own = {id(weight) for weight in self.backbone.weights}
        head = [weight for weight in self.weights if id(weight) not in own]
        return {relative_path(weight): weight for weight in (*self.backbone.adapter_weights, *head)}

    def _adapter_settings(self):
        """Returns what must be equal between a file and a task: JSON values by argument."""
        config = json.loads(json.dumps(self.get_config()))
        names = (*LORA_ARGUMENTS, *self.head_arguments, "label_names")
        settings = {name: config[name] for name in names if name in config}
        return {"task": keras.saving.get_registered_name(type(self)), **settings}

    def _check_settings(self, text, path):
        try:
            saved = dict(json.loads(text))
        except (TypeError, ValueError, RecursionError) as error:
            raise ValueError(
                f"A file of adapters must have their settings under {_SETTINGS!r} in its metadata. "
                f"Received: {path}, which has not. Was it written by `save_adapters`?"
            ) from error
        own = self._adapter_settings()
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
        adapters = {id(weight) for weight in self.backbone.adapter_weights}
        checksum = 0
        for weight in self._without_idle(self.backbone.weights):
            if id(weight) not in adapters:
                array = np.asarray(keras.ops.convert_to_numpy(weight), "float32")
                checksum = zlib.crc32(np.ascontiguousarray(array), checksum)
        return f"{checksum:08x}"
