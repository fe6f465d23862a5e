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
    check_settings,
    describe,
    is_int,
    raise_at_first,
)
from bert_keras.engine.atomic_files import read_json, reading, write_json
from bert_keras.tokenizers import vocabulary
from bert_keras.tokenizers.keras_hub_settings import (
    KERAS_HUB_VOCABULARIES,
    read_keras_hub_tokenizer,
)
from bert_keras.tokenizers.text_encoder import HIDDEN, ROLES, Layout

TOKENIZER_FILE = "tokenizer.json"
# The families that define ids for a SentencePiece file, see `UnigramTokenizer`.
UNIGRAM_KINDS = ("albert", "camembert", "deberta", "xlm_roberta")
SENTENCE_PIECE_FILES = ("sentencepiece.bpe.model", "spiece.model", "spm.model")
# Files with a vocabulary, and the files next to them with settings.
VOCABULARY_FILES = (TOKENIZER_FILE, "vocab.txt", "vocab.json", *SENTENCE_PIECE_FILES)
_SETTINGS = ("tokenizer_config.json", "special_tokens_map.json")
_MODEL_CONFIGS = ("config.json", "bert_config.json", "albert_config.json")
_OTHERS = ("merges.txt", "added_tokens.json", "assets/tokenizer/merges.txt")
TOKENIZER_FILES = (*VOCABULARY_FILES, *_SETTINGS, *_OTHERS, *KERAS_HUB_VOCABULARIES)
# The file in which sentence-transformers says how it reads texts. Old folders name their family.
_FAMILIES = ("bert", "roberta", "distilbert", "camembert", "albert", "xlm-roberta", "xlnet")
SENTENCE_FILES = tuple(f"sentence_{family}_config.json" for family in _FAMILIES)
ARGUMENTS = (*ROLES, "model_max_length")
_THEIR_ROLES = {role: role.replace("unknown", "unk") for role in ROLES}
# The names of special tokens in their files -> ours. The last two have no role here; in a text they
# are found like the others.
_NAMED = {theirs: ours for ours, theirs in _THEIR_ROLES.items()}
_NAMED |= {"bos_token": "bos_token", "eos_token": "eos_token"}
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
# Flag of transformers -> argument. `keep_accents` is the opposite of `strip_accents`.
_FLAGS = {
    "do_lower_case": "lowercase",
    "strip_accents": "strip_accents",
    "keep_accents": "strip_accents",
    "tokenize_chinese_chars": "split_chinese",
    "add_prefix_space": "add_prefix_space",
}
# Classes of transformers that use a tokenizer.json as it is, and the flags that they ignore.
_LITERAL = ("PreTrainedTokenizerFast", "TokenizersBackend")
_NORMALIZER_FLAGS = ("do_lower_case", "strip_accents", "tokenize_chinese_chars", "keep_accents")
_FURTHER = ("extra_special_tokens", "additional_special_tokens")
# Keys that transformers ignores beside a tokenizer.json, but for classes that never read one.
_WITHOUT_FILE = ("add_bos_token", "add_eos_token", "never_split", "sp_model_kwargs", "clean_text")
_WITHOUT_FILE += ("do_basic_tokenize", "remove_space", "normalization")
_NEVER_READ_ONE = ("BertJapaneseTokenizer", "BertweetTokenizer", "PhobertTokenizer")
# Keys of tokenizer_config.json that would change ids -> the values that change nothing here. Any
# other value is refused. With the others below, these are all arguments of transformers'
# tokenizers. A key in no list is refused.
_ON = "do_basic_tokenize do_word_tokenize do_subword_tokenize remove_space clean_text"
_OFF = "normalization add_cross_lingual split_by_punct do_lower_case_words do_lowercase"
_EMPTY = "never_split sp_model_kwargs vocab merges model_specific_special_tokens"
FIXED_KEYS = {
    **dict.fromkeys((*_ON.split(), "add_bos_token", "add_eos_token"), (None, True)),
    **dict.fromkeys((*_OFF.split(), "do_lowercase_and_remove_accent"), (None, False)),
    **dict.fromkeys((*_EMPTY.split(), "_spm_precompiled_charsmap"), (None, "", [], {})),
    "truncation_side": (None, "right"),
    "word_tokenizer_type": (None, "basic"),
    "subword_tokenizer_type": (None, "wordpiece"),
}
READ_KEYS = {*_FLAGS, *_FURTHER, "added_tokens_decoder"}
READ_KEYS |= {"model_max_length", "max_len", "tokenizer_class", "model_input_names"}
READ_KEYS |= {"split_special_tokens", *_NAMED}
# Keys that change no ids: files, names, padding, decoding, and arguments of a later call or of
# `from_pretrained`, which transformers writes into the file.
OTHER_KEYS = """
name_or_path _name_or_path special_tokens_map_file tokenizer_file full_tokenizer_file
added_tokens_file vocab_file merges_file vocab_type use_fast from_slow backend is_local files_loaded
auto_map lowercase processor_class local_files_only _commit_hash init_inputs legacy padding_side
padding pad_to_multiple_of pad_token_type_id pad_token_segment_id cls_token_box cls_token_segment_id
verbose max_length stride truncation truncation_strategy return_token_type_ids
clean_up_tokenization_spaces spaces_between_special_tokens chat_template errors
clean_up_tokenization_spaces_for_bpe_even_though_it_will_corrupt_output trim_offsets
wordpieces_prefix mecab_kwargs sudachi_kwargs jumanpp_kwargs sep_token_extra tokenizer_type
device_map device revision dtype use_auth_token trust_remote_code add_special_tokens token
fix_mistral_regex lang2id id2lang src_lang tgt_lang spm_file unk_id vocab_size
max_position_embeddings local_rank tokenizer_version is_fast model_type do_normalize cache_dir
from_pt from_flax from_tf subfolder _from_auto _from_pipeline torch_dtype force_download
resume_download proxies return_tensors return_attention_mask return_offsets_mapping return_length
return_special_tokens_mask return_overflowing_tokens pad_to_max_length do_pad max_seq_length
low_cpu_mem_usage task transformers_version response_schema response_template chat_control_tokens
num_labels id2label label2id problem_type finetuning_task output_attentions output_hidden_states
language use_default_system_prompt use_cache pretrained_model_name_or_path max_seq_len return_dict
ignore_mismatched_sizes attn_implementation quantization_config
"""
OTHER_KEYS = {*OTHER_KEYS.split(), *(f"{theirs}_id" for theirs in _NAMED)}
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
_BERT_PARTS = ["BertNormalizer", "BertPreTokenizer"]
# Hugging Face writes 1e30 for an unknown length.
_ENDLESS = 1_000_000


