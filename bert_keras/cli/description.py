"""What the files of a model say about it, read in a moment: without Keras and its backend.

Files do not say whether all weights load, and in some formats they leave more open. For that,
`sources.description` loads the model.
"""

import contextlib
import importlib.util
import io
import json
import pathlib
import zipfile

from bert_keras.engine.atomic_files import read_json
from bert_keras.presets.families import records
from bert_keras.presets.registry import PRESETS
from bert_keras.presets.safetensors_io import WEIGHTS_FILE, read_safetensors

_NOT_CHECKED = "whether all weights load; --load loads them"
_BUFFERS = (".position_ids", ".token_type_ids")


def of_files(source):
    """Returns a description of a source, a dict of the values to show.

    Args:
        source: str, see `sources.load`.

    Returns:
        A dict; `None` where the model must be loaded, or where loading says what is wrong.
    """
    path = _local(source)
    with contextlib.suppress(Exception):  # Readers of broken files raise errors of any kind.
        return path and _of_path(path)
    return None


def _of_path(path):
    if path.is_file():
        return _of_keras_file(path)
    if not (path / "config.json").is_file() or not (path / WEIGHTS_FILE).is_file():
        return None
    config = read_json(path / "config.json")
    tensors = read_safetensors(path)
    count = tensors.only(name for name in tensors if not name.endswith(_BUFFERS)).num_values
    if isinstance(config.get("registered_name"), str):
        task = read_json(path / "task.json") if (path / "task.json").is_file() else {}
        facts = _of_objects(task, config, count)
    else:
        facts = _of_checkpoint(path, config, count)
    vocabulary = path / "tokenizer.json"
    return facts and _shown(facts, vocabulary.read_bytes() if vocabulary.is_file() else None)


def _local(source):
    """Returns the path of a `.keras` file or a folder, or `None` if it may have to be fetched."""
    places = PRESETS[source].places if source in PRESETS else ()
    for place in places:
        scheme, _, package_and_folder = place.partition("://")
        if scheme != "package":
            continue
        package, _, folder = package_and_folder.partition("/")
        spec = importlib.util.find_spec(package)
        for location in (spec and spec.submodule_search_locations) or ():
            if (pathlib.Path(location) / folder).is_dir():
                return pathlib.Path(location) / folder
    path = pathlib.Path(source).expanduser()
    if (path / "results.json").is_file() and (path / "model.keras").is_file():
        return path / "model.keras"
    is_known = path.is_dir() or (path.suffix == ".keras" and zipfile.is_zipfile(path))
    return path if is_known and source not in PRESETS else None


def _of_keras_file(path):
    import h5py

    with zipfile.ZipFile(path) as file:
        names = file.namelist()
        saved = json.loads(file.read("config.json"))
        with h5py.File(io.BytesIO(file.read("model.weights.h5"))) as weights:
            count = sum(_sizes(weights))
        tokenizer = next((x for x in names if x.endswith("tokenizer.json")), None)
        vocabulary = tokenizer and file.read(tokenizer)
    backbone = saved.get("config", {}).get("backbone") or saved
    facts = _of_objects(saved if backbone is not saved else {}, backbone, count)
    return facts and _shown(facts, vocabulary)


def _sizes(weights):
    """Returns the sizes of the weights in a file of Keras, without optimizer and seeds."""
    sizes = []

    def add(name, item):
        if hasattr(item, "shape") and not name.startswith("optimizer/") and "seed" not in name:
            sizes.append(item.size)

    weights.visititems(add)
    return sizes


def _of_objects(task, backbone, count):
    """Describes what Keras has serialized: a task, `{}` if there is none, and a backbone."""
    config = task.get("config", {})
    preprocessor = task.get("preprocessor") or config.get("preprocessor") or {}
    name = backbone["registered_name"].split(">")[-1]
    return {
        "model": task.get("registered_name", name).split(">")[-1],
        "backbone": name,
        **backbone["config"],
        "parameters": count,
        "labels": config.get("label_names"),
        "problem_type": config.get("problem_type"),
        "max_length": preprocessor.get("config", {}).get("max_length"),
    }


def _of_checkpoint(path, config, count):
    """Describes a checkpoint of Hugging Face's layout, or returns `None`."""
    known = {name: record for record in records("HUGGING_FACE") for name in record.names}
    record = known.get(config.get("model_type"))
    if record is None:
        return None
    task = _task_of(path, config, record)
    if task is None:
        return None
    config = {**record.defaults, **record.native(config)}
    arguments = {ours: config[theirs] for theirs, ours in record.config.items() if theirs in config}
    if record.activation is not None:
        key, activations = record.activation
        arguments["activation"] = activations.get(config.get(key, next(iter(activations))))
    backbone = record.backbone.split(">")[-1]
    labels = config.get("id2label")
    return {
        "model": task or backbone,
        "backbone": backbone,
        **dict(sorted(arguments.items())),
        "parameters": count,
        "labels": list(labels.values()) if task in ("TextClassifier", "TokenClassifier") else None,
    }


def _task_of(path, config, record):
    """Returns the task of a checkpoint's head: `""` without one, `None` if files leave it open."""
    if (path / "modules.json").is_file():
        modules = read_json(path / "modules.json", list)
        kinds = [str(module.get("type")).split(".")[-1] for module in modules]
        is_plain = kinds in (["Transformer", "Pooling"], ["Transformer", "Pooling", "Normalize"])
        return "TextEmbedder" if is_plain else None
    names = config.get("architectures") or []
    endings = {task: head.architecture for task, head in record.heads.items() if head.architecture}
    tasks = [task for task, ending in endings.items() if any(x.endswith(ending) for x in names)]
    # One score may be that of a cross-encoder.
    is_open = tasks == ["TextClassifier"] and len(config.get("id2label") or "two") == 1
    return None if is_open or len(tasks) > 1 else "".join(tasks)


def _shown(facts, vocabulary):
    """Returns what `info` shows of the facts about a model and of its tokenizer.json, bytes."""
    kinds = (int, float, str)
    labels = facts.pop("labels")
    count = facts.pop("parameters")
    facts = {x: value for x, value in facts.items() if type(value) in kinds and x != "name"}
    max_length = facts.pop("max_length", None)
    tokens = None
    if vocabulary is not None:
        import tokenizers

        size = tokenizers.Tokenizer.from_str(vocabulary.decode()).get_vocab_size()
        tokens = f"Tokenizer, {size} tokens"
    further = {
        "parameters": f"{count:,}",
        "labels": labels and ", ".join(map(str, labels)),
        "tokenizer": tokens,
        "max_length": max_length,
        "not checked": _NOT_CHECKED,
    }
    return facts | {name: value for name, value in further.items() if value is not None}
