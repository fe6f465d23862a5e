"""Tokenizers in files: Hugging Face's, Google's, KerasHub's, and those of SentencePiece."""

import json
import os
import pathlib

import tokenizers

from bert_keras.files import read_json, write_json
from bert_keras.tokenizers.keras_hub_settings import (
    is_keras_hub_folder,
    read_keras_hub_tokenizer,
)
from bert_keras.tokenizers.layout import Layout
from bert_keras.tokenizers.vocabulary import (
    looks_lowercased,
    named_lowercased,
    read_vocabulary,
    without_line,
    write_vocabulary,
)

TOKENIZER_FILE = "tokenizer.json"
SENTENCE_PIECE_FILES = ("sentencepiece.bpe.model", "spiece.model", "spm.model")
# What holds a vocabulary, and beside it what says something of the tokenizer.
VOCABULARY_FILES = (TOKENIZER_FILE, "vocab.txt", "vocab.json", *SENTENCE_PIECE_FILES)
TOKENIZER_FILES = (
    *VOCABULARY_FILES,
    "merges.txt",
    "added_tokens.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
)
ROLES = ("cls_token", "sep_token", "pad_token", "mask_token", "unknown_token")
_ARGUMENTS = (*ROLES, "model_max_length")
# Where tokenizer.json has what WordPiece's arguments and tokenizer_config.json say.
_PLACES = {
    "lowercase": ("normalizer", "BertNormalizer", "lowercase"),
    "strip_accents": ("normalizer", "BertNormalizer", "strip_accents"),
    "split_chinese": ("normalizer", "BertNormalizer", "handle_chinese_chars"),
    "max_characters_per_word": ("model", "WordPiece", "max_input_chars_per_word"),
    "unknown_token": ("model", "WordPiece", "unk_token"),
}
_FLAGS = {
    "lowercase": "do_lower_case",
    "strip_accents": "strip_accents",
    "split_chinese": "tokenize_chinese_chars",
}
_BERT_PARTS = ["BertNormalizer", "BertPreTokenizer"]
# Hugging Face writes 1e30 where no length is known.
LONGEST_BELIEVABLE = 1_000_000


def read_tokenizer(source, overrides):
    """Reads a folder or a file that holds a tokenizer.

    Args:
        source: str or path.
        overrides: dict, arguments of `Tokenizer` and of the makers that go before what files say.

    Returns:
        made_of: str, what it is made of: "tokenizer.json", "vocab.txt", "vocab.json" or "model".
        settings: dict, what the files and `overrides` say, arguments of the maker among them.
    """
    source = pathlib.Path(source)
    if not source.exists():
        raise FileNotFoundError(f"A tokenizer's file or folder must exist. Received: {source}.")
    if is_keras_hub_folder(source):
        return "vocab.txt", read_keras_hub_tokenizer(source) | overrides
    config, path = {}, source
    if source.is_dir():
        config, path = _read_configs(source), _vocabulary_file(source)
    settings = config | overrides
    if path.suffix == ".model":
        return "model", settings | {"model": path}
    if path.name == "vocab.json":
        return path.name, settings | {"vocabulary": path, "merges": path.with_name("merges.txt")}
    if path.suffix == ".json":
        lines_path = path.with_name("vocab.txt") if source.is_dir() else None
        backend = _changed(path, lines_path, settings, overrides)
        return TOKENIZER_FILE, arguments_of(settings) | {"backend": backend}
    settings = _read_lines(path, source.is_dir()) | settings
    if "lowercase" not in settings:
        named = named_lowercased(source)
        looked = looks_lowercased(settings["vocabulary"])
        settings["lowercase"] = looked if named is None else named
    return "vocab.txt", settings


def arguments_of(settings):
    """Returns those of the settings that are arguments of `Tokenizer`: roles and length."""
    return {name: settings[name] for name in _ARGUMENTS if name in settings}


def refuse(names, kind):
    """Raises `ValueError` if there are names of settings that mean nothing to a tokenizer."""
    if names:
        raise ValueError(
            f"{sorted(names)} mean nothing to this tokenizer, {kind}. Leave them out, or change "
            "its tokenizer.json."
        )


def open_backend(path):
    """Returns the `tokenizers.Tokenizer` of a tokenizer.json."""
    text = pathlib.Path(path).read_text(encoding="utf-8")
    try:
        return tokenizers.Tokenizer.from_str(text)
    except Exception as error:
        raise ValueError(
            f"{path} must be a file that the `tokenizers` library reads. Received: {error}. "
            "Download or save it again."
        ) from error