def read_tokenizer(source, overrides):
    """Reads a folder or a file that holds a tokenizer.

    Args:
        source: str or path.
        overrides: dict, arguments of `Tokenizer` and its subclasses that override the files.

    Returns:
        class_name: str, `"Tokenizer"` or that of the subclass which makes it.
        settings: dict, the settings of the files and `overrides`: the class's arguments, and what
            changes the tokenizer after it was made.
    """
    source = pathlib.Path(source)
    check_exists(source, "A tokenizer's file or folder must exist")
    for name in KERAS_HUB_VOCABULARIES:
        if (source / name).is_file():
            class_name, settings = read_keras_hub_tokenizer(source, source / name)
            return class_name, settings | overrides
    config, path = {"further_tokens": [], "added_ids": {}, "named": []}, source
    if source.is_dir():
        config, path = config | _read_configs(source), _vocabulary_file(source)
    settings = config | overrides
    if path.suffix == ".model":
        return "UnigramTokenizer", settings | {"model": path}
    if path.name == "vocab.json":
        merges = path.with_name("merges.txt")
        check_exists(merges, "A vocab.json needs a merges.txt beside it", exists=os.path.isfile)
        return "BytePairTokenizer", settings | {"vocabulary": path, "merges": merges}
    if path.suffix == ".json":
        return "Tokenizer", settings | {"backend": _read_backend(path, settings, overrides)}
    return "WordPieceTokenizer", settings | _read_lines(source, path, settings)


