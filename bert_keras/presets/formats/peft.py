"""Hugging Face's folder of LoRA adapters: `adapter_config.json` and `adapter_model.safetensors`.

An adapted kernel is `W + alpha / rank * (A B)`, in peft as here. In peft's file, A and B are
transposed, and their names begin with that of the layer in the base checkpoint. Layers in
`modules_to_save`, such as a new head, are in the file as a whole. The base is not: the config only
names it.

Reference: https://huggingface.co/docs/peft, `utils/save_and_load.py`.
"""

import pathlib
import re

from bert_keras.checks import check_settings
from bert_keras.engine.atomic_files import read_json, replacing_files, write_json
from bert_keras.presets.assign import assign, by_path, head_weights
from bert_keras.presets.families import head_class_name, record_of
from bert_keras.presets.formats.checkpoint import counterpart, refuse, tensors_of
from bert_keras.presets.formats.huggingface import HuggingFaceFolder
from bert_keras.presets.name_map import expand
from bert_keras.presets.resolve import ADAPTERS
from bert_keras.presets.safetensors_io import read_safetensors, write_safetensors
from bert_keras.presets.torch_pickle import read_torch

_WEIGHTS, _PICKLE = "adapter_model.safetensors", "adapter_model.bin"
_PREFIX = "base_model.model."
_LIBRARY = "peft"
# Settings that change what is computed, with the values that our adapters can follow. Some ways to
# start, such as "pissa", change the base's kernels, so that they would need the changed base.
_ALLOWED = {
    "peft_type": ("LORA",),
    "bias": ("none",),
    "init_lora_weights": (True, False, None, "gaussian", "eva", "orthogonal"),
}
# Settings of unsupported variants of LoRA. These values turn a variant off.
_OFF = ("use_dora", "use_qalora", "use_bdlora", "lora_bias", "rank_pattern", "alpha_pattern")
_OFF += ("layer_replication", "trainable_token_indices", "target_parameters", "arrow_config")
_OFF += ("alora_invocation_tokens", "kasa_config", "monteclora_config")
_ALLOWED |= dict.fromkeys(_OFF, (None, False, {}, []))
# The ending of transformers' class -> peft's name of its task.
_TYPES = {
    "ForQuestionAnswering": "QUESTION_ANS",
    "ForSequenceClassification": "SEQ_CLS",
    "ForTokenClassification": "TOKEN_CLS",
}


def folder_of(path):
    """Returns the folder of adapters at a path, which may be its weights file, or `None`."""
    path = pathlib.Path(path)
    folder = path.parent if path.name in (_WEIGHTS, _PICKLE) else path
    return folder if (folder / ADAPTERS).is_file() else None


def read_adapters(task, folder):
    """Assigns a folder's adapters, and the layers that it holds as a whole, to a task's weights.

    Args:
        task: a `Task` with adapters.
        folder: `Path`.

    Raises:
        FileNotFoundError: there are no weights.
        ValueError: a setting is not supported or differs from the task's, or a name or a shape does
            not fit. No weight was changed.
    """
    path = folder / ADAPTERS
    advice, lora = "Other settings are not supported.", task.backbone.lora
    config = check_settings(path, read_json(path), _ALLOWED, advice)
    rank, alpha = config.get("r", 8), config.get("lora_alpha", 8)
    if config.get("use_rslora"):
        alpha *= rank**0.5
    check_same_settings(path, {**lora, "lora_rank": rank, "lora_alpha": alpha}, lora)
    if (folder / _PICKLE).is_file() and not (folder / _WEIGHTS).is_file():
        tensors = read_torch(folder / _PICKLE)
    else:
        tensors = read_safetensors(folder / _WEIGHTS)
    tensors = tensors.renamed({_without_peft_parts(name, task): name for name in tensors})
    names, head = _tensor_names(task), head_weights(task)
    adapted = {name.partition(".lora_")[0] for name in tensors if ".lora_" in name}
    # Layers of blocks have the block's number in their names.
    if outside := sorted(name for name in adapted if not re.search(r"\.\d+\.", name)):
        raise ValueError(
            f"Adapters must be in the blocks of the encoder. Received: {folder} with adapters of "
            f"{outside}. Merge them into the model with peft's `merge_and_unload()`, and load the "
            "folder that its `save_pretrained` writes."
        )
    is_in_file = {path: name in tensors for path, (name, _) in names.items()}
    variables = by_path(task.backbone.adapter_weights)
    # Without a head in the file, the task's own remains.
    variables |= head if any(is_in_file.get(path) for path in head) else {}
    # A layer of the backbone, such as the pooler, may be in the file as a whole too.
    variables |= {p: w for p, w in by_path(task.backbone.weights).items() if is_in_file[p]}
    assign(variables, names, tensors, source=str(folder))