def write_saved(folder, tokenizer, input_names):
    """Writes what Hugging Face's library wants beside the tokenizer.json of a folder."""
    settings, normalizer = tokenizer.settings, tokenizer.settings["normalizer"] or {}
    roles = {role: getattr(tokenizer, role) for role in ROLES}
    saved = {_their_name(role): token for role, token in roles.items() if token is not None}
    # This class takes tokenizer.json as it stands; BERT's own reads old files too.
    saved["tokenizer_class"] = "PreTrainedTokenizerFast"
    if settings["model"]["type"] == "WordPiece":
        write_vocabulary(os.path.join(folder, "vocab.txt"), tokenizer.vocabulary)
        kinds = [normalizer.get("type"), (settings["pre_tokenizer"] or {}).get("type")]
        cls, sep = (tokenizer.cls_token_id,), (tokenizer.sep_token_id,)
        if (kinds, tokenizer.layout) == (_BERT_PARTS, Layout(cls, sep, sep, 1)):
            saved["tokenizer_class"] = "BertTokenizer"
            saved |= {their: normalizer[_PLACES[our][2]] for our, their in _FLAGS.items()}
    if tokenizer.model_max_length is not None:
        saved["model_max_length"] = tokenizer.model_max_length
    added = [token["content"] for token in settings["added_tokens"]]
    if further := [token for token in added if token not in roles.values()]:
        saved["additional_special_tokens"] = further
    if input_names is not None and "segment_ids" not in input_names:
        saved["model_input_names"] = ["input_ids", "attention_mask"]
    write_json(os.path.join(folder, "tokenizer_config.json"), saved)


def _their_name(role):
    return role.replace("unknown", "unk")


def _vocabulary_file(folder):
    for name in VOCABULARY_FILES:
        if (folder / name).is_file():
            return folder / name
    alone = " but merges.txt, alone no vocabulary" if (folder / "merges.txt").is_file() else ""
    raise FileNotFoundError(
        f"A tokenizer needs one of {VOCABULARY_FILES}. Received: {folder}, which holds none{alone}."
    )


def _read_configs(folder):
    """Returns what the JSON files beside a vocabulary say, as arguments of the makers."""
    names = ("special_tokens_map.json", "tokenizer_config.json", "config.json")
    tokens, config, model = (
        read_json(folder / name) if (folder / name).is_file() else {} for name in names
    )
    if config.get("word_tokenizer_type", "basic") != "basic":
        raise ValueError(
            "Words must be found by BERT's rules, spaces and punctuation. Received: "
            f"word_tokenizer_type={config['word_tokenizer_type']!r} in {folder}. Split the text "
            "into words by that tool, and load vocab.txt alone to cut the words into pieces."
        )
    settings = {ours: config.get(theirs) for ours, theirs in _FLAGS.items()}
    for role in ROLES:
        token = config.get(_their_name(role)) or tokens.get(_their_name(role))
        settings[role] = token["content"] if isinstance(token, dict) else token
    length = config.get("model_max_length")
    if length is not None and length < LONGEST_BELIEVABLE:
        settings["model_max_length"] = int(length)
    if "camembert" in f"{config.get('tokenizer_class')} {model.get('model_type')}".lower():
        settings["ids"] = "camembert"
    return {name: value for name, value in settings.items() if value is not None}


def _read_lines(path, with_added):
    """Returns a vocab.txt and, of older folders, the further tokens that stand beside it."""
    lines, added_path = read_vocabulary(path), path.with_name("added_tokens.json")
    ids = read_json(added_path) if with_added and added_path.is_file() else {}
    added = [token for token in ids if token not in lines]
    return {"vocabulary": _joined(ids, lines, path.parent), "added_tokens": added}


def _joined(ids, lines, folder):
    """Returns the tokens by id of a vocab.txt and of a JSON file, which must agree."""
    tokens = dict(enumerate(lines))
    for token, id in ids.items():
        if tokens.setdefault(id, without_line(token)) != without_line(token):
            raise ValueError(
                "The vocabularies of one folder must agree. Received: id "
                f"{id} is {tokens[id]!r} in vocab.txt and {token!r} in a JSON file of {folder}. "
                "Name the right file instead of the folder, or remove the other."
            )
    return [tokens.get(id) for id in range(max(tokens, default=-1) + 1)]


def _changed(path, lines_path, settings, overrides):
    """Returns the backend of a tokenizer.json, changed as the settings say."""
    backend = open_backend(path)
    text = backend.to_str()
    saved = json.loads(text)
    model = saved["model"]
    allowed = {*_ARGUMENTS}
    for name, (part, kind, key) in _PLACES.items():
        if (saved[part] or {}).get("type") == kind:
            allowed.add(name)
            saved[part][key] = settings.get(name, saved[part][key])
    if model["type"] == "WordPiece":
        allowed |= {"added_tokens", "special_tokens_in_text"}
        ids = model["vocab"] | {token["content"]: token["id"] for token in saved["added_tokens"]}
        lines = read_vocabulary(lines_path) if lines_path and lines_path.is_file() else []
        _joined(ids, lines, path.parent)
        # Repeated lines are not in the vocabularies that others make of them.
        missing = set(range(len(lines))) - set(ids.values())
        for id in sorted(missing):
            model["vocab"][f"{lines[id]}\n{id}" if lines[id] in ids else lines[id]] = id
    refuse(overrides.keys() - allowed, f"{model['type']} in {path}")
    if saved != json.loads(text):
        backend = tokenizers.Tokenizer.from_str(json.dumps(saved))
    backend.add_special_tokens(list(settings.get("added_tokens", ())))
    return backend