def _read_lines(source, path, settings):
    """Returns the settings of a tokenizer that follow from the lines of its vocab.txt."""
    lines = vocabulary.read_vocabulary(path)
    if not any(line.startswith("##") for line in lines):
        found = [line for line in lines if len(line) > 1 and line[0] == "▁"]
        raise_at_first(
            [True] * len(found),
            found,
            f"The tokens of {path} must not be pieces of SentencePiece",
            "Load its SentencePiece file, or convert the tokenizer to a tokenizer.json.",
        )
    # WordPiece's roles are in vocab.txt, or among the tokens that the files add.
    further, ids = settings["further_tokens"], settings["added_ids"]
    absent = ({*roles_of(settings).values()} & ids.keys()) - {*lines}
    further = [*further, *(tokenizers.AddedToken(token, special=True) for token in absent)]
    _check_end(max([len(lines), *(id + 1 for id in ids.values())]), settings.get("num_rows"), path)
    lowercase = settings.get("lowercase")
    if lowercase is None:
        lowercase = vocabulary.looks_lowercased(lines)
    return {"vocabulary": lines, "further_tokens": further, "lowercase": lowercase}


def read_sentence_settings(folder):
    """Returns sentence-transformers' settings of an encoder's folder, `{}` if there are none."""
    folder = pathlib.Path(folder)
    path, settings = _read_first(folder, SENTENCE_FILES)
    if path is None:
        return {}
    changed = {key: settings[key] for key in FIXED_SENTENCE_KEYS if settings.get(key)}
    for value in changed.values():
        if not isinstance(value, dict) or value.keys() - OTHER_KEYS:
            raise ValueError(
                f"{path} must leave the tokenizer as its own files define it. Received: {changed}. "
                "Put the settings into tokenizer_config.json or tokenizer.json, and leave the keys "
                "out."
            )
    unknown = settings.keys() - SENTENCE_KEYS - {*FIXED_SENTENCE_KEYS}
    _check_known(unknown, path, "sentence-transformers")
    return settings


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


def add_tokens(backend, settings, replaces):
    """Adds the tokens that files name beside a vocabulary, and checks their ids.

    Args:
        backend: `tokenizers.Tokenizer`.
        settings: dict, see `read_tokenizer`.
        replaces: bool, whether the files also decide about tokens that the backend has added.

    Returns:
        bool, whether there were any.

    Raises:
        ValueError: a token has another id than the files name.
    """
    ids, tokens = settings["added_ids"], {}
    added = {token.content: token for token in backend.get_added_tokens_decoder().values()}
    for token in settings["further_tokens"]:
        if replaces or token.content not in added:
            tokens[token.content] = token
    # A `plain` tokenizer has no special tokens but hidden ones.
    if any(token.special and token.content[:1] != HIDDEN for token in added.values()):
        # Like transformers, find special tokens in texts though only the config names them.
        for name in {*settings["named"]} - added.keys() - tokens.keys():
            if backend.token_to_id(name) is not None:
                tokens[name] = tokenizers.AddedToken(name, special=True)
    backend.add_tokens(sorted(tokens.values(), key=lambda token: ids.get(token.content, 2**24)))
    others = {token: id for token, id in ids.items() if backend.token_to_id(token) != id}
    if others:
        raise ValueError(
            "The files beside a vocabulary must add tokens by the ids that follow. Received: "
            f"{others}. Convert them to a tokenizer.json."
        )
    return bool(tokens)


