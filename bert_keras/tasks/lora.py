"""LoRA for tasks: the settings, files with the adapters and the head alone, and merging."""

import json
from typing import Self

import keras

from bert_keras.checks import refuse_options
from bert_keras.engine.atomic_files import reading, retry_if_changed
from bert_keras.models.adapters import DEFAULT_TARGETS
from bert_keras.presets.assign import head_weights
from bert_keras.presets.formats import peft
from bert_keras.types import Path

LORA_ARGUMENTS = ("lora_rank", "lora_alpha", "lora_targets", "lora_layers")


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
        if self.frozen is not None and (self._lora[0], self.backbone.lora) != (None, None):
            raise ValueError(
                "With adapters everything else in the backbone is frozen, so `frozen` must be "
                f"None. Received: frozen={self.frozen!r}. To adapt some layers only, pass "
                "`lora_layers`."
            )

    def _add_adapters(self):
        if self._lora[0] is not None:
            self.backbone.add_adapters(*self._lora)

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

    def save_adapters(self, folder: Path, base: str) -> None:
        """Writes the adapters and the head, without the backbone, as peft's library does.

        The folder is small, and belongs to the checkpoint that the adapters were trained on. To
        continue training, use `save`.

        Args:
            folder: str or path, made if missing.
            base: name or folder of the checkpoint that the adapters were trained on, in Hugging
                Face's format, where `PeftModel` finds the backbone.

        Raises:
            ValueError: the task has no adapters, or they have no counterpart in peft: save such a
                task as a `.keras` file.
        """
        self._check_has_adapters()
        peft.write_adapters(self, folder, base)

    @retry_if_changed
    def load_adapters(self, path: Path) -> None:
        """Reads the adapters and the head that `save_adapters` or the library peft wrote.

        Args:
            path: str or path of the folder, or of its file of weights. Without a head in the
                folder, this task's own head remains.

        Raises:
            FileNotFoundError: there is no such folder.
            ValueError: a file is damaged, or its settings or shapes are not this task's. No weight
                was changed.
        """
        self._check_has_adapters()
        folder = peft.folder_of(path)
        with reading(folder):
            peft.read_adapters(self, folder)

    def _check_has_adapters(self):
        if self.backbone.lora is None:
            name = type(self).__name__
            raise ValueError(
                f"This {name} has no adapters. Make it with `lora_rank`, for instance "
                f"`{name}.from_preset(preset, lora_rank=8)`."
            )
