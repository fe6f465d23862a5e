"""Tokenizers in the files of Hugging Face, Google, KerasHub and SentencePiece."""

import itertools
import json
import os
import pathlib
import warnings

import tokenizers

from bert_keras.checks import (
    check_choice,
    check_exists,
    check_int,
    check_number,
    describe,
    is_int,
    raise_at_first,
)
from bert_keras.engine.atomic_files import read_json, write_json
from bert_keras.tokenizers import vocabulary
from bert_keras.tokenizers.keras_hub_settings import (
    KERAS_HUB_FILES,
    is_keras_hub_folder,
    read_keras_hub_tokenizer,
)
from bert_keras.tokenizers.layout import Layout
from bert_keras.tokenizers.text_encoder import HIDDEN, ROLES

TOKENIZER_FILE = "tokenizer.json"
SENTENCE_PIECE_FILES = ("sentencepiece.bpe.model", "spiece.model", "spm.model")
# Files with a vocabulary, and the files next to them with settings.
VOCABULARY_FILES = (TOKENIZER_FILE, "vocab.txt", "vocab.json", *SENTENCE_PIECE_FILES)
_SETTINGS = ("tokenizer_config.json", "special_tokens_map.json")
_MODEL_CONFIGS = ("config.json", "bert_config.json", "albert_config.json")
_OTHERS = ("merges.txt", "added_tokens.json", *KERAS_HUB_FILES)
TOKENIZER_FILES = (*VOCABULARY_FILES, *_SETTINGS, *_OTHERS)
# The file in which sentence-transformers says how it reads texts. Old folders name their family.
_FAMILIES = ("bert", "roberta", "distilbert", "camembert", "albert", "xlm-roberta", "xlnet")
SENTENCE_FILES = tuple(f"sentence_{family}_config.json" for family in _FAMILIES)
ARGUMENTS = (*ROLES, "model_max_length")
_THEIR_ROLES = {role: role.replace("unknown", "unk") for role in ROLES}
# Argument -> section, type and key in tokenizer.json.
_PLACES = (
    ("lowercase", "normalizer", "BertNormalizer", "lowercase"),
    ("strip_accents", "normalizer", "BertNormalizer", "strip_accents"),
    ("split_chinese", "normalizer", "BertNormalizer", "handle_chinese_chars"),
    ("add_prefix_space", "pre_tokenizer", "ByteLevel", "add_prefix_space"),
    ("add_prefix_space", "post_processor", "RobertaProcessing", "add_prefix_space"),
    ("max_characters_per_word", "model", "WordPiece", "max_input_chars_per_word"),
    ("unknown_token", "model", "WordPiece", "unk_token"),
)
_FLAGS = {
    "lowercase": "do_lower_case",
    "strip_accents": "strip_accents",
    "split_chinese": "tokenize_chinese_chars",
    "add_prefix_space": "add_prefix_space",
    "split_punctuation": "split_by_punct",
}
# Classes of transformers that use a tokenizer.json as it is, and the flags that they ignore.
_LITERAL = ("PreTrainedTokenizerFast", "TokenizersBackend")
_NORMALIZER_FLAGS = ("do_lower_case", "strip_accents", "tokenize_chinese_chars", "keep_accents")
_FURTHER = ("extra_special_tokens", "additional_special_tokens")
_MODEL_STATE = "model_specific_special_tokens"
# Special tokens without a role here. In a text they are found like the others.
_ENDS = ("bos_token", "eos_token")
# Keys that transformers ignores beside a tokenizer.json, but for classes that never read one.
_WITHOUT_FILE = ("add_bos_token", "add_eos_token", "never_split", "sp_model_kwargs", "clean_text")
_WITHOUT_FILE += ("do_basic_tokenize", "remove_space", "normalization")
_NEVER_READ_ONE = ("BertJapaneseTokenizer", "BertweetTokenizer", "PhobertTokenizer")
# Keys of tokenizer_config.json that would change ids -> the values that change nothing here. Any
# other value is refused. With the others below, these are all arguments of transformers'
# tokenizers. A key in no list is refused.
FIXED_KEYS = {
    "truncation_side": (None, "right"),
    "word_tokenizer_type": (None, "basic"),
    "subword_tokenizer_type": (None, "wordpiece", "character"),
    "do_basic_tokenize": (None, True),
    "do_word_tokenize": (None, True),
    "do_subword_tokenize": (None, True),
    "never_split": (None, [], {}),
    "remove_space": (None, True),
    "normalization": (None, False),
    "sp_model_kwargs": (None, {}),
    "add_bos_token": (None, True),
    "add_eos_token": (None, True),
    "add_cross_lingual": (None, False),
    "do_lower_case_words": (None, False),
    "clean_text": (None, True),
    "do_lowercase": (None, False),
    "do_lowercase_and_remove_accent": (None, False),
    "vocab": (None, [], {}),
    "merges": (None, [], {}),
    "_spm_precompiled_charsmap": (None, "", {}),
}
READ_KEYS = {*_FLAGS.values(), *_FURTHER, "keep_accents", "added_tokens_decoder"}
READ_KEYS |= {"model_max_length", "max_len", "tokenizer_class", "model_input_names"}
READ_KEYS |= {"split_special_tokens", _MODEL_STATE}
READ_KEYS |= {*_THEIR_ROLES.values(), *_ENDS}
# Keys that change no ids: files, names, padding, decoding, and arguments of a later call or of
# `from_pretrained`, which transformers writes into the file.
OTHER_KEYS = {
    *("name_or_path", "_name_or_path", "special_tokens_map_file", "tokenizer_file"),
    *("full_tokenizer_file", "added_tokens_file", "vocab_file", "merges_file", "vocab_type"),
    *("use_fast", "from_slow", "backend", "is_local", "files_loaded", "auto_map", "lowercase"),
    *("processor_class", "local_files_only", "_commit_hash", "init_inputs", "legacy"),
    *("padding_side", "padding", "pad_to_multiple_of", "pad_token_type_id", "pad_token_segment_id"),
    *("cls_token_box", "cls_token_segment_id", "verbose"),
    *("max_length", "stride", "truncation", "truncation_strategy", "return_token_type_ids"),
    *("clean_up_tokenization_spaces", "spaces_between_special_tokens", "chat_template", "errors"),
    "clean_up_tokenization_spaces_for_bpe_even_though_it_will_corrupt_output",
    *("trim_offsets", "wordpieces_prefix", "mecab_kwargs", "sudachi_kwargs", "jumanpp_kwargs"),
    *("sep_token_extra", "tokenizer_type", "device_map", "device", "revision", "dtype"),
    *("use_auth_token", "trust_remote_code", "add_special_tokens", "token", "fix_mistral_regex"),
    *("lang2id", "id2lang", "src_lang", "tgt_lang", "spm_file", "unk_id", "vocab_size"),
    *("max_position_embeddings", "local_rank", "tokenizer_version", "is_fast", "model_type"),
    *("do_normalize", "cache_dir", "from_pt", "from_flax", "from_tf", "subfolder", "_from_auto"),
    *("_from_pipeline", "torch_dtype", "force_download", "resume_download", "proxies"),
    *("return_tensors", "return_attention_mask", "return_offsets_mapping", "return_length"),
    *("return_special_tokens_mask", "return_overflowing_tokens", "pad_to_max_length", "do_pad"),
    *("max_seq_length", "low_cpu_mem_usage", "task", "transformers_version", "response_schema"),
    *("response_template", "chat_control_tokens", "num_labels", "id2label", "label2id"),
    *("problem_type", "finetuning_task", "output_attentions", "output_hidden_states", "language"),
    *("use_default_system_prompt", "use_cache", "pretrained_model_name_or_path", "max_seq_len"),
    *("return_dict", "ignore_mismatched_sizes", "attn_implementation", "quantization_config"),
    *(f"{theirs}_id" for theirs in (*_THEIR_ROLES.values(), *_ENDS)),
}
# Keys of sentence_bert_config.json, the same: what changes ids and is not read must be empty.
FIXED_SENTENCE_KEYS = ("tokenizer_args", "processor_args", "processing_kwargs", "processor_kwargs")
SENTENCE_KEYS = {"max_seq_length", "do_lower_case", "query_length", "document_length"}
SENTENCE_KEYS |= {"query_expansion", "model_args", "config_args", "model_kwargs", "config_kwargs"}
SENTENCE_KEYS |= {"transformer_task", "modality_config", "module_output_name", "backend"}
SENTENCE_KEYS |= {"tokenizer_name_or_path", "cache_dir", "unpad_inputs"}
_SECTIONS = {"version", "truncation", "padding", "added_tokens", "normalizer", "pre_tokenizer"}
_SECTIONS |= {"post_processor", "decoder", "model"}
# Keys of tokenizer.json of older versions, which the `tokenizers` library renames.
_OLD_BACKEND_KEYS = {"str_rep", "add_prefix_space"}
# Settings that change a tokenizer after it was made.
_AFTERWARDS = ("one_segment", "splits_special_tokens")
_BERT_PARTS = ["BertNormalizer", "BertPreTokenizer"]
# Hugging Face writes 1e30 for an unknown length.
_ENDLESS = 1_000_000


