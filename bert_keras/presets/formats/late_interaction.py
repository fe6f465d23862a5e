"""The files of multi-vector embedders: Stanford's ColBERT, PyLate, sentence-transformers.

| layout | the linear layer | settings |
|---|---|---|
| `stanford` | `linear.weight` beside the backbone's tensors | `artifact.metadata` |
| `pylate` | `1_Dense/` | `config_sentence_transformers.json` |
| `sentence-transformers`, from 6 | `1_Dense/` | `sentence_bert_config.json`, `prompts`, and \
`2_MultiVectorMask/config.json` |

References: https://github.com/stanford-futuredata/ColBERT; https://github.com/lightonai/pylate;
https://www.sbert.net.
"""

import string

import tokenizers

from bert_keras.checks import check_settings
from bert_keras.engine.atomic_files import read_json, write_json, write_text
from bert_keras.presets.assign import arrays_of, head_weights
from bert_keras.presets.safetensors_io import WEIGHTS_FILE, write_safetensors
from bert_keras.tokenizers.tokenizer_files import TOKENIZER_FILE, read_sentence_settings

LAYOUTS = ("sentence-transformers", "pylate", "stanford")
METADATA = "artifact.metadata"
# What sentence-transformers adds: prompts of embedders, and the activation of cross-encoders.
SENTENCES_FILE = "config_sentence_transformers.json"
# The name in an architecture of Stanford's.
ARCHITECTURE = "HF_ColBERT"
_IDENTITY = "torch.nn.modules.linear.Identity"
_PACKAGE = "sentence_transformers"
_MODULES = {
    "": f"{_PACKAGE}.models.Transformer",
    "1_Dense": f"{_PACKAGE}.models.Dense",
    "2_MultiVectorMask": f"{_PACKAGE}.multi_vector_encoder.modules.MultiVectorMask",
    "3_Normalize": f"{_PACKAGE}.models.Normalize",
}
_PYLATE_MODULES = {"": _MODULES[""], "1_Dense": "pylate.models.Dense.Dense"}
# Their key -> our argument, and its value if the key is missing or empty.
_STANFORD = {
    "query_token_id": ("query_marker", "[unused0]"),
    "doc_token_id": ("document_marker", "[unused1]"),
    "query_maxlen": ("query_length", None),
    "doc_maxlen": ("document_length", None),
    "attend_to_mask_tokens": ("attend_to_expansion", False),
}
_PYLATE = {
    "query_prefix": ("query_marker", ""),
    "document_prefix": ("document_marker", ""),
    "query_length": ("query_length", None),
    "document_length": ("document_length", None),
    "attend_to_expansion_tokens": ("attend_to_expansion", False),
}


def read_stanford(folder):
    """Returns the arguments of a `MultiVectorEmbedder` in Stanford's folder, except `dim`."""
    path = folder / METADATA
    config = read_json(path, dict) if path.is_file() else {}
    words = string.punctuation if config.get("mask_punctuation", True) else ()
    return _read(config, _STANFORD, True, words)


def _read(config, keys, has_expansion, skipped_tokens):
    """Returns the arguments in a config whose keys a table lists; queries are filled or not."""
    arguments = {ours: config.get(key) or default for key, (ours, default) in keys.items()}
    if has_expansion:
        arguments["query_length"] = arguments["query_length"] or 32
    arguments["query_expansion"] = arguments["query_length"] if has_expansion else None
    return {**arguments, "skipped_tokens": [*skipped_tokens]}


def _written(task, keys, longest):
    """Returns a config, the inverse of `_read`; `longest` is the length without a limit."""
    config = {key: getattr(task, ours) for key, (ours, _) in keys.items()}
    return {key: longest if value is None else value for key, value in config.items()}


