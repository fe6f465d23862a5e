"""Opens presets of all formats as objects with the same methods, see `formats.checkpoint`."""

from bert_keras.engine.atomic_files import read_json, reading, retry_if_changed
from bert_keras.presets.formats import CONFIG_FILES, format_of
from bert_keras.presets.formats.huggingface import export_to_huggingface
from bert_keras.presets.formats.native import save_preset
from bert_keras.presets.formats.tf1 import holds_tf1
from bert_keras.presets.resolve import resolve

__all__ = ["export_to_huggingface", "load_backbone", "open_preset", "save_preset"]


def open_preset(preset):
    """Returns the opened preset of a registered name, a folder or a hub address.

    Args:
        preset: str or path, see `bert_keras.presets.resolve.resolve`.

    Returns:
        An object with the methods that `bert_keras.presets.formats.checkpoint` lists.

    Raises:
        ValueError: the source is unknown, or the config is damaged or of an unknown format.
        FileNotFoundError: the local folder does not exist or has no checkpoint.
    """
    folder = resolve(preset)
    is_tf1 = holds_tf1(folder)
    # Some folders of TensorFlow checkpoints also have a copy of the config with the usual name.
    names = CONFIG_FILES[::-1] if is_tf1 else CONFIG_FILES
    # One of them exists, or `resolve` would have raised.
    path = next(folder / name for name in names if (folder / name).is_file())
    config = read_json(path)
    preset_format = format_of(config, folder, is_tf1)
    if preset_format is None:
        raise ValueError(
            f"{path} is neither a bert_keras preset (key 'registered_name'), nor one of KerasHub's "
            "(keys 'class_name' and 'module'), nor that of a Hugging Face or TensorFlow 1 "
            "checkpoint (keys 'model_type' or 'hidden_size'). Its keys: "
            f"{sorted(config)[:20]}."
        )
    with reading(folder):
        return preset_format(folder, config, path, str(preset))


@retry_if_changed
def load_backbone(cls, preset, load_weights, arguments):
    """Returns a backbone from a preset, see `Backbone.from_preset`.

    Args:
        cls: `Backbone` or a subclass.
        preset: str or path.
        load_weights: bool.
        arguments: dict, constructor arguments that override the preset's.
    """
    source = open_preset(preset)
    backbone = source.backbone(cls, load_weights, arguments)
    if load_weights:
        with reading(source.folder):
            source.load_backbone_weights(backbone)
    return backbone
