"""KerasHub's preset folder (formerly KerasNLP's), read and written without KerasHub.

| file | what it holds |
|---|---|
| `config.json` | the backbone's class and constructor arguments, as Keras serialized them |
| `model.weights.h5`, or `model.weights.json` and `model_00000.weights.h5`, ... | its weights |
| `task.json`, `task.weights.h5` | for a task: its class and arguments, the weights of its head |
| `tokenizer.json`, `preprocessor.json`, `assets/tokenizer/vocabulary.txt` | the tokenizer |

Names of weights are paths inside an HDF5 file, made of the layers' classes, of which the first has
no number; leading underscores, which differ between Keras's versions, do not count. Queries, keys
and values have an axis for the heads and one for each head's width, where we have one for both. The
precision that a preset was saved with is not taken over: give `dtype`.

Reference: https://keras.io/keras_hub/api/base_classes/backbone/.
"""

import contextlib
import io
import pathlib
import tempfile
import warnings

import h5py
import keras
import ml_dtypes
import numpy as np

from bert_keras.checks import check_choice
from bert_keras.files import read_json, replacing_files, write_json, write_text
from bert_keras.presets.assign import by_path, own_weights, warn
from bert_keras.presets.card import README, card_of
from bert_keras.presets.families import kind_of, record_of, records
from bert_keras.presets.formats.checkpoint import Checkpoint, check_head, refuse, written_config
from bert_keras.presets.name_map import expand, transformed_back
from bert_keras.presets.safetensors_io import weights_files
from bert_keras.presets.tensors import Tensors
from bert_keras.tokenizers.keras_hub_settings import ASSETS, read_serialized
from bert_keras.tokenizers.saved import TOKENIZER_FILES
from bert_keras.tokenizers.to_keras_hub import to_keras_hub as tokenizer_to_keras_hub

_THERE = "KerasHub"
_TASK, _METADATA, _PREPROCESSOR = "task.json", "metadata.json", "preprocessor.json"
_WEIGHTS, _TASK_WEIGHTS = "model.weights.h5", "task.weights.h5"
_INDEX = "model.weights.json"
_FILES = (_TASK, _METADATA, _PREPROCESSOR, _WEIGHTS, _TASK_WEIGHTS, _INDEX)
# A classifier's activation -> our `problem_type`; ours gives logits, and applies it in
# `probabilities`.
_PROBLEM_TYPES = {"linear": "single_label", "softmax": "single_label", "sigmoid": "multi_label"}
# Settings of the masking there -> ours.
_MASKING = {
    "mask_selection_rate": "rate",
    "mask_selection_length": "max_predictions",
    "mask_token_rate": "mask_share",
    "random_token_rate": "random_share",
}
# Where labels' names stand in metadata.json, of which KerasHub has none.
_LABELS = "label_names"
_KINDS = {
    "embedding": [("embeddings", "/vars/0", None)],
    "norm": [("gamma", "/vars/0", None), ("beta", "/vars/1", None)],
    "dense": [("kernel", "/vars/0", None), ("bias", "/vars/1", None)],
    "split_into_heads": [
        ("kernel", "/vars/0", "merge_last"),
        ("bias", "/vars/1", "merge_last"),
    ],
    "bias": [("bias", "/vars/0", None)],
    "join_heads": [("kernel", "/vars/0", "merge_first"), ("bias", "/vars/1", None)],
}