def read_modules(config, root, folder, modules):
    """Returns the arguments of a `MultiVectorEmbedder` in a folder with modules, except `dim`.

    Args:
        config: dict, the content of `config_sentence_transformers.json`.
        root: `Path`, the folder of `modules.json`.
        folder: `Path`, the encoder's folder.
        modules: list of pairs of a kind and a `Path`.

    Raises:
        ValueError: a file is damaged, or has a setting that is not supported.
    """
    folders = dict(modules)
    if len(denses := [str(folder) for kind, folder in modules if kind == "Dense"]) > 1:
        raise ValueError(
            "A multi-vector model must have one Dense module after its encoder. Received: "
            f"{denses} in {root / 'modules.json'}. Two linear layers without an activation between "
            "them are one: multiply their weights, and leave the second out of modules.json."
        )
    allowed = {"activation_function": (_IDENTITY,), "use_residual": (False,), "bias": (False,)}
    read_module(folders["Dense"], allowed)
    if "query_prefix" in config or config.get("model_type") == "ColBERT":
        return _read_pylate(config)
    prompts = config.get("prompts") or {}
    _check_prompts(folder / TOKENIZER_FILE, [prompts.get("query"), prompts.get("document")])
    options = read_sentence_settings(folder)
    expansion, length = options.get("query_expansion"), options.get("query_length")
    if expansion:
        allowed = {"strategy": ("fixed", "min"), "token": (None, "[MASK]", "<mask>")}
        check_settings(f"query_expansion` in `{folder}", expansion, allowed)
        length = expansion["length"] if expansion.get("strategy", "fixed") == "fixed" else length
    attends = bool(expansion and expansion.get("attend"))
    # Without its mask, only tokens that others attend to count.
    needed = ["MultiVectorMask", "Normalize"] if expansion and not attends else ["Normalize"]
    if missing := [kind for kind in needed if kind not in folders]:
        raise ValueError(
            f"{root / 'modules.json'} must list {missing} too, since vectors have length 1 here, "
            "and tokens that fill up queries count. Add the modules and train the model with them. "
            f"Received: {[kind for kind, _ in modules]}."
        )
    mask = {}
    if "MultiVectorMask" in folders:
        allowed = {"skiplist_tasks": (None, ["document"]), "keep_only_token_ids": (None,)}
        mask = read_module(folders["MultiVectorMask"], allowed)
    return {
        "query_marker": prompts.get("query") or "",
        "document_marker": prompts.get("document") or "",
        "query_length": length,
        "document_length": options.get("document_length"),
        "query_expansion": expansion["length"] if expansion else None,
        "attend_to_expansion": attends,
        "skipped_tokens": mask.get("skiplist_words") or [],
    }


def _check_prompts(path, prompts):
    """Raises `ValueError` if sentence-transformers reads a marker as several tokens."""
    saved = read_json(path) if path.is_file() else {}
    known = {token["content"].strip() for token in saved.get("added_tokens", ())}
    for prompt in prompts if known else ():
        token = (prompt or "").strip()
        if token[:1] in ("[", "<") and " " not in token and token not in known:
            raise ValueError(
                "A marker must be an added token of the tokenizer, or sentence-transformers cuts "
                f"it into pieces. Received: the prompt {prompt!r:.60}, which {path} does not add. "
                "Add it to `added_tokens`, or export the folder again."
            )


def _read_pylate(config):
    # sentence-transformers fills up queries by default, except where no setting is PyLate's.
    has_settings = not config.keys().isdisjoint({*_PYLATE, "do_query_expansion", "skiplist_words"})
    has_expansion = has_settings and config.get("do_query_expansion") is not False
    words = config.get("skiplist_words")
    words = string.punctuation if words is None else words
    arguments = _read(config, _PYLATE, has_expansion, words)
    for kind, prompt in (config.get("prompts") or {}).items():
        if (marker := arguments.get(f"{kind}_marker")) is not None:
            arguments[f"{kind}_marker"] = marker + (prompt or "").removeprefix(marker)
    return arguments


def check_can_write(task, layout):
    """Raises `ValueError` if a layout has no place for a setting of a task."""
    expansion, skipped = task.query_expansion, "".join(task.skipped_tokens)
    is_simple = expansion in (None, task.query_length)
    if layout == "stanford":
        is_simple &= expansion is not None and skipped in ("", string.punctuation)
    if layout != "sentence-transformers" and not is_simple:
        raise ValueError(
            f"The layout {layout!r} expands queries to `query_length`, and Stanford's skips all "
            f"punctuation or none. Received: query_expansion={expansion}, "
            f"query_length={task.query_length}, skipped_tokens={task.skipped_tokens}. Use "
            "layout='sentence-transformers'."
        )


