"""Settings of a tokenizer in KerasHub's files: tokenizer.json, preprocessor.json, vocabulary.txt.

They are taken as they stand: KerasHub's `BertTokenizer` keeps accents unless told otherwise, where
Google's code strips them whenever it lowercases.
"""

import os

from bert_keras.files import read_json
from bert_keras.tokenizers.vocabulary import read_vocabulary

_VOCABULARY = os.path.join("assets", "tokenizer", "vocabulary.txt")
# Names there, ours, and what holds where a name is missing.
_SETTINGS = {
    "lowercase": ("lowercase", False),
    "strip_accents": ("strip_accents", False),
    "split_on_cjk": ("split_chinese", True),
    "oov_token": ("unknown_token", "[UNK]"),
    "special_tokens_in_strings": ("special_tokens_in_text", False),
}


def is_keras_hub_folder(folder):
    """Whether a folder holds a vocabulary where KerasHub puts it."""
    return os.path.isfile(os.path.join(folder, _VOCABULARY))


def read_keras_hub_tokenizer(folder):
    """Reads a preset folder of KerasHub into arguments of `WordPieceTokenizer`.

    Args:
        folder: str.

    Returns:
        A dict with `vocabulary` (list of str) and the settings that the files tell.

    Raises:
        ValueError: a file is damaged, or the tokenizer is not BERT's kind.
    """
    path = os.path.join(folder, "tokenizer.json")
    class_name, saved = read_serialized(path)
    suffix, is_split = saved.get("suffix_indicator", "##"), saved.get("split", True)
    if (class_name, suffix, is_split) != ("BertTokenizer", "##", True):
        raise ValueError(
            "KerasHub's tokenizer must be a BertTokenizer that splits text into words, and whose "
            f"pieces that continue a word begin with '##'. Received: {class_name!r} with "
            f"suffix_indicator={suffix!r}, split={is_split!r} in {path}."
        )
    settings = {ours: saved.get(name, default) for name, (ours, default) in _SETTINGS.items()}
    settings["vocabulary"] = read_vocabulary(os.path.join(folder, _VOCABULARY))
    path = os.path.join(folder, "preprocessor.json")
    if os.path.isfile(path) and (length := read_serialized(path)[1].get("sequence_length")):
        settings["model_max_length"] = int(length)
    return settings


def read_serialized(path):
    """Returns the class's name and the arguments that a settings file of KerasHub's holds.

    Args:
        path: str or path.

    Raises:
        ValueError: the file is missing or damaged.
    """
    try:
        saved = read_json(path)
        return saved["class_name"], dict(saved["config"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ValueError(
            "KerasHub's settings must be a JSON object with 'class_name' and 'config'. Received: "
            f"{path} ({type(error).__name__}: {error})."
        ) from error
