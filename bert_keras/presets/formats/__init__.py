"""The formats of checkpoint folders, one per file; a new format is a file and a case here."""

from bert_keras.presets.formats.gliner import GlinerFolder
from bert_keras.presets.formats.huggingface import HuggingFaceFolder
from bert_keras.presets.formats.keras_hub import KerasHubFolder
from bert_keras.presets.formats.native import OwnFolder
from bert_keras.presets.formats.sentence_transformers import SentenceTransformersFolder, root_of
from bert_keras.presets.formats.tf1 import Tf1Folder

# The names of configs. The last two are those of TensorFlow 1.
CONFIG_FILES = (GlinerFolder.config_file, "config.json", "bert_config.json", "albert_config.json")


def format_of(config, folder, is_tf1):
    """Returns the class that opens a folder, or `None` for an unknown format.

    Args:
        config: dict, the folder's parsed config.
        folder: `Path`.
        is_tf1: bool, whether its weights are those of TensorFlow 1, see `tf1.holds_tf1`.
    """
    registered, module = (str(config.get(key) or "") for key in ("registered_name", "module"))
    if is_tf1:
        return Tf1Folder if "hidden_size" in config else None
    if {"span_mode", "max_width"} <= config.keys():
        return GlinerFolder
    if {registered.partition(">")[0], module.partition(".")[0]} & {"keras_hub", "keras_nlp"}:
        return KerasHubFolder
    if registered:
        return OwnFolder
    if {"model_type", "hidden_size"} & config.keys():
        return HuggingFaceFolder if root_of(folder) is None else SentenceTransformersFolder
    return None
