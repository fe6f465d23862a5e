"""Settings of a tokenizer in Hugging Face's files: tokenizer_config.json and tokenizer.json."""

import json
import os

from bert_keras.tokenizers.keras_hub_settings import (
    is_keras_hub_folder,
    read_keras_hub_tokenizer,
)
from bert_keras.tokenizers.vocabulary import read_vocabulary

TOKEN_NAMES = {
    "unknown_token": "unk_token",
    "cls_token": "cls_token",
    "sep_token": "sep_token",
    "pad_token": "pad_token",
    "mask_token": "mask_token",
}
DEFAULT_TOKENS = {
    "unknown_token": "[UNK]",
    "cls_token": "[CLS]",
    "sep_token": "[SEP]",
    "pad_token": "[PAD]",
    "mask_token": "[MASK]",
}
FLAG_NAMES = {
    "lowercase": "do_lower_case",
    "strip_accents": "strip_accents",
    "split_chinese": "tokenize_chinese_chars",
}
# All files of a folder that say something of its tokenizer.
TOKENIZER_FILES = ("vocab.txt", "tokenizer.json", "added_tokens.json", "tokenizer_config.json")
# Hugging Face writes 1e30 where no length is known.
LONGEST_BELIEVABLE = 1_000_000


def read_saved_tokenizer(source):
    """Reads a folder, a vocab.txt or a tokenizer.json into arguments of `WordPieceTokenizer`.

    Args:
        source: str or path.

    Returns:
        A dict with `vocabulary` (list of str) and whatever settings the files tell.
    """
    source = os.fspath(source)
    if os.path.isdir(source):
        return _read_folder(source)
    if not os.path.isfile(source):
        raise FileNotFoundError(f"A tokenizer's file or folder must exist. Received: {source}.")
    if not source.endswith(".json"):
        return {"vocabulary": read_vocabulary(source)}
    settings, ids = _read_tokenizer_json(source, {})
    return settings | {"vocabulary": _join_vocabularies([], ids, source)}


def _read_folder(folder):
    if is_keras_hub_folder(folder):
        return read_keras_hub_tokenizer(folder)
    vocabulary_path, tokenizer_path, added_path, config_path = (
        os.path.join(folder, name) for name in TOKENIZER_FILES
    )
    if not os.path.exists(vocabulary_path) and not os.path.exists(tokenizer_path):
        raise FileNotFoundError(
            "A tokenizer needs a vocab.txt or a tokenizer.json. Received: "
            f"{folder}, which holds neither."
        )
    config = _read_tokenizer_config(config_path) if os.path.exists(config_path) else {}
    lines = read_vocabulary(vocabulary_path) if os.path.exists(vocabulary_path) else []
    settings, ids = {}, {}
    if os.path.exists(tokenizer_path):
        settings, ids = _read_tokenizer_json(tokenizer_path, config)
    elif os.path.exists(added_path):
        # Older folders without tokenizer.json keep further tokens beside vocab.txt.
        ids = _read_json(added_path)
        settings = {"added_tokens": [token for token in ids if token not in lines]}
    return settings | config | {"vocabulary": _join_vocabularies(lines, ids, folder)}


def write_saved_tokenizer(folder, backend, config):
    """Writes tokenizer.json from the library's own tokenizer, and tokenizer_config.json."""
    backend.save(os.path.join(folder, "tokenizer.json"))
    saved = {theirs: config[ours] for ours, theirs in (FLAG_NAMES | TOKEN_NAMES).items()}
    saved["tokenizer_class"] = "BertTokenizer"
    if config["model_max_length"] is not None:
        saved["model_max_length"] = config["model_max_length"]
    if config["added_tokens"]:
        saved["additional_special_tokens"] = config["added_tokens"]
    with open(os.path.join(folder, "tokenizer_config.json"), "w", encoding="utf-8") as file:
        json.dump(saved, file, ensure_ascii=False, indent=2)


