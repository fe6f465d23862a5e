"""Settings of a tokenizer in KerasHub's files: tokenizer.json, preprocessor.json, vocabulary.txt.

They are taken as they stand: KerasHub's `BertTokenizer` keeps accents unless told otherwise, where
Google's code strips them whenever it lowercases.
"""

import json
import os

from bert_keras.tokenizers.vocabulary import read_vocabulary

_VOCABULARY = os.path.join("assets", "tokenizer", "vocabulary.txt")


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
    saved = _read_config(path, required_class="BertTokenizer")
    if saved.get("suffix_indicator", "##") != "##" or not saved.get("split", True):
        raise ValueError(
            "Text must be split into words, and pieces that continue a word begin with '##'. "
            f"Received: suffix_indicator={saved.get('suffix_indicator')!r}, "
            f"split={saved.get('split')!r} in {path}."
        )
    settings = {
        "vocabulary": read_vocabulary(os.path.join(folder, _VOCABULARY)),
        "lowercase": saved.get("lowercase", False),
        "strip_accents": saved.get("strip_accents", False),
        "split_chinese": saved.get("split_on_cjk", True),
        "unknown_token": saved.get("oov_token", "[UNK]"),
        "special_tokens_in_text": saved.get("special_tokens_in_strings", False),
    }
    path = os.path.join(folder, "preprocessor.json")
    if os.path.isfile(path):
        length = _read_config(path).get("sequence_length")
        if length is not None:
            settings["model_max_length"] = int(length)
    return settings


def _read_config(path, required_class=None):
    try:
        with open(path, encoding="utf-8") as file:
            saved = json.load(file)
        class_name, config = saved["class_name"], dict(saved["config"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise ValueError(
            "KerasHub's settings must be a JSON object with 'class_name' and 'config'. Received: "
            f"{path} ({type(error).__name__}: {error})."
        ) from error
    if required_class is not None and class_name != required_class:
        raise ValueError(
            f"The tokenizer must be KerasHub's {required_class}. Received: {class_name!r} in "
            f"{path}."
        )
    return config