def check_same_settings(path, saved, own):
    """Raises `ValueError` unless the settings in a file of adapters are those of a task."""
    differences = [
        f"{name}={saved.get(name)!r}, here {own.get(name)!r}"
        for name in sorted(saved.keys() | own.keys())
        if saved.get(name) != own.get(name)
    ]
    if differences:
        raise ValueError(
            f"The settings of the adapters in {path} must be this task's. No weight was changed. "
            f"In the file: {'; '.join(differences)}. Make the task with the file's."
        )


def write_adapters(task, folder, base):
    """Writes a task's adapters and head as a folder that `PeftModel.from_pretrained` loads.

    Args:
        task: a `Task` with adapters.
        folder: str or path, made when missing.
        base: str, the base checkpoint's name or folder in Hugging Face's format.

    Raises:
        ValueError: the family, the task or its head has no counterpart there.
    """
    names, (record, own) = _tensor_names(task), counterpart(task, _LIBRARY)
    if own.architecture not in _TYPES:
        refuse(type(task).__name__, sorted(_TYPES), _LIBRARY)
    prefix = record.prefix
    adapters, head = by_path(task.backbone.adapter_weights), head_weights(task)
    tensors = {}
    for start, weights in ((_PREFIX + prefix, adapters), (_PREFIX, head)):
        found = tensors_of(weights, names, _LIBRARY, "Use `save_adapters`.")
        tensors |= {start + name: array for name, array in found.items()}
    layers = (path.rpartition("/")[0] for path in adapters)
    config = {
        "peft_type": "LORA",
        "task_type": _TYPES[own.architecture],
        "base_model_name_or_path": str(base),
        "r": task.backbone.lora["lora_rank"],
        "lora_alpha": task.backbone.lora["lora_alpha"],
        "target_modules": sorted({prefix + _module_name(names, layer) for layer in layers}),
        "modules_to_save": sorted({names[path][0].partition(".")[0] for path in head}),
        "bias": "none",
        "inference_mode": True,
    }
    with replacing_files(folder, stale=(_PICKLE,)) as new:
        write_safetensors(new / _WEIGHTS, tensors)
        write_json(new / ADAPTERS, config)


def _without_peft_parts(name, task):
    """Returns a tensor's name without the prefix and the parts that peft adds."""
    parts = name.removeprefix(_PREFIX).split(".")
    name = ".".join(part for part in parts if part not in ("default", "modules_to_save"))
    return name.removeprefix(record_of(task.backbone).prefix)


def _tensor_names(task):
    """Returns a dict, path of a task's weight -> `(name of its tensor, transform)`."""
    record = record_of(task.backbone)
    if record is None or (record.tables and record.tables.joins):
        known = "families whose dense layers are the same there, such as BERT"
        refuse(type(task.backbone).__name__, known, _LIBRARY)
    kind = head_class_name(task, record.heads)
    rows = (*record.rows, *(record.heads[kind].rows if kind in record.heads else ()))
    names = expand(rows, HuggingFaceFolder.kinds, record.counts, task.backbone)
    for path in by_path(task.backbone.adapter_weights):
        layer, _, adapter = path.rpartition("/")
        letter = {"lora_a": "A", "lora_b": "B"}[adapter]
        names[path] = (f"{_module_name(names, layer)}.lora_{letter}.weight", "transpose")
    return names


def _module_name(names, layer):
    """Returns their name of a dense layer of ours."""
    return names[f"{layer}/kernel"][0].removesuffix(".weight")
