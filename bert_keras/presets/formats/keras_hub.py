"""KerasHub's preset folder (formerly KerasNLP's), read without KerasHub.

| file | what it holds |
|---|---|
| `config.json` | the backbone's class and constructor arguments, as Keras serialized them |
| `model.weights.h5`, or `model.weights.json` and `model_00000.weights.h5`, ... | its weights |
| `task.json`, `task.weights.h5` | for a task: its class and arguments, the weights of its head |
| `tokenizer.json`, `preprocessor.json`, `assets/tokenizer/vocabulary.txt` | the tokenizer |

KerasHub's BERT always has the tanh approximation of GELU, 1e-12 in every norm, and one dropout
rate for everything. The precision that a preset was saved with is not taken over: give `dtype`.

Reference: https://keras.io/keras_hub/api/base_classes/backbone/.
"""

import json
from collections.abc import Mapping
from pathlib import Path, PureWindowsPath

import h5py
import ml_dtypes
import numpy as np

from bert_keras.presets.assign import assign, relative_path
from bert_keras.presets.formats.keras_folder import registered_class
from bert_keras.presets.name_maps import bert_keras_hub
from bert_keras.presets.name_maps.name_map import expand

_ARGUMENTS = (
    "vocabulary_size",
    "num_layers",
    "num_heads",
    "hidden_dim",
    "intermediate_dim",
    "dropout",
    "max_sequence_length",
    "num_segments",
)
# How KerasHub's BERT is made, whatever its config says.
_FIXED = {"activation": "gelu_tanh", "layer_norm_epsilon": 1e-12}

# A classifier's activation -> our `problem_type`; ours gives logits, and applies it in
# `probabilities`.
_PROBLEM_TYPES = {"linear": "single_label", "softmax": "single_label", "sigmoid": "multi_label"}


class KerasHubFolder:
    """An opened preset folder in KerasHub's layout."""

    def __init__(self, folder, config):
        self.folder = Path(folder)
        self.name = self.folder.name  # in messages
        self._config = _arguments_of(config, self.folder / "config.json")
        if config.get("class_name") != "BertBackbone":
            raise ValueError(
                f"{self.folder / 'config.json'} holds KerasHub's {config.get('class_name')!r}. "
                "Supported: 'BertBackbone'."
            )
        self._task_class, self._task = None, {}
        if (self.folder / "task.json").is_file():
            task = _read_json(self.folder / "task.json")
            self._task = _arguments_of(task, self.folder / "task.json")
            self._task_class = task.get("class_name")

    @staticmethod
    def recognizes(config):
        """Whether a parsed `config.json` is of this format."""
        package = str(config.get("registered_name") or "").partition(">")[0]
        module = str(config.get("module") or "").partition(".")[0]
        return bool({package, module} & {"keras_hub", "keras_nlp"})

    @property
    def tokenizer_folder(self):
        """Path of the folder with the tokenizer's files."""
        return self.folder

    def backbone_class(self, base):
        """Returns the backbone's class, which must derive from `base`."""
        return registered_class("bert_keras>BertBackbone", base, self.folder)

    def backbone(self, base, **overrides):
        """Returns a new backbone with initial weights, of a class that derives from `base`."""
        missing = [name for name in _ARGUMENTS[:5] if name not in self._config]
        if missing:
            raise ValueError(
                f"{self.folder / 'config.json'} lacks {missing}, without which the model's shape "
                "is unknown."
            )
        arguments = {name: self._config[name] for name in _ARGUMENTS if name in self._config}
        return self.backbone_class(base)(**{**_FIXED, **arguments, **overrides})

    def load_backbone_weights(self, backbone):
        """Assigns every backbone weight its array.

        Raises:
            FileNotFoundError: a weights file is missing.
            ValueError: a file is damaged, or a name or a shape does not fit; both lists are
                printed.
        """
        tensors = _H5Tensors(_model_files(self.folder))
        self._check_heads(tensors, backbone.num_heads)
        _assign_from(
            tensors,
            backbone.weights,
            bert_keras_hub.backbone_rows(backbone.num_layers),
            source=f"The preset {self.name!r}",
        )

    def _check_heads(self, tensors, num_heads):
        # Merging the axes of heads and width would hide other numbers of heads.
        for name, shape in tensors.shapes.items():
            is_query = name.endswith("query_dense/vars/0")
            if is_query and len(shape) == 3 and shape[1] != num_heads:
                raise ValueError(
                    f"The weights in {self.folder} are those of {shape[1]} heads: {name} has the "
                    f"shape {shape}. Received num_heads={num_heads}. Does config.json belong to "
                    "these weights?"
                )

    def task_name(self):
        """Returns the registered name of the saved task, or `None`."""
        for task, theirs in bert_keras_hub.TASKS.items():
            if self._task_class in theirs:
                return f"bert_keras>{task}"
        return None

    def task_arguments(self, task_class_name):
        """Returns what `task.json` says of a classifier: classes, problem, dropout."""
        if task_class_name != "TextClassifier" or not self._holds(task_class_name):
            return {}
        num_classes = self._task.get("num_classes")
        activation = self._task.get("activation") or "linear"
        if not isinstance(activation, str) or activation not in _PROBLEM_TYPES:
            raise ValueError(
                f"{self.folder / 'task.json'} asks for the activation {activation!r} after the "
                f"classifier. Supported: {sorted(_PROBLEM_TYPES)}."
            )
        problem_type = _PROBLEM_TYPES[activation]
        if num_classes == 1 and activation == "linear":
            problem_type = "regression"
        arguments = {
            "num_classes": num_classes,
            "problem_type": problem_type,
            "pooling": "pooler",
        }
        if self._task.get("dropout") is not None:
            arguments["dropout"] = self._task["dropout"]
        return arguments

    def preprocessor_config(self, task_class_name):
        """Returns `None`: the tokenizer's files say all that ours needs."""
        return None

    def load_head_weights(self, task):
        """Loads `task.weights.h5` when it holds this task; else the head stays, with a warning.

        Raises:
            ValueError: the file is damaged, or a name or a shape does not fit.
        """
        name = type(task).__name__
        path = self.folder / "task.weights.h5"
        has_head = self._holds(name) and path.is_file()
        _assign_from(
            _H5Tensors([path] if has_head else []),
            task.head.weights,
            bert_keras_hub.HEADS.get(name, []),
            optional=() if has_head else ("head/",),
            source=f"The preset {self.name!r}",
        )

    def _holds(self, task_class_name):
        return self._task_class in bert_keras_hub.TASKS.get(task_class_name, ())