class KerasHubFolder(Checkpoint):
    """An opened preset folder in KerasHub's layout."""

    kinds = _KINDS

    def __init__(self, folder, config, path, name):
        found = {name: record for record in records("KERAS_HUB") for name in record.names}
        class_name, arguments = read_serialized(path)
        check_choice(f"class_name` in KerasHub's `{path}", class_name, found)
        super().__init__(folder, arguments, path, name, found[class_name])
        self._family = self.record.names[class_name]
        self._task_class, self._task = _read(folder / _TASK)

    @staticmethod
    def recognizes(config):
        """Whether a parsed `config.json` is of this format."""
        package = str(config.get("registered_name") or "").partition(">")[0]
        module = str(config.get("module") or "").partition(".")[0]
        return bool({package, module} & {"keras_hub", "keras_nlp"})

    def _read_backbone(self, backbone):
        tensors = _H5Tensors(_model_files(self.folder))
        # Merging the axes of heads and width would hide other numbers of heads.
        for name, shape in tensors.shapes.items():
            is_query = name.endswith("query_dense/vars/0")
            if is_query and len(shape) == 3 and shape[1] != backbone.num_heads:
                raise ValueError(
                    f"The weights in {self.folder} are those of {shape[1]} heads: {name} has the "
                    f"shape {shape}. Received num_heads={backbone.num_heads}. Does config.json "
                    "belong to these weights?"
                )
        tables = self.record.tables
        return tensors if tables is None else tables.read(tensors, backbone)

    def _expanded(self, rows, **counts):
        names = super()._expanded(rows, **counts)
        return {path: (_canonical(name), transform) for path, (name, transform) in names.items()}

    def _read_head(self, task_class_name, names):
        path = self.folder / _TASK_WEIGHTS
        has_head = self._is_of(task_class_name) and path.is_file()
        tensors = _H5Tensors([path] if has_head else [])
        # Training leaves the optimizer's state there.
        return tensors.only(name for name in tensors if not name.startswith("optimizer/"))

    def _is_of(self, task_class_name):
        head = self.record.heads.get(task_class_name)
        names = () if head is None else head.architecture
        return self._task_class in [self._family + name for name in names]

    _has_head = _is_of

    def _num_classes(self, head):
        return self._task.get("num_classes")

    def _problem_type(self, head):
        activation = self._task.get("activation") or "linear"
        check_choice(f"activation` in `{self.folder / _TASK}", activation, _PROBLEM_TYPES)
        is_score = self._num_classes(head) == 1 and activation == "linear"
        return "regression" if is_score else _PROBLEM_TYPES[activation]

    def _dropout(self, head):
        return self._task.get(head.dropout)

    def _pooling(self, head):
        return self._task.get(head.pooling)

    def _normalize(self, head):
        return self._task.get("normalize")

    def _head_options(self, head):
        return dict(head.options)

    def _masking(self, head):
        saved = _read(self.folder / _PREPROCESSOR)[1]
        said = {ours: saved[theirs] for theirs, ours in _MASKING.items() if theirs in saved}
        return said or None

    def _label_names(self, head):
        path = self.folder / _METADATA
        names = read_json(path).get(_LABELS) if path.is_file() else None
        return names if type(names) is list and len(names) == self._num_classes(head) else None


def _read(path):
    """Returns the class and the arguments in a file, `(None, {})` where there is none."""
    return read_serialized(path) if path.is_file() else (None, {})


def _canonical(name):
    """Returns a path in a weights file without what differs between versions of Keras."""
    return _written("/".join(part.lstrip("_") for part in name.split("/")))


def _written(name):
    """Returns the path in a weights file: the first layer of a class has no number."""
    return name.replace("_0/", "/")


class _H5Tensors(Tensors):
    """The arrays of Keras weights files by their paths.

    Paths have no leading underscores and begin with `layers`, whatever version of Keras wrote them.
    """

    def __init__(self, files):
        super().__init__({}, {})
        for file in files:
            with _opened(file) as opened:
                # Visits what lies in the file itself: no link, within it or to another.
                opened.visititems(lambda name, item, file=file: self._note(file, name, item))

    def _note(self, file, name, item):
        if not isinstance(item, h5py.Dataset):
            return
        if item.is_virtual or item.external:
            raise ValueError(f"{file} takes {name!r} from another file, which is not allowed.")
        canonical = _canonical(name)
        # Before Keras 3 the first part was called otherwise.
        canonical = canonical.replace("layer_checkpoint_dependencies/", "layers/", 1)
        if canonical in self._places:
            raise ValueError(
                f"The weights hold {canonical!r} twice: in {self._places[canonical][0].name} and "
                f"in {file.name}. Download or save the preset again."
            )
        self._places[canonical] = (file, name)
        self.shapes[canonical] = item.shape or ()

    def read(self, name, place):
        file, path = place
        with _opened(file) as opened:
            array = np.asarray(opened[path][()])
            if array.dtype.itemsize == 2 and opened[path].attrs.get("dtype") == "bfloat16":
                array = array.view(ml_dtypes.bfloat16)
        return array.astype(np.float32) if array.dtype == ml_dtypes.bfloat16 else array


@contextlib.contextmanager
def _opened(file):
    try:
        with h5py.File(file) as opened:
            yield opened
    except (OSError, RuntimeError, KeyError) as error:
        raise ValueError(
            f"{file} with {file.stat().st_size} bytes is damaged or no HDF5 file ({error}). "
            "Download or save the preset again."
        ) from error