def read_tokenizer(source, overrides):
    """Reads a folder or a file that holds a tokenizer.

    Args:
        source: str or path.
        overrides: dict, arguments of `Tokenizer` and its subclasses that override the files.

    Returns:
        made_of: str, "tokenizer.json", "vocab.txt", "vocab.json" or "model".
        settings: dict, the settings of the files and `overrides`, with the class's arguments.
    """
    source = pathlib.Path(source)
    check_exists(source, "A tokenizer's file or folder must exist")
    if is_keras_hub_folder(source):
        made_of, settings = read_keras_hub_tokenizer(source)
        return made_of, settings | overrides
    config, path = {}, source
    if source.is_dir():
        config, path = _read_configs(source), _vocabulary_file(source)
    settings = {"further_tokens": [], "added_ids": {}} | config | overrides
    if path.suffix == ".model":
        return "model", settings | {"model": path}
    if path.name == "vocab.json":
        merges = path.with_name("merges.txt")
        check_exists(merges, "A vocab.json needs a merges.txt beside it", exists=os.path.isfile)
        return path.name, settings | {"vocabulary": path, "merges": merges}
    if path.suffix == ".json":
        lines_path = path.with_name("vocab.txt") if source.is_dir() else None
        backend = _changed(path, lines_path, settings, overrides)
        added = json.loads(backend.to_str())["added_tokens"]
        own = [token["content"] for token in added]
        missing = [token for token in settings["further_tokens"] if token.content not in own]
        # A `plain` tokenizer has no special tokens but hidden ones.
        if any(token["special"] and token["content"][:1] != HIDDEN for token in added):
            # Like transformers, find special tokens in texts though only the config names them.
            special = {*roles_of(config).values(), *config.get("ends", ())}
            special -= {*own, *(token.content for token in missing)}
            special = sorted(token for token in special if backend.token_to_id(token) is not None)
            missing += [tokenizers.AddedToken(token, special=True) for token in special]
        add_further_tokens(backend, missing, settings["added_ids"])
        kept = {name: settings[name] for name in ARGUMENTS + _AFTERWARDS if name in settings}
        return TOKENIZER_FILE, kept | {"backend": backend}
    lines = vocabulary.read_vocabulary(path)
    settings["vocabulary"] = lines
    if not any(line.startswith("##") for line in lines):
        found = [line for line in lines if len(line) > 1 and line[0] == "▁"]
        raise_at_first(
            [True] * len(found),
            found,
            f"The tokens of {path} must not be pieces of SentencePiece",
            "Load its SentencePiece file, or convert the tokenizer to a tokenizer.json.",
        )
    # WordPiece's roles are in vocab.txt, or among the tokens that the files add.
    absent = [token for token in roles_of(settings).values() if token in settings["added_ids"]]
    absent = [tokenizers.AddedToken(token, special=True) for token in {*absent} - {*lines}]
    ids = settings["added_ids"]
    settings["further_tokens"] = sorted(
        [*settings["further_tokens"], *absent], key=lambda token: ids.get(token.content, 2**24)
    )
    ends = [len(lines), *(id + 1 for id in ids.values())]
    _check_end(max(ends), settings.get("num_rows"), path)
    if "lowercase" not in settings:
        named = vocabulary.named_lowercased(source)
        looked = vocabulary.looks_lowercased(settings["vocabulary"])
        settings["lowercase"] = looked if named is None else named
    return "vocab.txt", settings


