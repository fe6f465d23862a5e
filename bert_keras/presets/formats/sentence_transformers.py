"""The files of sentence-transformers, which say how a checkpoint makes a sentence's vector.

They are next to a checkpoint in Hugging Face's layout:

| file | what is read |
|---|---|
| `modules.json` | the modules in order: `Transformer`, `Pooling`, and maybe `Normalize` |
| `1_Pooling/config.json` | the pooling: one flag per mode before version 5, then `pooling_mode` |
| `sentence_bert_config.json` | `max_seq_length`; newer versions keep it with the tokenizer |

Reference: https://www.sbert.net/docs/sentence_transformer/usage/custom_models.html
"""

from pathlib import Path

from bert_keras.checks import check_choice
from bert_keras.engine.atomic_files import read_json, write_json

# Their pooling -> ours.
_POOLINGS = {"cls": "cls", "mean": "mean", "max": "max"}
_OLD_FLAGS = {
    "pooling_mode_cls_token": "cls",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_mean_sqrt_len_tokens": "mean_sqrt_len_tokens",
    "pooling_mode_weightedmean_tokens": "weightedmean",
    "pooling_mode_lasttoken": "lasttoken",
}
_PACKAGE = "sentence_transformers.models"


def read_settings(folder, modules_matter=True):
    """Returns the settings of a folder's embeddings, or `{}` if it has no `modules.json`.

    Args:
        folder: path of the folder.
        modules_matter: bool, `False` if the user chooses pooling and normalization, so that unknown
            modules are not an error.

    Returns:
        A dict with `pooling`, a str, and `normalize`, a bool, if `modules_matter`, and with
        `max_length`, an int, if the folder has one.

    Raises:
        ValueError: a file is damaged, or there are modules besides pooling and normalization (dense
            layers, several poolings).
    """
    folder = Path(folder)
    if not (folder / "modules.json").is_file():
        return {}
    settings, transformer = _read_modules(folder) if modules_matter else ({}, "")
    path = _inside(folder, transformer) / "sentence_bert_config.json"
    if path.is_file():
        max_length = read_json(path, dict).get("max_seq_length")
        if max_length is not None:
            settings["max_length"] = max_length
    return settings


def _read_modules(folder):
    """Returns pooling and normalization, and the folder of the transformer's own settings."""
    modules = read_json(folder / "modules.json", list)
    try:
        kinds = [module["type"].rpartition(".")[2] for module in modules]
        paths = [module.get("path", "") for module in modules]
    except (TypeError, KeyError, AttributeError) as error:
        raise ValueError(
            f"{folder / 'modules.json'} must list modules, each with 'type' and 'path'."
        ) from error
    if kinds not in (["Transformer", "Pooling"], ["Transformer", "Pooling", "Normalize"]):
        raise ValueError(
            f"{folder / 'modules.json'} makes embeddings with the modules {kinds}. Supported: "
            "Transformer, Pooling and, at the end, Normalize. Pass both `pooling` and `normalize` "
            "to ignore its modules."
        )
    return {"pooling": _read_pooling(folder, paths[1]), "normalize": len(kinds) == 3}, paths[0]


def _read_pooling(folder, name):
    path = _inside(folder, name) / "config.json"
    config = read_json(path, dict)
    modes = config.get("pooling_mode")
    if modes is None:
        modes = [mode for flag, mode in _OLD_FLAGS.items() if config.get(flag)] or ["mean"]
    modes = [modes] if isinstance(modes, str) else modes
    if len(modes) != 1 or modes[0] not in _POOLINGS:
        raise ValueError(
            f"{path} has the pooling {modes}. Supported: one of {sorted(_POOLINGS)}. Pass both "
            "`pooling` and `normalize` to use others than in its training."
        )
    return _POOLINGS[modes[0]]


def _inside(folder, name):
    path = folder / name
    if not path.resolve().is_relative_to(folder.resolve()):
        raise ValueError(f"{folder / 'modules.json'} names a file outside its folder: {name!r}.")
    return path


def write_settings(folder, pooling, normalize, max_length, hidden_dim):
    """Writes the files for sentence-transformers into the folder of a checkpoint.

    Their format is that of versions before 5, which all versions read.

    Args:
        folder: path of an existing folder.
        pooling: `"cls"`, `"mean"` or `"max"`.
        normalize: bool.
        max_length: int, the longest sequence, special tokens included.
        hidden_dim: int, width of the vectors.

    Raises:
        ValueError: sentence-transformers does not have the pooling.
    """
    theirs = {ours: name for name, ours in _POOLINGS.items()}
    check_choice("pooling", pooling, theirs, "sentence-transformers has no others.")
    folder = Path(folder)
    modules = [("", "Transformer"), ("1_Pooling", "Pooling"), ("2_Normalize", "Normalize")]
    listed = [
        {"idx": i, "name": str(i), "path": path, "type": f"{_PACKAGE}.{kind}"}
        for i, (path, kind) in enumerate(modules[: 2 + bool(normalize)])
    ]
    flags = {flag: mode == theirs[pooling] for flag, mode in _OLD_FLAGS.items()}
    (folder / "1_Pooling").mkdir(exist_ok=True)
    pooling = {"word_embedding_dimension": hidden_dim, **flags}
    write_json(folder / "1_Pooling" / "config.json", pooling)
    write_json(folder / "sentence_bert_config.json", {"max_seq_length": max_length})
    # This file is last, since the others are read only if it exists.
    write_json(folder / "modules.json", listed)
