"""Finds or downloads the local folder of a checkpoint.

`resolve` takes a registered name, a local folder, `hf://owner/name` or
`kaggle://owner/model/framework/variation` and returns a folder with a config. It raises
`ValueError` for a malformed or refused source, and `FileNotFoundError` or another `OSError` for one
that is missing or cannot be downloaded.

`registered.json` lists the registered names, those of well-known checkpoints. Most have their
weights as safetensors; the others have a `pytorch_model.bin`, which is read without running
anything in it.

| key | value |
|---|---|
| `description` | one sentence that helps to choose a preset |
| `parameters` | the number of parameters of the backbone, pooler included |
| `places` | where to look for it, in this order: `package://name/folder`, a folder inside an \
installed Python package, or `hf://owner/name`, a Hugging Face repository |
| `extra` | the extra of bert_keras that installs the package, if that is another one |
| `languages` | the language of its text, or how many there are |
| `license` | SPDX identifier of the weights' licence |
"""

import contextlib
import fnmatch
import importlib.util
import json
import os
import pathlib
import re
from collections.abc import Callable, Iterable

from bert_keras.checks import check_exists, check_type, require, with_extra
from bert_keras.presets.assign import warn
from bert_keras.presets.formats.huggingface import UNREAD_HEADS
from bert_keras.presets.formats.late_interaction import METADATA
from bert_keras.presets.torch_pickle import CONVERT
from bert_keras.tokenizers.tokenizer import Tokenizer

PRESETS = json.loads(pathlib.Path(__file__).with_name("registered.json").read_text("utf-8"))
# The names of configs. The last two are those of TensorFlow 1.
CONFIG_FILES = ("gliner_config.json", "config.json", "bert_config.json", "albert_config.json")
# The config of peft's adapters, which are no whole checkpoint.
ADAPTERS = "adapter_config.json"

# Only these files are downloaded from a Hugging Face repository: those of formats that are read
# here, without copies of the weights in other formats. `*` matches folders too, such as that of an
# encoder or of a dense layer of sentence-transformers, `0_Transformer` or `2_Dense`.
DOWNLOADED_FILES = ("*.json", "*vocab*.txt", "*merges.txt", "*.model", "*.spm", METADATA)
DOWNLOADED_FILES += tuple(f"{name}.*" for name in UNREAD_HEADS)
DOWNLOADED_FILES += ("model.safetensors", "model-*.safetensors", "*[0-9]_*/model*.safetensors")
DOWNLOADED_FILES += ("*_Dense*/pytorch_model.bin", "*.weights.h5")
# If a repository has none of the weights above: Google's TensorFlow 1 checkpoint, else PyTorch's.
DOWNLOADED_TF1_FILES = ("*.ckpt*.index", "*.ckpt*.data-*")
_TORCH = ("pytorch_model.bin", "pytorch_model-*.bin")
DOWNLOADED_TORCH_FILES = (*_TORCH, *(f"0_*/{name}" for name in _TORCH))

_READABLE_WEIGHTS = ("*.safetensors", "*.weights.h5", "*.index", *_TORCH)
_OTHER_WEIGHTS = ("*.bin", "*.pt", "*.pth", "*.pkl", "*.pickle")
_OTHER_WEIGHTS += ("*.h5", "*.msgpack", "*.onnx", "*.gguf", "*.ot", "*.tflite")

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")  # One letter is a drive on Windows.
# Names of owners, repositories and models. A name with `..` could lead out of the cache folder.
_NAME = r"(?!.*\.\.)[A-Za-z0-9_][A-Za-z0-9._-]*"
HUGGING_FACE = re.compile(
    rf"hf://(?P<repository>{_NAME}/{_NAME})(@(?P<revision>{_NAME}(/{_NAME})*))?"
)
_KAGGLE = re.compile(rf"kaggle://(?P<handle>{_NAME}/{_NAME}/{_NAME}/{_NAME}(/[0-9]+)?)")
_LOCAL_WORKS = "A local folder with the same files works too."