def write(folder, task, layout):
    """Writes the settings of a `MultiVectorEmbedder` into the folder of its weights.

    Args:
        folder: `Path` of an existing folder.
        task: a `MultiVectorEmbedder`.
        layout: one of `LAYOUTS`.
    """
    longest = longest_text(task)
    if layout == "stanford":
        config = read_json(folder / "config.json")
        write_json(folder / "config.json", {**config, "architectures": [ARCHITECTURE]})
        metadata = {"dim": task.dim, "similarity": "cosine", **_written(task, _STANFORD, longest)}
        metadata["mask_punctuation"] = bool(task.skipped_tokens)
        write_json(folder / METADATA, metadata)
        return
    activation = {"activation_function": _IDENTITY, "module_input_name": "token_embeddings"}
    write_dense(folder / "1_Dense", task, task.dim, False, **activation)
    limits = {"max_seq_length": longest}
    if layout == "pylate":
        config = {
            "model_type": "ColBERT",
            "default_prompt_name": None,
            "similarity_fn_name": "MaxSim",
            "do_query_expansion": task.query_expansion is not None,
            "skiplist_words": task.skipped_tokens,
            **_written(task, _PYLATE, longest),
        }
        write_module_files(folder, limits, config, _PYLATE_MODULES)
        return
    markers = {"query": task.query_marker, "document": task.document_marker}
    config = {"default_prompt_name": None, "similarity_fn_name": "maxsim", "prompts": markers}
    limits |= {f"{kind}_length": getattr(task, f"{kind}_length") for kind in markers}
    if task.query_expansion:
        limits["query_expansion"] = {
            "strategy": "fixed" if task.query_expansion == task.query_length else "min",
            "attend": task.attend_to_expansion,
            "length": task.query_expansion,
        }
    _add_markers(folder / TOKENIZER_FILE, markers.values())
    words = {"skiplist_words": task.skipped_tokens, "skiplist_tasks": ["document"]}
    write_module(folder / "2_MultiVectorMask", {**words, "keep_only_token_ids": None})
    write_module(folder / "3_Normalize", {"module_input_name": "token_embeddings"})
    write_module_files(folder, limits, {"model_type": "MultiVectorEncoder", **config}, _MODULES)


def write_dense(folder, task, units, has_bias, **config):
    """Writes an embedder's dense layer as a module of sentence-transformers."""
    sizes = {"in_features": task.backbone.hidden_dim, "out_features": units, "bias": has_bias}
    names = {"head/dense/kernel": "linear.weight", "head/dense/bias": "linear.bias"}
    tensors = {names[path]: array.T for path, array in arrays_of(head_weights(task)).items()}
    write_module(folder, sizes | config, tensors)


def read_module(folder, allowed, advice=""):
    """Returns the settings of a module, see `check_settings`."""
    path = folder / "config.json"
    return check_settings(path, read_json(path), allowed, advice)


def write_module(folder, config, tensors=None):
    """Writes the folder of a module: its settings, and its weights if it has some."""
    folder.mkdir(exist_ok=True)
    write_json(folder / "config.json", config)
    if tensors is not None:
        write_safetensors(folder / WEIGHTS_FILE, tensors)


def write_module_files(folder, limits, config, modules):
    """Writes the settings of the transformer and of the model, and the list of its modules.

    Args:
        folder: `Path`.
        limits, config: dicts, the two files of settings.
        modules: dict, path of a module -> its class in sentence-transformers.
    """
    write_json(folder / "sentence_bert_config.json", limits)
    write_json(folder / SENTENCES_FILE, config)
    entries = [
        {"idx": i, "name": str(i), "path": path, "type": kind}
        for i, (path, kind) in enumerate(modules.items())
    ]
    # Last, since the other files are read only if this one exists.
    write_json(folder / "modules.json", entries)


def longest_text(task):
    """Returns the most tokens of a text that a task reads, or `None` for no limit."""
    longest = task.preprocessor and task.preprocessor.max_length
    return longest or task.backbone.max_sequence_length


def _add_markers(path, markers):
    """Adds markers in the vocabulary as special tokens, so that texts may begin with them."""
    if not path.is_file():
        return
    backend = tokenizers.Tokenizer.from_file(str(path))
    known = {token.content for token in backend.get_added_tokens_decoder().values()}
    for marker in markers:
        token = marker if backend.token_to_id(marker) is not None else marker.strip()
        if backend.token_to_id(token) is not None and token not in known:
            backend.add_special_tokens([token])
    write_text(path, backend.to_str(pretty=True))