def read_sentence_settings(folder):
    """Returns sentence-transformers' settings of an encoder's folder, `{}` if there are none."""
    paths = (pathlib.Path(folder) / name for name in SENTENCE_FILES)
    path = next((path for path in paths if path.is_file()), None)
    settings = {} if path is None else read_json(path, dict)
    changed = {key: settings[key] for key in FIXED_SENTENCE_KEYS if settings.get(key)}
    if any(not isinstance(value, dict) or value.keys() - OTHER_KEYS for value in changed.values()):
        raise ValueError(
            f"{path} must leave the tokenizer as its own files define it. Received: {changed}. Put "
            "the settings into tokenizer_config.json or tokenizer.json, and leave the keys out."
        )
    unknown = settings.keys() - SENTENCE_KEYS - {*FIXED_SENTENCE_KEYS}
    _check_known(unknown, path, "sentence-transformers")
    return settings


def lowercases_first(folder):
    """Whether sentence-transformers lowercases texts before a folder's tokenizer reads them."""
    name = "do_lower_case"
    value = read_sentence_settings(folder).get(name)
    return check_choice(f"{name}` in `{folder}", value, (None, True, False))


def roles_of(settings):
    """Returns the roles with a token in the settings, a dict."""
    return {role: settings[role] for role in ROLES if settings.get(role) is not None}


