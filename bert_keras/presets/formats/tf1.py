"""Google's TensorFlow 1 checkpoint folder of BERT or ALBERT, read by TensorFlow.

| file | what it holds |
|---|---|
| `bert_config.json`, `albert_config.json` | the architecture |
| `bert_model.ckpt.index` | names, shapes and places of the tensors |
| `bert_model.ckpt.data-00000-of-00001` | the tensors; there may be several such files |
| `vocab.txt` | the vocabulary; texts are lowercased if it has no upper-case letters |

References: https://github.com/google-research/bert, https://github.com/google-research/albert.
"""

import functools
import glob
import math
import os
import pathlib

import numpy as np

from bert_keras.checks import check_exists, require
from bert_keras.engine.atomic_files import advice_for, reading
from bert_keras.presets.families import RECORDS
from bert_keras.presets.formats.checkpoint import Checkpoint
from bert_keras.presets.tensors import Tensors

_INCOMPLETE = "The download is incomplete: download it again."
_SCOPE = "bert/"
# Kernels have our layout, `(input, output)`, except in heads that Google's scripts write by hand.
KINDS = {
    "embedding": [("embeddings", "", None)],
    "norm": [("gamma", "/gamma", None), ("beta", "/beta", None)],
    "dense": [("kernel", "/kernel", None), ("bias", "/bias", None)],
    "by_hand": [("kernel", "_weights", "transpose"), ("bias", "_bias", None)],
    "bias": [("bias", "/output_bias", None)],
}


class Tf1Folder(Checkpoint):
    """An opened checkpoint folder in the layout of google-research/bert."""

    kinds = KINDS

    def __init__(self, folder, config, path, name):
        # No key names the family: it is that which has most of the config's keys.
        record = max(RECORDS["TF1"], key=lambda record: len(record.config.keys() & config.keys()))
        super().__init__(folder, config, path, name, record)

    @functools.cached_property
    def tensors(self):
        """The tensors of the checkpoint without those that only training needs."""
        tensors = read_tf_checkpoint(_prefix_of_checkpoint(self.folder))
        # Counters and scales have no axes. Averages of a weight, and what optimizers keep for it,
        # are named after it.
        shapes = tensors.shapes.items()
        names = {name: name for name, x in shapes if x and name.rpartition("/")[0] not in tensors}
        if not any(name.startswith(_SCOPE) for name in names):
            # Scripts that call `BertModel` within a scope of their own omit the scope `bert/`.
            parts = {theirs.split("/")[1] for _, theirs, *_ in self.record.rows}
            names = {_SCOPE + name if name.split("/")[0] in parts else name: name for name in names}
        return tensors.renamed(names)


def _prefix_of_checkpoint(folder):
    """Returns the path of the checkpoint without the endings of its files."""
    names = sorted(path.name.removesuffix(".index") for path in folder.glob("*.index"))
    if len(names) != 1:
        raise ValueError(
            f"A folder must hold one TensorFlow checkpoint. Received: {folder}, which holds "
            f"{names}. Move the others away."
        )
    return folder / names[0]


def read_tf_checkpoint(prefix: str | os.PathLike) -> Tensors:
    """Opens a TensorFlow checkpoint as a read-only mapping from tensor name to NumPy array.

    Args:
        prefix: the path without the endings: `folder/bert_model.ckpt` for `bert_model.ckpt.index`
            and `bert_model.ckpt.data-00000-of-00001`.

    Returns:
        `Tensors`, each verified on access. Arrays have the dtype of the file, except that bfloat16
        becomes float32, which holds each of its values exactly.

    Raises:
        ImportError: TensorFlow is not installed.
        FileNotFoundError: there is no index.
        ValueError: the index is damaged, the data files are missing or smaller than the tensors, or
            the path has brackets, which TensorFlow reads as a pattern.

    Example:

    ```python
    checkpoint = read_tf_checkpoint("uncased_L-2_H-128_A-2/bert_model.ckpt")
    checkpoint.shapes["bert/pooler/dense/kernel"]  # (128, 128), nothing read yet
    kernel = checkpoint["bert/pooler/dense/kernel"]  # float32 array
    ```
    """
    prefix = pathlib.Path(prefix)
    advice = "Or load a folder with `model.safetensors`, which needs no TensorFlow."
    tensorflow = require("tensorflow", f"read {prefix}", advice=advice)
    index = prefix.with_name(f"{prefix.name}.index")
    check_exists(index, "A TensorFlow checkpoint must have an index", exists=os.path.isfile)
    files = sorted(prefix.parent.glob(f"{glob.escape(prefix.name)}.data-*"))
    for path in files:  # TensorFlow would wait for ever for a pipe.
        check_exists(path, "A checkpoint's data must be an ordinary file", exists=os.path.isfile)
    # TensorFlow reads such a path as a pattern.
    pattern = "" if glob.escape(str(prefix)) == str(prefix) else " Its path must have no brackets."
    with reading(index, f"{advice_for(index)}{pattern}"):
        # `tensorflow.train.load_checkpoint` would follow a file `checkpoint` to anywhere.
        reader = tensorflow.compat.v1.train.NewCheckpointReader(str(prefix))
        dtypes = reader.get_variable_to_dtype_map()
        shapes = {k: tuple(shape) for k, shape in reader.get_variable_to_shape_map().items()}
    needed = sum(math.prod(shape) * dtypes[name].size for name, shape in shapes.items())
    size = sum(path.stat().st_size for path in files)
    if needed > size:
        found = ", ".join(path.name for path in files) or f"no {prefix.name}.data-00000-of-00001"
        raise ValueError(
            f"A TensorFlow checkpoint must have all its data files. Received: {index} with tensors "
            f"of {needed} bytes. Found: {found}, {size} bytes. {_INCOMPLETE}"
        )

    def read(name):
        with reading(prefix, _INCOMPLETE):
            return np.asarray(reader.get_tensor(name))

    return Tensors({k: (x, functools.partial(read, k)) for k, x in shapes.items()})
