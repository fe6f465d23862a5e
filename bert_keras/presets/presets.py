"""Opens a preset, whatever its format, as one object with one set of methods; saves ours.

An opened preset has

- `backbone(cls, **overrides)`: a new backbone of the preset's family, with initial weights;
- `load_backbone_weights(backbone)`;
- `task_arguments(task_class_name)`: constructor arguments that the preset holds for that task;
- `load_head_weights(task)`;
- `tokenizer_folder`: where the tokenizer's files are;
- `preprocessor_config(task_class_name)`: the saved preprocessor's config, or `None`.
"""

import json

from bert_keras.presets.formats import huggingface, keras_folder
from bert_keras.presets.resolve import resolve


def open_preset(preset):
    """Returns the opened preset of a registered name, a folder or a hub address.

    Args:
        preset: str or path, see `bert_keras.presets.resolve.resolve`.

    Returns:
        An object with the methods that this module's docstring lists.

    Raises:
        ValueError: nothing is there, or its `config.json` is damaged or of no known format.
        FileNotFoundError: a local folder that does not exist or holds no checkpoint.
    """
    folder = resolve(preset)
    path = folder / "config.json"
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise FileNotFoundError(
            f"A preset is a folder with a config.json. Received {str(preset)!r}, whose folder has "
            f"{sorted(p.name for p in folder.iterdir())[:20]}."
        ) from None
    except (ValueError, RecursionError) as error:
        raise ValueError(
            f"{path} is not valid JSON ({error}). Download or save the preset again."
        ) from error
    if not isinstance(config, dict):
        raise ValueError(f"{path} must hold a JSON object. Received: {type(config).__name__}.")
    for preset_format in (keras_folder.KerasFolder, huggingface.HuggingFaceFolder):
        if preset_format.recognizes(config):
            return preset_format(folder, config)
    raise ValueError(
        f"{path} is neither a bert_keras preset (key 'registered_name') nor a Hugging Face "
        f"checkpoint (keys 'model_type' or 'hidden_size'). Its keys: {sorted(config)[:20]}."
    )


save_backbone = keras_folder.save_backbone
save_task = keras_folder.save_task
export_to_huggingface = huggingface.export