def resolve(source: str | os.PathLike) -> pathlib.Path:
    """Returns the local folder of a checkpoint, and downloads it if necessary.

    Downloads use `huggingface_hub` and `kagglehub` with their caches, environment variables
    (`HF_ENDPOINT`, `HF_HOME`, `HF_TOKEN`, `HF_HUB_OFFLINE`, ...) and progress bars. A cached
    checkpoint needs no network. The only pickles that are downloaded are `pytorch_model.bin` and
    its shards, and only if there are no other weights, see `torch_pickle`.

    Args:
        source: one of
            - a registered name: `"bert_base_en_uncased"`; see `registry.PRESETS`;
            - a local folder: `"checkpoints/mine"`, or any `os.PathLike`;
            - a Hugging Face repository: `"hf://owner/name"`, or at a branch, tag or commit
              `"hf://owner/name@revision"`;
            - a Kaggle model: `"kaggle://owner/model/framework/variation"`, or
              `"kaggle://owner/model/framework/variation/version"`.

    Returns:
        `pathlib.Path` of a folder that exists and holds one of `CONFIG_FILES`.

    Raises:
        TypeError: `source` is neither a string nor a path.
        ValueError: `source` is an unknown name or a malformed address, or it has weights only in
            refused formats.
        FileNotFoundError: the folder, repository or revision does not exist, may not be read or
            has no config.
        OSError: a download fails for another reason, such as a network that cannot be reached.
        ImportError: the package that downloads is not installed.

    Example:

    ```python
    folder = resolve("hf://sentence-transformers/all-MiniLM-L6-v2")
    sorted(path.name for path in folder.iterdir())  # ['config.json', 'model.safetensors', ...]
    ```
    """
    if isinstance(source, os.PathLike):
        return _local_folder(os.fspath(source))
    check_type("source", source, str, "a string or a path")
    if source in PRESETS:
        return _registered(source, PRESETS[source])
    if _SCHEME.match(source):
        return _address(source)
    looks_like_a_path = source.startswith((".", "~", os.sep)) or len(pathlib.Path(source).parts) > 2
    if looks_like_a_path or (source and os.path.exists(source)):
        return _local_folder(source)
    raise ValueError(
        "A checkpoint must be a registered name, a local folder, 'hf://owner/name' or "
        f"'kaggle://owner/model/framework/variation'. Received: {source!r}, which is neither a "
        f"registered name nor a folder in {os.getcwd()!r}. Registered names: "
        f"{', '.join(sorted(PRESETS))}."
    )


Tokenizer.resolve = staticmethod(resolve)


def _registered(name: str, preset: dict) -> pathlib.Path:
    """Returns the folder of the first place of a preset that is available."""
    failures = {}
    for place in preset["places"]:
        try:
            if place.startswith("package://"):
                return _package_folder(place, preset.get("extra"))
            return _address(place)
        except (OSError, ImportError) as error:
            failures[place] = error
    raise FileNotFoundError(
        f"The preset {name!r} must be installed, cached or downloadable. Received none of its "
        "places:\n" + "\n".join(f"- {place}: {error}" for place, error in failures.items())
    ) from failures[place]


def _package_folder(place: str, extra: str | None) -> pathlib.Path:
    """Returns a folder inside an installed Python package, without importing the package."""
    package, _, folder = place.removeprefix("package://").partition("/")
    spec = importlib.util.find_spec(package)
    for location in (spec and spec.submodule_search_locations) or ():
        if (pathlib.Path(location) / folder).is_dir():
            return _checked(pathlib.Path(location) / folder, place)
    raise FileNotFoundError(
        f"The Python package {package!r} is not installed. {with_extra(extra)}."
    )


def _address(source: str) -> pathlib.Path:
    """Returns the folder for an address with a scheme."""
    if HUGGING_FACE.fullmatch(source):
        return _hugging_face(source)
    if match := _KAGGLE.fullmatch(source):
        handle = match["handle"]
        folder = _download("kagglehub", source, lambda client: client.model_download(handle))
        return _checked(folder, source)
    raise ValueError(
        "The address of a checkpoint must be 'hf://owner/name', 'hf://owner/name@revision' or "
        f"'kaggle://owner/model/framework/variation'. Received: {source!r}."
    )


def _local_folder(source: str) -> pathlib.Path:
    folder = pathlib.Path(os.path.expanduser(source))
    if os.path.isdir(folder):
        return _checked(folder, source)
    rule = f"The folder of the checkpoint {source!r} must exist"
    check_exists(folder, rule, f"The current directory is {os.getcwd()!r}.")
    raise ValueError(
        f"A checkpoint must be a folder. Received: {source!r}, which is a file. Pass the folder "
        f"that contains it, {str(folder.parent)!r}; load a `.keras` file with "
        "`keras.saving.load_model`."
    )


def download(source: str, patterns: Iterable[str]) -> pathlib.Path:
    """Returns the folder with a Hugging Face repository's files, from the cache if possible.

    Args:
        source: str, `hf://owner/name`, with `@revision` or without.
        patterns: names of the files; `*` matches folders too.
    """
    name, revision = HUGGING_FACE.fullmatch(source).group("repository", "revision")
    options = {"revision": revision, "allow_patterns": list(patterns)}
    return _download(
        "huggingface_hub", source, lambda client: client.snapshot_download(name, **options)
    )


def _download(package: str, source: str, fetch: Callable) -> pathlib.Path:
    """Returns the folder that a client downloads, or finds in its cache.

    Args:
        package: the name of the client.
        source: the address, for messages.
        fetch: function of the client that returns the folder's path.
    """
    client = require(package, f"download {source!r}", advice=_LOCAL_WORKS)
    try:
        return pathlib.Path(fetch(client))
    except Exception as error:
        # A response's status code tells whether the repository exists and is open to the user.
        status = getattr(getattr(error, "response", None), "status_code", None)
        error_class = FileNotFoundError if status in (401, 403, 404) else OSError
        raise error_class(
            "A checkpoint must exist, be open to you and be downloaded completely. Received: "
            f"{source!r}, which failed with {type(error).__name__}: "
            f"{' '.join(str(error).split())[:500]}. Check the spelling, the connection and your "
            f"login; incomplete files are not used. {_LOCAL_WORKS}"
        ) from error