def open_backend(path):
    """Returns the `tokenizers.Tokenizer` of a tokenizer.json, and what it saves."""
    in_file = read_json(path)
    vocab, added = in_file.get("model", {}).get("vocab"), in_file.get("added_tokens") or []
    # The library would allocate all ids below the largest.
    if isinstance(vocab, dict) and max(vocab.values(), default=-1) >= len(vocab) + len(added):
        raise ValueError(
            f"Ids must run from 0 without a gap. Received: {len(vocab)} tokens with ids up to "
            f"{max(vocab.values())} in {path}."
        )
    _check_known(in_file.keys() - _SECTIONS, path, "tokenizers")
    with reading(path):
        backend = tokenizers.Tokenizer.from_file(os.fspath(path))
    saved = json.loads(backend.to_str())
    _check_known(_keys_unread(in_file, saved), path, "tokenizers")
    return backend, saved


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
            saved["do_lower_case"] = normalizer["lowercase"]
            saved["strip_accents"] = normalizer["strip_accents"]
            saved["tokenize_chinese_chars"] = normalizer["handle_chinese_chars"]
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


def _read_first(folder, names):
    """Returns the path and the content of the first of some JSON files, or None and `{}`."""
    for name in names:
        if (folder / name).is_file():
            return folder / name, read_json(folder / name)
    return None, {}


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
    path = folder / _SETTINGS[0]
    config, tokens = _read_first(folder, _SETTINGS[:1])[1], _read_first(folder, _SETTINGS[1:])[1]
    model = _read_first(folder, _MODEL_CONFIGS)[1]
    # Newer folders say everything in the first file, and the second one does not count.
    tokens = {} if "added_tokens_decoder" in config else tokens
    _check_keys(config, tokens, folder)
    kind = config.get("tokenizer_class")
    names = f"{kind} {model.get('model_type')}".lower()
    settings = {
        "num_rows": model.get("vocab_size"),
        "ids": next((ids for ids in UNIGRAM_KINDS if ids in names), None),
        "splits_special_tokens": bool(config.get("split_special_tokens")),
        "named": [],
    }
    num_segments = model.get("type_vocab_size")
    # Without the name, transformers gives the model no segments, which it takes for zeros. A file
    # without any names has those of its class. Version 5, which writes this one, gives it no
    # segments; version 4, which wrote the files of other classes, gave them segments.
    of_class = [] if kind == "TokenizersBackend" else ["token_type_ids"]
    has_segments = "token_type_ids" in (config.get("model_input_names") or of_class)
    settings["one_segment"] = not has_segments and is_int(num_segments) and num_segments > 1
    if kind == "BertJapaneseTokenizer":
        config = {"do_lower_case": False} | config | {"tokenize_chinese_chars": False}
    is_literal = kind in _LITERAL and (folder / TOKENIZER_FILE).is_file()
    for theirs, ours in _FLAGS.items():
        flag = check_choice(f"{theirs}` in `{path}", config.get(theirs), (None, True, False))
        if flag is not None and not (is_literal and theirs in _NORMALIZER_FLAGS):
            settings[ours] = flag != (theirs == "keep_accents")
    for theirs, ours in _NAMED.items():
        token = tokens.get(theirs) or config.get(theirs)
        token = token.get("content", token) if isinstance(token, dict) else token
        if isinstance(token, str):
            settings[ours] = token
            settings["named"].append(token)
        elif token is not None:
            raise ValueError(f"`{theirs}` in {path} must be a token. Received: {describe(token)}.")
    settings |= _read_added(folder, config, tokens, settings["named"])
    key = "max_len" if config.get("model_max_length") is None else "model_max_length"
    length = config.get(key)
    if length is not None and check_number(f"{key}` in `{path}", length, 1) < _ENDLESS:
        settings["model_max_length"] = int(length)
    return settings