def refuse(names, kind):
    """Raises `ValueError` if there are settings that a tokenizer does not have."""
    if names:
        raise ValueError(
            f"{sorted(names)} mean nothing to this tokenizer, {kind}. Leave them out, or change "
            "its tokenizer.json."
        )


def add_further_tokens(backend, tokens, ids):
    """Adds tokens to a backend and checks their ids.

    Args:
        backend: `tokenizers.Tokenizer`.
        tokens: list of `tokenizers.AddedToken`; one with an id already keeps it.
        ids: dict, the ids that the files name, by token.

    Raises:
        ValueError: a token has another id than the files name.
    """
    backend.add_tokens(tokens)
    others = {token: id for token, id in ids.items() if backend.token_to_id(token) != id}
    if others:
        raise ValueError(
            "The files beside a vocabulary must add tokens by the ids that follow. Received: "
            f"{others}. Convert them to a tokenizer.json."
        )


def open_backend(path):
    """Returns the `tokenizers.Tokenizer` of a tokenizer.json, and the parsed file."""
    saved = read_json(path)
    vocab, added = saved.get("model", {}).get("vocab"), saved.get("added_tokens") or []
    # The library would allocate all ids below the largest.
    if isinstance(vocab, dict) and max(vocab.values(), default=-1) >= len(vocab) + len(added):
        raise ValueError(
            f"Ids must run from 0 without a gap. Received: {len(vocab)} tokens with ids up to "
            f"{max(vocab.values())} in {path}."
        )
    _check_known(saved.keys() - _SECTIONS, path, "tokenizers")
    try:
        text = pathlib.Path(path).read_text(encoding="utf-8")
        return tokenizers.Tokenizer.from_str(text), saved
    except Exception as error:
        raise ValueError(
            f"{path} must be a file that the `tokenizers` library reads. Received: {error}. "
            "Download or save it again."
        ) from error