def _hugging_face(source: str) -> pathlib.Path:
    """Returns the folder of a checkpoint on the Hugging Face Hub."""
    for more_files in ((), DOWNLOADED_TF1_FILES, DOWNLOADED_TORCH_FILES):
        folder = _encoder_in(download(source, DOWNLOADED_FILES + more_files))
        names = os.listdir(folder)
        if _matching(names, _READABLE_WEIGHTS):
            return _checked(folder, source, names)
    import huggingface_hub

    # If the hub answers, the error lists all files of the repository, not only those here.
    name, revision = HUGGING_FACE.fullmatch(source).group("repository", "revision")
    with contextlib.suppress(Exception):
        names = huggingface_hub.HfApi().list_repo_files(name, revision=revision)
    return _checked(folder, source, names)


def _checked(folder: pathlib.Path, source: str, names: Iterable[str] | None = None) -> pathlib.Path:
    """Returns the folder if it can be a checkpoint. `names` are its files, `None` to list them."""
    folder = _encoder_in(folder)
    names = os.listdir(folder) if names is None else names
    if ADAPTERS in names and not _matching(names, ("model*", "pytorch_model*")):
        raise ValueError(
            f"A checkpoint must be a whole model. Received: {source!r}, which holds adapters. Make "
            "the task from their base, with their settings, `from_preset(base, lora_rank=..., "
            f"lora_alpha=..., lora_targets=...)`, which {ADAPTERS} has as "
            "`base_model_name_or_path`, `r`, `lora_alpha` and `target_modules`. Then call its "
            "`load_adapters` with a local folder of the adapters."
        )
    if not any((folder / name).is_file() for name in CONFIG_FILES):
        raise FileNotFoundError(
            f"The folder of a checkpoint must hold {' or '.join(CONFIG_FILES)}. Received: "
            f"{source!r}, which holds: {', '.join(sorted(names)[:20]) or 'nothing'}. "
            "Pass the folder that it was saved to. A `.keras` file is loaded by "
            "`keras.saving.load_model`."
        )
    if _matching(names, _READABLE_WEIGHTS):
        return folder
    if found := _matching(names, _OTHER_WEIGHTS):
        raise ValueError(
            "Weights must be in the format of safetensors, Keras (`*.weights.h5`), a TensorFlow 1 "
            "checkpoint, or `pytorch_model.bin` and its shards with nothing but tensors. Received: "
            f"{source!r}, which has only {', '.join(found)}. Other pickles are not read, since "
            f"unpickling runs any code in a file. {CONVERT}"
        )
    return folder


def _encoder_in(folder: pathlib.Path) -> pathlib.Path:
    """Returns the folder of the encoder, which sentence-transformers may keep in a subfolder.

    It is `0_Transformer` in old folders, and `document_0_*` in those with a `Router`, unless
    modules.json lists another one.
    """
    if (folder / "config.json").is_file():
        return folder
    names = ("0_*", "document_0_*", "query_0_*")
    path = folder / "modules.json"
    inner = [x.parent for name in names for x in sorted(folder.glob(f"{name}/config.json"))]
    listed = path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""
    if found := [x for x in inner if f'"{x.relative_to(folder).as_posix()}"' in listed]:
        return found[0]
    encoders = [str(x) for x in inner if x.name.endswith("Transformer")]
    if len(encoders) > 1:
        warn(
            f"{folder} has an encoder for queries and one for documents: {encoders}. The first is "
            "read. To read another one, list its modules in modules.json."
        )
    return [*inner, folder][0]


def root_of(folder: pathlib.Path) -> pathlib.Path | None:
    """Returns the folder with `modules.json`: the encoder's, the one around it, or `None`."""
    is_inner = folder.name.startswith(("0_", "document_0_", "query_0_"))
    for root in (folder, folder.parent) if is_inner else (folder,):
        if (root / "modules.json").is_file():
            return root
    return None


def _matching(names: Iterable[str], patterns: Iterable[str]) -> list[str]:
    """Returns the file names that match one of the patterns, sorted."""
    return sorted({name for pattern in patterns for name in fnmatch.filter(names, pattern)})


class PresetTable(list):
    """A list of dicts, one per preset, that prints as a table and converts to a `DataFrame`."""

    def __repr__(self):
        rows = [list(self[0]), *([str(value) for value in row.values()] for row in self)]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = [zip(row, widths, strict=True) for row in rows]
        return "\n".join("  ".join(text.ljust(n) for text, n in line).rstrip() for line in lines)


def presets() -> PresetTable:
    """Returns the registered presets with name, parameters, languages, licence and description.

    Returns:
        A `PresetTable`, a list of dicts.
    """
    names = ("parameters", "languages", "license", "description")
    return PresetTable(
        {"name": name, **{key: preset[key] for key in names}} for name, preset in PRESETS.items()
    )