def _check_keys(config, tokens, folder):
    """Refuses settings that would change ids and are not supported, and keys that are unknown.

    Raises:
        ValueError: a key of `FIXED_KEYS` has another value, or a key is in none of the lists.
    """
    path = folder / _SETTINGS[0]
    reads_file = config.get("tokenizer_class") not in _NEVER_READ_ONE
    ignored = _WITHOUT_FILE if reads_file and (folder / TOKENIZER_FILE).is_file() else ()
    fixed = {key: values for key, values in FIXED_KEYS.items() if key not in ignored}
    advice = "Another would change ids: convert the tokenizer to a tokenizer.json that does so, "
    check_settings(path, config, fixed, f"{advice}and leave the key out.")
    unknown = config.keys() - FIXED_KEYS.keys() - READ_KEYS - OTHER_KEYS
    _check_known(unknown, path, "transformers")
    unknown = tokens.keys() - _NAMED.keys() - {*_FURTHER}
    _check_known(unknown, folder / _SETTINGS[1], "transformers")
    code = config.get("auto_map")
    code = code.get("AutoTokenizer") if isinstance(code, dict) else code
    if code:
        warnings.warn(
            f"{path} names a tokenizer with code of its own, {code}, which is never run. The files "
            "beside it were read by the rules that they state. Compare the ids of some texts.",
            stacklevel=5,
        )


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
    unread = set()
    if isinstance(saved, list) and isinstance(kept, list):
        for pair in zip(saved, kept, strict=False):
            unread |= _keys_unread(*pair)
    elif isinstance(saved, dict) and isinstance(kept, dict):
        for key in saved.keys() - {"vocab", "merges"} - _OLD_BACKEND_KEYS:
            if key in kept:
                unread |= _keys_unread(saved[key], kept[key])
            elif saved[key]:
                unread.add(key)
    return unread


def _read_added(folder, config, special, named):
    """Returns the tokens that files add to a vocabulary, and the ids that the files name.

    Newer folders describe added tokens in tokenizer_config.json, older ones in added_tokens.json
    and special_tokens_map.json.
    """
    path, old_path = folder / _SETTINGS[0], folder / "added_tokens.json"
    decoder = config.get("added_tokens_decoder") or {}
    lists = [file.get(name) for file in (config, special) for name in _FURTHER]
    further = next(filter(None, lists), [])
    further = [*further.values()] if isinstance(further, dict) else further
    is_dict = isinstance(decoder, dict) and all(map(str.isdecimal, decoder))
    if not (is_dict and isinstance(further, list)):
        raise ValueError(
            f"In {path} `added_tokens_decoder` must be a dict from ids, and `{_FURTHER[1]}` a list."
            f" Received: {describe(further if is_dict else decoder)}. Correct the file."
        )
    found, ids = {}, {}
    for token in further:
        token = _added_token(token, path, special=True)
        found[token.content] = token
    for id in decoder:
        token = _added_token(decoder[id], path)
        found[token.content], ids[token.content] = token, int(id)
    if not decoder and old_path.is_file():
        path, ids = old_path, read_json(old_path)
        usual = {*itertools.chain(*ROLES.values()), *named}
        for token in ids.keys() - usual - found.keys():
            found[token] = tokenizers.AddedToken(token)
    for token, id in ids.items():
        check_int(f"{token}` in `{path}", id, 0, 2**24)
    return {"further_tokens": [*found.values()], "added_ids": ids}


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


def _read_backend(path, settings, overrides):
    """Returns the backend of a tokenizer.json with the settings applied."""
    backend, saved = open_backend(path)
    model = saved["model"]
    if model.get("dropout"):
        raise ValueError(
            f"A tokenizer must split a text in the same way each time. Received: {path} with "
            f"dropout={model['dropout']}, which is for training. Set it to null in the file."
        )
    allowed, is_changed = {*ARGUMENTS}, False
    for name, part, kind, key in _PLACES:
        if (saved[part] or {}).get("type") == kind:
            allowed.add(name)
            value = settings.get(name, saved[part][key])
            is_changed |= value != saved[part][key]
            saved[part][key] = value
    if model["type"] == "WordPiece":
        # Other libraries leave repeated lines of a vocab.txt out. Their ids get names that no text
        # has.
        ids = {*backend.get_vocab().values()}
        for id in {*range(max(ids, default=0))} - ids:
            model["vocab"][f"\n{id}"], is_changed = id, True
    refuse(overrides.keys() - allowed, f"{model['type']} in {path}")
    if is_changed:
        backend = tokenizers.Tokenizer.from_str(json.dumps(saved))
    add_tokens(backend, settings, replaces=False)
    return backend
