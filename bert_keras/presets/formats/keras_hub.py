"""KerasHub's preset folder (formerly KerasNLP's), read and written without KerasHub.

| file | what it holds |
|---|---|
| `config.json` | the backbone's class and constructor arguments, as Keras serialized them |
| `model.weights.h5` | its weights |
| `task.json`, `task.weights.h5` | for a task: its class and arguments, the weights of its head |
| `tokenizer.json`, `preprocessor.json`, `assets/tokenizer/vocabulary.txt` | the tokenizer |

A weight's name is its path in an HDF5 file, made from the classes of the layers; the first layer of
a class has no number. Leading underscores, which depend on Keras's version, are ignored. Queries,
keys and values have two axes, heads and width of a head, where we have one. The precision of a
saved preset is not used: pass `dtype`.

Reference: https://keras.io/keras_hub/api/base_classes/backbone/.
"""

import functools
import os

import h5py
import ml_dtypes
import numpy as np

from bert_keras.checks import check_choice, check_exists, check_type
from bert_keras.engine.atomic_files import read_json, reading
from bert_keras.presets.families import RECORDS
from bert_keras.presets.formats.checkpoint import Checkpoint
from bert_keras.presets.tensors import Tensors
from bert_keras.tokenizers.keras_hub_settings import read_serialized

TASK, METADATA, PREPROCESSOR = "task.json", "metadata.json", "preprocessor.json"
WEIGHTS, TASK_WEIGHTS = "model.weights.h5", "task.weights.h5"
FILES = (TASK, METADATA, PREPROCESSOR, WEIGHTS, TASK_WEIGHTS)
# A classifier's activation -> our `problem_type`. We apply it to the logits in `probabilities`.
_PROBLEM_TYPES = {"linear": "single_label", "softmax": "single_label", "sigmoid": "multi_label"}
# KerasHub's settings for masking -> ours.
MASKING = {
    "mask_selection_rate": "rate",
    "mask_selection_length": "max_predictions",
    "mask_token_rate": "mask_share",
    "random_token_rate": "random_share",
}
# Our key for the labels' names in metadata.json. KerasHub has none.
LABELS = "label_names"
# Class of a backbone -> the family's record.
_RECORDS = {name: record for record in RECORDS["KERAS_HUB"] for name in record.names}
KINDS = {
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

    kinds = KINDS

    def __init__(self, folder, config, path, name):
        class_name, arguments = read_serialized(path)
        check_choice(f"class_name` in KerasHub's `{path}", class_name, _RECORDS)
        super().__init__(folder, arguments, path, name, _RECORDS[class_name])
        self._family = self.record.names[class_name]
        self._task_class, self._task = _class_and_arguments(folder / TASK)

    @functools.cached_property
    def tensors(self):
        """The tensors of the backbone."""
        return _read_h5(self.folder / WEIGHTS)

    def load_backbone_weights(self, backbone, task=None):
        # Check the number of heads now: the merged axis will not show it any more.
        for name, shape in self.tensors.shapes.items():
            if name.endswith("query_dense/vars/0") and len(shape) == 3:
                advice = f"{name} has the shape {shape}. Does the config belong to these weights?"
                where = f"num_heads` in `{self.path}"
                check_choice(where, backbone.num_heads, shape[1:2], advice)
        super().load_backbone_weights(backbone, task)

    def _expanded(self, rows, backbone=None):
        names = super()._expanded(rows, backbone)
        return {path: (_canonical(name), how) for path, (name, how) in names.items()}

    def _head_of(self, task):
        found = super()._head_of(task)
        return found._replace(is_whole=found.kind in self.saved_tasks)

    def _tensors_of_head(self, kind, names):
        path = self.folder / TASK_WEIGHTS
        if not (kind in self.saved_tasks and path.is_file()):
            return self.tensors.only(())
        tensors = _read_h5(path)
        # Once the task was compiled, the file also has the optimizer's state.
        return tensors.only(name for name in tensors if not name.startswith("optimizer/"))

    @functools.cached_property
    def saved_tasks(self):
        """Class names of our tasks whose class in KerasHub was saved."""
        return [
            task
            for task, head in self.record.heads.items()
            if self._task_class in [self._family + ending for ending in head.architecture]
        ]

    def _arguments_of_head(self, found, names):
        saved, head, path = self._task, found.head, self.folder / METADATA
        activation, num_classes = saved.get("activation") or "linear", saved.get("num_classes")
        check_choice(f"activation` in `{self.folder / TASK}", activation, _PROBLEM_TYPES)
        is_score = num_classes == 1 and activation == "linear"
        packing = _class_and_arguments(self.folder / PREPROCESSOR)[1]
        masking = {ours: packing[theirs] for theirs, ours in MASKING.items() if theirs in packing}
        labels = (read_json(path).get(LABELS) if path.is_file() else None) or []
        check_type(f"{LABELS}` in `{path}", labels, list, "a list of names")
        return {
            "num_classes": num_classes,
            "problem_type": "regression" if is_score else _PROBLEM_TYPES[activation],
            "activation": saved.get("activation"),
            "dropout": saved.get(head.dropout),
            "pooling": saved.get(head.pooling),
            "normalize": saved.get("normalize"),
            "head_options": dict(head.options),
            "masking": masking or None,
            "label_names": labels if len(labels) == num_classes else None,
        }


def _class_and_arguments(path):
    """Returns the class and the arguments in a file, or `(None, {})` if it does not exist."""
    return read_serialized(path) if path.is_file() else (None, {})


def _canonical(name):
    """Returns a path in a weights file that is the same for all versions of Keras."""
    return without_first("/".join(part.lstrip("_") for part in name.split("/")))


def without_first(name):
    """Returns a path without each number 0: the first layer of a class has no number."""
    return name.replace("_0/", "/")


def _read_h5(file):
    """Returns the arrays of a Keras weights file by path.

    Whatever Keras's version, paths begin with `layers` and have no leading underscores.
    """
    check_exists(file, "A preset folder must hold its weights file", exists=os.path.isfile)
    stored = {}

    def add(name, item):
        if not isinstance(item, h5py.Dataset):
            return
        if item.is_virtual or item.external:
            raise ValueError(f"{file} takes {name!r} from another file, which is not allowed.")
        if item.nbytes > file.stat().st_size:  # Values that are not stored would be read as 0.
            raise ValueError(f"{file} does not have all values of {name!r}, {item.shape}.")
        # Before Keras 3 the first part had another name.
        path = _canonical(name).replace("layer_checkpoint_dependencies/", "layers/", 1)
        if path in stored:
            rule = f"{file} must hold each weight once. Received: two of {path!r}"
            raise ValueError(f"{rule}. Download or save the preset again.")
        stored[path] = item.shape or (), functools.partial(read, name)

    def read(name):
        with reading(file), h5py.File(file) as opened:
            item = opened[name]
            array, dtype = np.asarray(item[()]), item.attrs.get("dtype")
        is_bfloat16 = array.dtype.itemsize == 2 and dtype == "bfloat16"
        return array.view(ml_dtypes.bfloat16) if is_bfloat16 else array

    with reading(file), h5py.File(file) as opened:
        # `visititems` does not follow links, neither within the file nor to other files.
        opened.visititems(add)
    return Tensors(stored)
