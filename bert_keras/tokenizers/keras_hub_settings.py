"""A tokenizer in KerasHub's files: tokenizer.json, preprocessor.json, and its vocabulary.

Settings are taken literally: KerasHub's `BertTokenizer` keeps accents by default, while Google's
code strips them whenever it lowercases.
"""

import os

from bert_keras.engine.atomic_files import read_json, requiring
from bert_keras.tokenizers.vocabulary import read_vocabulary

ASSETS = os.path.join("assets", "tokenizer")
# The vocabulary's file -> the class that reads it.
_CLASSES = {"vocabulary.txt": "WordPieceTokenizer", "vocabulary.json": "BytePairTokenizer"}
_CLASSES["vocabulary.spm"] = "UnigramTokenizer"
# A folder with one of these is KerasHub's.
KERAS_HUB_VOCABULARIES = tuple(f"assets/tokenizer/{name}" for name in _CLASSES)
# Their names -> our names and their defaults.
_SETTINGS = {
    "lowercase": ("lowercase", False),
    "strip_accents": ("strip_accents", False),
    "split_on_cjk": ("split_chinese", True),
    "oov_token": ("unknown_token", "[UNK]"),
    "special_tokens_in_strings": ("special_tokens_in_text", False),
}


def read_keras_hub_tokenizer(folder, vocabulary):
    """Reads a preset folder of KerasHub into the arguments of a tokenizer class.

    Args:
        folder: str or path.
        vocabulary: `Path` of the vocabulary in it.

    Returns:
        class_name: str, see `read_tokenizer`.
        settings: dict, the settings in the files.

    Raises:
        ValueError: a file is damaged, or the tokenizer is of an unsupported kind.
    """
    path = os.path.join(folder, "tokenizer.json")
    saved, name = read_serialized(path)[1], vocabulary.name
    if name == "vocabulary.txt":
        settings = _word_piece(saved, path) | {"vocabulary": read_vocabulary(vocabulary)}
    elif name == "vocabulary.json":
        settings = {"vocabulary": vocabulary, "merges": vocabulary.with_name("merges.txt")}
        settings["add_prefix_space"] = bool(saved.get("add_prefix_space"))
    else:
        # KerasHub cleans text only as the file says.
        settings = {"model": vocabulary, "lowercase": False, "strip_accents": False}
    path = os.path.join(folder, "preprocessor.json")
    if os.path.isfile(path) and (length := read_serialized(path)[1].get("sequence_length")):
        settings["model_max_length"] = int(length)
    return _CLASSES[name], settings


def _word_piece(saved, path):
    suffix, is_split = saved.get("suffix_indicator", "##"), saved.get("split", True)
    if (suffix, is_split) != ("##", True):
        raise ValueError(
            "KerasHub's tokenizer must split text into words, and pieces inside a word must begin "
            f"with '##'. Received: suffix_indicator={suffix!r}, split={is_split!r} in {path}."
        )
    settings = {ours: saved.get(name, default) for name, (ours, default) in _SETTINGS.items()}
    return settings | {"added_tokens": saved.get("special_tokens") or ()}


def read_serialized(path):
    """Returns the class name and the arguments in a settings file of KerasHub's.

    Args:
        path: str or path.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: the file is damaged.
    """
    with requiring(path, "hold a 'class_name' and a dict 'config'"):
        saved = read_json(path)
        return saved["class_name"], {**saved["config"]}