def write_saved(folder, tokenizer, input_names):
    """Writes the files that Hugging Face's library needs next to a tokenizer.json."""
    settings, normalizer = tokenizer.settings, tokenizer.settings["normalizer"] or {}
    roles = {role: getattr(tokenizer, role) for role in ROLES}
    saved = {_THEIR_ROLES[role]: token for role, token in roles.items() if token is not None}
    # This class uses tokenizer.json as it is; BERT's own also reads older files.
    saved["tokenizer_class"] = "PreTrainedTokenizerFast"
    if settings["model"]["type"] == "WordPiece":
        vocabulary.write_vocabulary(os.path.join(folder, "vocab.txt"), tokenizer.vocabulary)
        kinds = [normalizer.get("type"), (settings["pre_tokenizer"] or {}).get("type")]
        cls, sep = (tokenizer.cls_token_id,), (tokenizer.sep_token_id,)
        if (kinds, tokenizer.layout) == (_BERT_PARTS, Layout(cls, sep, sep, 1)):
            saved["tokenizer_class"] = "BertTokenizer"
            saved |= {_FLAGS[ours]: normalizer[key] for ours, *_, key in _PLACES[:3]}
    if tokenizer.model_max_length is not None:
        saved["model_max_length"] = tokenizer.model_max_length
    added = [token["content"] for token in settings["added_tokens"] if token["special"]]
    if others := [token for token in added if token not in roles.values()]:
        saved["additional_special_tokens"] = others
    # Without the list, transformers 5 makes no segments for most classes.
    if input_names is None:
        has_segments = tokenizer.layout.second_segment > 0
    else:
        has_segments = "segment_ids" in input_names
    names = ["input_ids", *["token_type_ids"] * has_segments, "attention_mask"]
    saved["model_input_names"] = names
    write_json(os.path.join(folder, "tokenizer_config.json"), saved)


def _vocabulary_file(folder):
    for name in VOCABULARY_FILES:
        if (folder / name).is_file():
            return folder / name
    alone = " but merges.txt, alone no vocabulary" if (folder / "merges.txt").is_file() else ""
    raise FileNotFoundError(
        f"A tokenizer needs one of {VOCABULARY_FILES}. Received: {folder}, which holds none{alone}"
        ". For a task that takes only ready inputs, pass `preprocessor=None`."
    )


def _read_configs(folder):
    """Returns the settings of the JSON files next to a vocabulary, by argument name."""
    config, tokens, model = (
        next((read_json(folder / name) for name in names if (folder / name).is_file()), {})
        for names in (*((name,) for name in _SETTINGS), _MODEL_CONFIGS)
    )
    path = folder / _SETTINGS[0]
    _check_keys(config, tokens, folder)
    settings = {"split_characters": config.get("subword_tokenizer_type") == "character"}
    settings["num_rows"] = model.get("vocab_size")
    inputs = config.get("model_input_names")
    num_segments = model.get("type_vocab_size")
    if inputs and "token_type_ids" not in inputs and is_int(num_segments) and num_segments > 1:
        # Transformers then gives the model no segments, which it takes for zeros.
        settings["one_segment"] = True
    if config.get("split_special_tokens"):
        settings["splits_special_tokens"] = True
    if config.get("tokenizer_class") == "BertJapaneseTokenizer":
        config = {"do_lower_case": False} | config | {"tokenize_chinese_chars": False}
    settings |= {"made_for": f"{config.get('tokenizer_class')} {model.get('model_type')}".lower()}
    flags = {theirs: config.get(theirs) for theirs in (*_FLAGS.values(), "keep_accents")}
    for theirs, value in flags.items():
        check_choice(f"{theirs}` in `{path}", value, (None, True, False))
    if config.get("tokenizer_class") in _LITERAL and (folder / TOKENIZER_FILE).is_file():
        flags |= dict.fromkeys(_NORMALIZER_FLAGS)
    settings |= {ours: flags[theirs] for ours, theirs in _FLAGS.items()}
    if flags["keep_accents"] is not None:  # ALBERT's opposite of `strip_accents`.
        settings["strip_accents"] = not flags["keep_accents"]
    for role, theirs in _THEIR_ROLES.items():
        token = config.get(theirs) or tokens.get(theirs)
        settings[role] = token.get("content", token) if isinstance(token, dict) else token
        if not isinstance(settings[role], (str, type(None))):
            raise ValueError(
                f"`{role}` in {path} must be a token. Received: {describe(settings[role])}."
            )
    ends = [config.get(theirs) or tokens.get(theirs) for theirs in _ENDS]
    ends = [end.get("content") if isinstance(end, dict) else end for end in ends]
    settings["ends"] = [end for end in ends if isinstance(end, str)]
    added = _read_added(folder, config, tokens, roles_of(settings))
    settings["further_tokens"], settings["added_ids"] = added
    key = "max_len" if config.get("model_max_length") is None else "model_max_length"
    length = config.get(key)
    if length is not None and check_number(f"{key}` in `{path}", length, 1) < _ENDLESS:
        settings["model_max_length"] = int(length)
    return {name: value for name, value in settings.items() if value is not None}


