"""Opens presets of all formats as objects with the same methods, see `formats.checkpoint`."""

from bert_keras.engine.atomic_files import read_json, reading, retry_if_changed
from bert_keras.presets.formats.gliner import GlinerFolder
from bert_keras.presets.formats.huggingface import HuggingFaceFolder
from bert_keras.presets.formats.keras_hub import KerasHubFolder
from bert_keras.presets.formats.native import NativePreset
from bert_keras.presets.formats.sentence_transformers import SentenceTransformersFolder
from bert_keras.presets.formats.tf1 import Tf1Folder
from bert_keras.presets.resolve import CONFIG_FILES, resolve, root_of


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
    others = [*folder.glob("*.safetensors"), *folder.glob("*.weights.h5")]
    is_tf1 = any(folder.glob("*.index")) and not others
    # Some folders of TensorFlow checkpoints also have a copy of the config with the usual name.
    names = CONFIG_FILES[::-1] if is_tf1 else CONFIG_FILES
    # One of them exists, or `resolve` would have raised.
    path = next(folder / name for name in names if (folder / name).is_file())
    config = read_json(path)
    registered = str(config.get("registered_name") or "")
    module = str(config.get("module") or "")
    if is_tf1:
        preset_format = Tf1Folder
    elif {"span_mode", "max_width"} <= config.keys():
        preset_format = GlinerFolder
    elif {registered.partition(">")[0], module.partition(".")[0]} & {"keras_hub", "keras_nlp"}:
        preset_format = KerasHubFolder
    elif registered:
        preset_format = NativePreset
    elif {"hidden_size", "model_type"} & config.keys():
        preset_format = SentenceTransformersFolder if root_of(folder) else HuggingFaceFolder
    else:
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
    cls = source.registered_class(source.backbone_name, cls)
    backbone = source.backbone(cls, load_weights, arguments)
    if load_weights:
        with reading(source.folder):
            source.load_backbone_weights(backbone)
    return backbone
