"""The formats of checkpoint folders, one per file; a new format is a file and an entry here."""

from bert_keras.presets.formats.gliner import GlinerFolder
from bert_keras.presets.formats.huggingface import HuggingFaceFolder
from bert_keras.presets.formats.keras_hub import KerasHubFolder
from bert_keras.presets.formats.own import OwnFolder

# The first that recognizes the config is used. KerasHub's config has our key 'registered_name' too.
FORMATS = (GlinerFolder, KerasHubFolder, OwnFolder, HuggingFaceFolder)