def _check_keys(config, tokens, folder):
    """Refuses settings that would change ids and are not supported, and keys that are unknown.

    Raises:
        ValueError: a key of `FIXED_KEYS` has another value, or a key is in none of the lists.
    """
    path, tokens_path = (folder / name for name in _SETTINGS)
    has_file = (folder / TOKENIZER_FILE).is_file()
    reads_file = has_file and config.get("tokenizer_class") not in _NEVER_READ_ONE
    ignored = _WITHOUT_FILE if reads_file else ()
    for key, values in FIXED_KEYS.items():
        if config.get(key) not in values and key not in ignored:
            raise ValueError(
                f"`{key}` in {path} must be one of {values}, since others would give other ids. "
                f"Received: {config[key]!r}. Convert the tokenizer to a tokenizer.json that does "
                "so, and leave the key out."
            )
    known = {*FIXED_KEYS, *READ_KEYS, *OTHER_KEYS, *_tokens_of_model(config)}
    _check_known(config.keys() - known, path, "transformers")
    if not config.get("added_tokens_decoder"):  # Otherwise the other file does not count.
        known = {*_THEIR_ROLES.values(), *_ENDS, *_FURTHER}
        _check_known(tokens.keys() - known, tokens_path, "transformers")
    code = config.get("auto_map")
    code = code.get("AutoTokenizer") if isinstance(code, dict) else code
    if code:
        warnings.warn(
            f"{path} names a tokenizer with code of its own, {code}, which is never run. The files "
            "beside it were read by the rules that they state. Compare the ids of some texts.",
            stacklevel=5,
        )


def _tokens_of_model(config):
    """Returns the special tokens that a config names for one model, such as `image_token`.

    Source: `PreTrainedTokenizerBase._from_pretrained` of transformers 5.
    """
    usual = {*_THEIR_ROLES.values(), *_ENDS}
    found = {k: v for k, v in config.items() if k.endswith("_token") and isinstance(v, str)}
    return {k: found[k] for k in found.keys() - usual} | (config.get(_MODEL_STATE) or {})


def _check_known(unknown, path, package):
    """Raises `ValueError` if a file has keys that the package that defines it does not know."""
    if unknown:
        raise ValueError(
            f"{path} must have only keys that are known, since others may change ids. Received: "
            f"{sorted(unknown)}. Delete them in a copy of the folder if they change no ids, or "
            f"install a newer `{package}` or bert_keras if the file was written by one."
        )


def _keys_unread(saved, kept):
    """Returns the keys with a value in a part of a tokenizer.json that its backend lacks."""
    if isinstance(saved, list) and isinstance(kept, list):
        return set().union(*(_keys_unread(*pair) for pair in zip(saved, kept, strict=False)))
    if not (isinstance(saved, dict) and isinstance(kept, dict)):
        return set()
    unread = {key for key in saved.keys() - kept.keys() - _OLD_BACKEND_KEYS if saved[key]}
    shared = saved.keys() & kept.keys() - {"vocab", "merges"}
    return unread.union(*(_keys_unread(saved[key], kept[key]) for key in shared))