def _assign_from(tensors, weights, rows, **options):
    assign(
        {relative_path(weight): weight for weight in weights},
        expand(rows, 1, bert_keras_hub.KINDS, bert_keras_hub.SEPARATOR),
        tensors,
        ignored=bert_keras_hub.NOT_WEIGHTS,
        **options,
    )


class _H5Tensors(Mapping):
    """The arrays of Keras weights files by their paths, each read when it is asked for.

    Paths have no leading underscores and begin with `layers`, whatever version of Keras wrote them.

    Attributes:
        shapes: dict from path to shape, known without reading the array.
    """

    def __init__(self, files):
        self.shapes = {}
        self._places = {}
        for file in files:
            try:
                with h5py.File(file) as opened:
                    # Visits what lies in the file itself: no link, within it or to another.
                    opened.visititems(lambda name, item, file=file: self._note(file, name, item))
            except (OSError, RuntimeError, KeyError) as error:
                raise ValueError(
                    f"{file} with {file.stat().st_size} bytes is damaged or no HDF5 file "
                    f"({error}). Download or save the preset again."
                ) from error

    def _note(self, file, name, item):
        if not isinstance(item, h5py.Dataset):
            return
        if item.is_virtual or item.external:
            raise ValueError(f"{file} takes {name!r} from another file, which is not allowed.")
        canonical = _canonical(name)
        if canonical in self._places:
            raise ValueError(
                f"The weights hold {canonical!r} twice: in {self._places[canonical][0].name} and "
                f"in {file.name}. Download or save the preset again."
            )
        self._places[canonical] = (file, name)
        self.shapes[canonical] = item.shape or ()

    def __getitem__(self, name):
        file, path = self._places[name]
        try:
            with h5py.File(file) as opened:
                dataset = opened[path]
                array = dataset[()]
                if dataset.dtype.itemsize == 2 and dataset.attrs.get("dtype") == "bfloat16":
                    array = np.asarray(array).view(ml_dtypes.bfloat16)
        except (OSError, RuntimeError, KeyError) as error:
            raise ValueError(
                f"{file} is damaged at {path!r} ({error}). Download or save the preset again."
            ) from error
        array = np.asarray(array)
        if array.dtype.kind != "f" and array.dtype != ml_dtypes.bfloat16:
            raise ValueError(
                f"Weights must be floats. Received: {path!r} of dtype {array.dtype} in {file}. "
                "Quantized presets are not supported: save it without quantization."
            )
        return array.astype(np.float32)

    def __contains__(self, name):
        return name in self._places

    def __iter__(self):
        return iter(self._places)

    def __len__(self):
        return len(self._places)


def _canonical(name):
    parts = [part.lstrip("_") for part in name.split("/")]
    if parts[0] == "layer_checkpoint_dependencies":  # before Keras 3
        parts[0] = "layers"
    return "/".join(parts)


def _model_files(folder):
    """Returns the paths of the files with the backbone's weights, all of which exist."""
    path = folder / "model.weights.h5"
    if path.is_file():
        return [path]
    index = folder / "model.weights.json"
    if not index.is_file():
        raise FileNotFoundError(f"The preset folder {folder} lacks model.weights.h5.")
    weight_map = _read_json(index).get("weight_map")
    shards = set()
    for value in weight_map.values() if isinstance(weight_map, dict) else ():
        shards.update(value if isinstance(value, list) else [value])
    for shard in shards:
        # A hostile index must not make us read outside the folder, on any system.
        is_name = isinstance(shard, str) and shard == PureWindowsPath(shard).name
        if not is_name or not shard.endswith(".weights.h5"):
            raise ValueError(f"{index} names the weights file {shard!r}, which cannot be.")
        if not (folder / shard).is_file():
            raise FileNotFoundError(
                f"The preset folder {folder} lacks {shard}, which {index.name} names. The download "
                "is incomplete: download it again."
            )
    if not shards:
        raise ValueError(f"{index} names no weights file. Download or save the preset again.")
    return [folder / shard for shard in sorted(shards)]


def _read_json(path):
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise ValueError(
            f"{path} is not valid JSON ({error}). Download or save the preset again."
        ) from error
    if not isinstance(value, dict):
        raise ValueError(f"{path} must hold a JSON object. Received: {type(value).__name__}.")
    return value


def _arguments_of(serialized, path):
    arguments = serialized.get("config")
    if not isinstance(arguments, dict):
        raise ValueError(
            f"{path} must have the key 'config' with an object's arguments. Its keys: "
            f"{sorted(serialized)[:20]}."
        )
    return arguments