def _read_tokenizer_config(path):
    saved = _read_json(path)
    if saved.get("word_tokenizer_type", "basic") != "basic":
        raise ValueError(
            "Words must be found by BERT's rules, spaces and punctuation. Received: "
            f"word_tokenizer_type={saved['word_tokenizer_type']!r} in {path}. Split the text into "
            "words by that tool, and load vocab.txt alone to cut the words into pieces."
        )
    settings = {}
    for ours, theirs in FLAG_NAMES.items():
        if saved.get(theirs) is not None:
            settings[ours] = saved[theirs]
    for ours, theirs in TOKEN_NAMES.items():
        token = saved.get(theirs)
        if token is not None:
            settings[ours] = token["content"] if isinstance(token, dict) else token
    length = saved.get("model_max_length")
    if length is not None and length < LONGEST_BELIEVABLE:
        settings["model_max_length"] = int(length)
    return settings


def _read_tokenizer_json(path, config):
    saved = _read_json(path)
    model = saved.get("model") or {}
    normalizer = saved.get("normalizer") or {}
    pre_tokenizer = saved.get("pre_tokenizer") or {}
    kinds = {
        # Old files leave out the model's type.
        "model": (model.get("type", "WordPiece"), "WordPiece"),
        "normalizer": (normalizer.get("type"), "BertNormalizer"),
        "pre_tokenizer": (pre_tokenizer.get("type"), "BertPreTokenizer"),
    }
    for part, (received, expected) in kinds.items():
        if received != expected:
            raise ValueError(
                f"tokenizer.json must hold BERT's tokenizer, whose {part} is {expected}. "
                f"Received: {received} in {path}."
            )
    if model.get("continuing_subword_prefix", "##") != "##":
        raise ValueError(
            "Pieces that continue a word must begin with '##'. Received: "
            f"continuing_subword_prefix={model['continuing_subword_prefix']!r} in {path}."
        )
    added = {token["content"]: token for token in saved.get("added_tokens", [])}
    unknown_token = model.get("unk_token", "[UNK]")
    names = {config.get(ours, token) for ours, token in DEFAULT_TOKENS.items()} | {unknown_token}
    settings = {
        "lowercase": normalizer.get("lowercase", True),
        "strip_accents": normalizer.get("strip_accents"),
        "split_chinese": normalizer.get("handle_chinese_chars", True),
        "unknown_token": unknown_token,
        "added_tokens": _added_tokens(added, names, path),
        "special_tokens_in_text": not names.isdisjoint(added),
        "max_characters_per_word": model.get("max_input_chars_per_word", 100),
    }
    return settings, model.get("vocab", {}) | {
        content: token["id"] for content, token in added.items()
    }


def _added_tokens(added, names, path):
    """Returns the tokens that are added to the special ones, which `names` holds."""
    further = [content for content in added if content not in names]
    for content in further:
        token = added[content]
        if any(token.get(option) for option in ("lstrip", "rstrip", "single_word", "normalized")):
            raise ValueError(
                "An added token must be matched as it stands in the text (no lstrip, rstrip, "
                f"single_word, normalized). Received: {token} in {path}."
            )
    return further


def _join_vocabularies(lines, ids, source):
    """Returns the tokens of vocab.txt and those of other files by id, which must agree."""
    tokens = dict(enumerate(lines))
    for token, id in ids.items():
        if tokens.setdefault(id, token) != token:
            raise ValueError(
                "The vocabularies of one folder must agree. Received: id "
                f"{id} is {tokens[id]!r} in vocab.txt and {token!r} in a JSON file of {source}. "
                "Name the right file instead of the folder, or remove the other."
            )
    missing = [id for id in range(len(tokens)) if id not in tokens]
    if missing:
        raise ValueError(
            f"Ids must run from 0 without a gap. Received: no token for {missing[:5]} in {source}."
        )
    return [tokens[id] for id in range(len(tokens))]


def _read_json(path):
    with open(path, encoding="utf-8") as file:
        try:
            saved = json.load(file)
        except ValueError as error:
            raise ValueError(f"{path} must be JSON. Received: {error}.") from error
    if not isinstance(saved, dict):
        raise ValueError(f"{path} must hold a JSON object. Received: {type(saved).__name__}.")
    return saved