def _read_added(folder, config, special, roles):
    """Returns the tokens that files add to a vocabulary, and the ids that the files name.

    Newer folders describe added tokens in tokenizer_config.json, older ones in added_tokens.json
    and special_tokens_map.json, which then do not count.
    """
    path, old_path = folder / _SETTINGS[0], folder / "added_tokens.json"
    decoder = config.get("added_tokens_decoder") or {}
    lists = [files.get(name) for files in (config, {} if decoder else special) for name in _FURTHER]
    further = next(filter(None, lists), [])
    further = [*further.values()] if isinstance(further, dict) else further
    is_dict = isinstance(decoder, dict) and all(map(str.isdecimal, decoder))
    if not (is_dict and isinstance(further, list)):
        raise ValueError(
            f"In {path} `added_tokens_decoder` must be a dict from ids, and `{_FURTHER[1]}` a list."
            f" Received: {describe(further if is_dict else decoder)}. Correct the file."
        )
    further = [*further, *_tokens_of_model(config).values()]
    further = {t.content: t for t in (_added_token(token, path, special=True) for token in further)}
    if decoder:
        tokens = {int(id): _added_token(decoder[id], path) for id in decoder}
        ids = {token.content: id for id, token in tokens.items()}
        tokens = further | {token.content: token for token in tokens.values()}
    else:
        path, ids = old_path, read_json(old_path) if old_path.is_file() else {}
        usual = {*itertools.chain(*ROLES.values()), *roles.values()}
        tokens = {token: tokenizers.AddedToken(token) for token in ids if token not in usual}
        tokens |= further
    ids = {token: check_int(f"{token}` in `{path}", id, 0, 2**24) for token, id in ids.items()}
    return sorted(tokens.values(), key=lambda token: ids.get(token.content, 2**24)), ids


def _added_token(token, path, **flags):
    """Returns the `tokenizers.AddedToken` of a str or of a dict with `content` and flags."""
    saved = {"content": token} if isinstance(token, str) else token
    names = ("content", "single_word", "lstrip", "rstrip", "normalized", "special")
    is_dict = isinstance(saved, dict) and isinstance(saved.get("content"), str)
    if not is_dict or not all(type(saved[name]) is bool for name in names[1:] if name in saved):
        raise ValueError(
            f"An added token in {path} must be a str, or a dict with the str `content` and the "
            f"bools {names[1:]}. Received: {describe(token)}. Correct it."
        )
    return tokenizers.AddedToken(**{name: saved[name] for name in names if name in saved} | flags)


def _check_end(num_tokens, num_rows, path):
    """Raises `ValueError` if a vocab.txt is truncated."""
    # A table may be padded to a multiple of 8, 64, ...
    if is_int(num_rows) and num_rows - num_tokens >= max(num_rows & -num_rows, 8):
        raise ValueError(
            f"A vocabulary must be whole. Received: {path} with {num_tokens} tokens, where other "
            f"files in the folder have {num_rows}. Download it again. If it is right, pass the "
            "file instead of its folder."
        )


def _changed(path, lines_path, settings, overrides):
    """Returns the backend of a tokenizer.json with the settings applied."""
    backend, in_file = open_backend(path)
    saved = json.loads(backend.to_str())
    model = saved["model"]
    _check_known(_keys_unread(in_file, saved), path, "tokenizers")
    if model.get("dropout"):
        raise ValueError(
            f"A tokenizer must split a text in the same way each time. Received: {path} with "
            f"dropout={model['dropout']}, which is for training. Set it to null in the file."
        )
    allowed, is_changed = {*ARGUMENTS}, False
    for name, part, kind, key in _PLACES:
        if (saved[part] or {}).get("type") == kind:
            allowed.add(name)
            is_changed |= settings.get(name, saved[part][key]) != saved[part][key]
            saved[part][key] = settings.get(name, saved[part][key])
    if model["type"] == "WordPiece":
        allowed |= {"added_tokens", "special_tokens_in_text"}
        ids = model["vocab"] | {token["content"]: token["id"] for token in saved["added_tokens"]}
        has_lines = lines_path is not None and lines_path.is_file()
        lines = vocabulary.read_vocabulary(lines_path) if has_lines else []
        if has_lines:
            _check_end(len(lines), len(model["vocab"]), lines_path)
        # Other libraries leave repeated lines out of the tokenizer.json. Their ids get names that
        # no text has, so that the ids of texts are those of the tokenizer.json alone.
        missing = {*range(min(len(lines), max(ids.values(), default=0)))} - {*ids.values()}
        is_changed |= bool(missing)
        model["vocab"] |= {f"{lines[id]}\n{id}": id for id in sorted(missing)}
    refuse(overrides.keys() - allowed, f"{model['type']} in {path}")
    if is_changed:
        backend = tokenizers.Tokenizer.from_str(json.dumps(saved))
    backend.add_special_tokens(list(settings.get("added_tokens", ())))
    return backend