def _model_files(folder):
    """Returns the paths of the files with the backbone's weights, all of which exist."""
    path, index = folder / _WEIGHTS, folder / _INDEX
    if path.is_file():
        return [path]
    if not index.is_file():
        raise FileNotFoundError(f"The preset folder {folder} lacks model.weights.h5.")
    weight_map = read_json(index).get("weight_map")
    shards = set()
    for value in weight_map.values() if isinstance(weight_map, dict) else ():
        shards.update(value if isinstance(value, list) else [value])
    for shard in shards:
        # A hostile index must not make us read outside the folder, on any system.
        is_name = isinstance(shard, str) and shard == pathlib.PureWindowsPath(shard).name
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


def to_keras_hub(model):
    """Returns a live model of KerasHub's, see `export_to_keras_hub`.

    Raises:
        ImportError: KerasHub is not installed.
    """
    try:
        import keras_hub
    except ImportError as error:
        raise ImportError(
            "`to_keras_hub` needs KerasHub, `export_to_keras_hub` does not. Install the extra: "
            "pip install 'bert_keras[nlp]'."
        ) from error
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        # A preset here has no state of an optimizer, which KerasHub's files have and Keras misses.
        warnings.filterwarnings("ignore", "Skipping variable loading for optimizer")
        class_name = export_to_keras_hub(model, folder)
        return getattr(keras_hub.models, class_name).from_preset(folder)


def export_to_keras_hub(model, folder, card=None):
    """Writes a preset that `keras_hub.models....from_preset` loads, its adapters merged.

    Args:
        model: a backbone or a task of a family that has a record of this format.
        folder: str or path, made when missing. All files are replaced, or on an error none.
        card: dict, see `presets.card`, or `None`.

    Returns:
        The name of the model's class there.

    Raises:
        ValueError: KerasHub has no such model that gives the same numbers.
    """
    model = model.without_adapters()
    backbone = getattr(model, "backbone", model)
    task = None if backbone is model else model
    record = record_of(backbone, "KERAS_HUB")
    if record is None:
        known = [found.backbone for found in records("KERAS_HUB")]
        raise ValueError(f"{_THERE} has these families: {known}. Received: {type(model).__name__}.")
    tokenizer = None if task is None or task.preprocessor is None else task.preprocessor.tokenizer
    family, kind, files = _family(record, tokenizer), None, {}
    config = {"dtype": keras.dtype_policies.serialize(backbone.dtype_policy)}
    config |= written_config(record, backbone, _THERE)
    if config.get("num_segments", 2) < 2:
        raise ValueError(
            f"{_THERE} needs num_segments of 2 or more. Received: {config['num_segments']}."
        )
    configs = {"config.json": _serialized(f"{family}Backbone", config)}
    weights = {_WEIGHTS: _backbone_tensors(record, backbone, task)}
    if task is not None:
        kind = kind_of(task, record.heads)
        if kind not in record.heads:
            refuse(type(task).__name__, sorted(record.heads), _THERE)
        head = record.heads[kind]
        check_head(task, head, _THERE)
        weights[_TASK_WEIGHTS] = _tensors(own_weights(task), expand(head.rows, _KINDS), backbone)
        said = _said(task, head)
        ending = head.architecture[0]
        said["backbone"], said["preprocessor"] = configs["config.json"], None
        if tokenizer is not None:
            settings, files = tokenizer_to_keras_hub(tokenizer)
            configs["tokenizer.json"] = _serialized(f"{family}Tokenizer", settings)
            packing = {"tokenizer": configs["tokenizer.json"], **_packing(task, head)}
            configs[_PREPROCESSOR] = _serialized(f"{family}{ending}Preprocessor", packing)
            said["preprocessor"] = configs[_PREPROCESSOR]
        configs[_TASK] = _serialized(family + ending, said)
    metadata = {
        "keras_version": keras.version(),
        "parameter_count": backbone.count_params(),
        "tasks": [head.architecture[0] for head in record.heads.values()],
        _LABELS: getattr(task, "label_names", None),
    }
    configs[_METADATA] = metadata
    class_name = f"{family}{'Backbone' if kind is None else ending}"
    code = f'import keras_hub\n\nmodel = keras_hub.models.{class_name}.from_preset(".")'
    readme = card_of(model, folder, card, "keras-hub", code)
    shards = [path.name for path in pathlib.Path(folder).glob("model_*.weights.h5")]
    stale = (*_FILES, *shards, *weights_files(folder), *TOKENIZER_FILES)
    with replacing_files(folder, stale=stale) as new:
        for name, tensors in weights.items():
            if tensors:
                (new / name).write_bytes(_hdf5(tensors))
        for name, data in files.items():
            (new / ASSETS).mkdir(parents=True, exist_ok=True)
            (new / ASSETS / name).write_bytes(data)
        for name, value in configs.items():
            write_json(new / name, value)
        if readme is not None:
            write_text(new / README, readme)
    return class_name


