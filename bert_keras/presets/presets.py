"""Opens a preset, whatever its format, as one object with one set of methods; saves ours.

An opened preset has

- `folder`: where its files are;
- `backbone_class(cls)`: the backbone's class, which derives from `cls`;
- `backbone(cls, **overrides)`: a new backbone of the preset's family, with initial weights;
- `load_backbone_weights(backbone)`;
- `task_name()`: the registered name of the task whose head the preset holds, or `None`;
- `task_arguments(task_class_name)`: constructor arguments that the preset holds for that task;
- `load_head_weights(task)`;
- `tokenizer_folder`: where the tokenizer's files are;
- `preprocessor_config(task_class_name)`: the saved preprocessor's config, or `None`.
"""

import json

from bert_keras.presets.formats import huggingface, keras_folder, keras_hub, tf1
from bert_keras.presets.resolve import resolve

# The first that knows the config is taken: KerasHub's also has our own's key 'registered_name'.
_FORMATS = (keras_hub.KerasHubFolder, keras_folder.KerasFolder, huggingface.HuggingFaceFolder)


def open_preset(preset):
    """Returns the opened preset of a registered name, a folder or a hub address.

    Args:
        preset: str or path, see `bert_keras.presets.resolve.resolve`.

    Returns:
        An object with the methods that this module's docstring lists.

    Raises:
        ValueError: nothing is there, or its config is damaged or of no known format.
        FileNotFoundError: a local folder that does not exist or holds no checkpoint.
    """
    folder = resolve(preset)
    is_tf1 = tf1.holds_tf1(folder)
    # Some folders hold TensorFlow's checkpoint and a copy of its config under the usual name.
    names = (tf1.CONFIG_FILE, "config.json") if is_tf1 else ("config.json",)
    path = next((folder / name for name in names if (folder / name).is_file()), None)
    if path is None:
        raise FileNotFoundError(
            "A preset is a folder with a config.json, or with TensorFlow 1's bert_config.json and "
            f"*.index. Received {str(preset)!r}, whose folder has "
            f"{sorted(p.name for p in folder.iterdir())[:20]}."
        )
    config = _read_config(path)
    for preset_format in (tf1.Tf1Folder,) if is_tf1 else _FORMATS:
        if preset_format.recognizes(config):
            opened = preset_format(folder, config)
            opened.name = str(preset)
            return opened
    raise ValueError(
        f"{path} is neither a bert_keras preset (key 'registered_name'), nor one of KerasHub's "
        "(keys 'class_name' and 'module'), nor that of a Hugging Face or TensorFlow 1 checkpoint "
        f"(keys 'model_type' or 'hidden_size'). Its keys: {sorted(config)[:20]}."
    )


def _read_config(path):
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise ValueError(
            f"{path} is not valid JSON ({error}). Download or save the preset again."
        ) from error
    if not isinstance(config, dict):
        raise ValueError(f"{path} must hold a JSON object. Received: {type(config).__name__}.")
    return config


def save_backbone(backbone, folder):
    """Writes a backbone, its adapters merged, see `keras_folder.save_backbone`."""
    keras_folder.save_backbone(backbone.without_adapters(), folder)


def save_task(task, folder):
    """Writes a task, its adapters merged, see `keras_folder.save_task`."""
    keras_folder.save_task(task.without_adapters(), folder)


def export_to_huggingface(backbone, folder, task=None, tokenizer=None, dtype=None):
    """Writes a backbone or a task, its adapters merged, see `huggingface.export`."""
    if task is None:
        backbone = backbone.without_adapters()
    else:
        task = task.without_adapters()
        backbone = task.backbone
    huggingface.export(backbone, folder, task=task, tokenizer=tokenizer, dtype=dtype)