def _family(record, tokenizer):
    """Returns what the names of classes there begin with: for a tokenizer, those that have it."""
    families = list(record.names.values())
    if tokenizer is None:
        return families[0]
    kind = tokenizer.settings["model"]["type"]
    if known := [family for family in families if record.tokenizers[family] == kind]:
        return known[0]
    raise ValueError(
        f"{_THERE}'s {' and '.join(families)} have tokenizers of the type "
        f"{' and '.join(record.tokenizers.values())}. Received: {kind}. Set the task's "
        "`preprocessor` to None to export it for ready inputs."
    )


def _serialized(class_name, config):
    return {
        "module": "keras_hub.models",
        "class_name": class_name,
        "config": config,
        "registered_name": f"keras_hub>{class_name}",
    }


def _backbone_tensors(record, backbone, task):
    counts = {key: getattr(backbone, name) for key, name in record.counts.items()}
    names, variables = expand(record.rows, _KINDS, **counts), by_path(backbone.weights)
    left_out = [p for p in variables if p not in names and p.startswith(record.optional)]
    if left_out and (task is None or task.reads_pooled_output):
        warn(f"{_THERE} has no place for {left_out}, which are left out: it has no pooler here.")
    kept = {path: variable for path, variable in variables.items() if path not in left_out}
    tensors = _tensors(kept, names, backbone)
    return tensors if record.tables is None else record.tables.write(tensors, backbone)


def _tensors(variables, names, backbone):
    """Returns the arrays of variables as they are there, by their paths in a weights file."""
    if without_place := [path for path in variables if path not in names]:
        raise ValueError(
            f"{_THERE} has no place for these weights: {without_place}. Without them the model "
            "would answer otherwise. Use `save_to_preset`."
        )
    tensors = {}
    for path, variable in variables.items():
        name, transform = names[path]
        array = keras.ops.convert_to_numpy(variable.value)
        # HDF5 has no bfloat16.
        array = array.astype("float32") if array.dtype == ml_dtypes.bfloat16 else array
        tensors[_written(name)] = transformed_back(array, transform, backbone.num_heads)
    return tensors


def _said(task, head):
    """Returns the arguments of the task there."""
    config, said = task.get_config(), {}
    if "num_classes" in head.says:
        said["num_classes"] = config["num_classes"]
        if config["problem_type"] == "regression" and config["num_classes"] > 1:
            raise ValueError(
                f"A regression gives one score in {_THERE}. Received: num_classes="
                f"{config['num_classes']}, which there are classes. Export the backbone instead."
            )
        is_multi_label = config["problem_type"] == "multi_label"
        said["activation"] = "sigmoid" if is_multi_label else "linear"
    for name, key in (("dropout", head.dropout), ("pooling", head.pooling), ("normalize",) * 2):
        if name in head.says:
            said[key] = config[name]
    if "pooling" in head.says:
        check_choice("pooling", config["pooling"], ("cls", "max", "mean"), f"{_THERE} has these.")
    return said


def _packing(task, head):
    """Returns the arguments of the preprocessor there."""
    preprocessor = task.preprocessor
    advice = f"{_THERE} cuts texts in no other way that we have."
    check_choice("truncation", preprocessor.truncation, ("longest_first",), advice)
    said = {"sequence_length": preprocessor.max_length, "truncate": "round_robin"}
    if "masking" in head.says:
        masking = task.masking
        advice = f"{_THERE} masks pieces. Train with that, or export the backbone."
        check_choice("strategy", masking.strategy, ("pieces",), advice)
        said |= {theirs: getattr(masking, ours) for theirs, ours in _MASKING.items()}
        said["mask_selection_length"] = masking.num_predictions(preprocessor.max_length)
    return said


def _hdf5(tensors):
    """Returns the bytes of a weights file, made in memory: on a full disk HDF5 ends the process."""
    buffer = io.BytesIO()
    with h5py.File(buffer, "w") as file:
        for name, array in tensors.items():
            file[name] = array
    return buffer.getbuffer()
