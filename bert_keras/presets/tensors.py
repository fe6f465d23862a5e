"""The tensors of a checkpoint of any format, by name. Each is read on access."""

import math
import pathlib
from collections.abc import Mapping

import ml_dtypes
import numpy as np

from bert_keras.engine.atomic_files import read_json, requiring

# What the index of a sharded checkpoint must do.
_INDEX = 'be like {"weight_map": {tensor name: file name of a shard in the same folder}}'


class Tensors(Mapping):
    """A read-only mapping from tensor name to NumPy array.

    Each access reads one tensor into a new array, so that memory never holds a whole checkpoint
    beside the model. bfloat16 becomes float32, which holds each of its values exactly.

    Args:
        stored: dict, tensor name -> its shape, and a function that reads its array.
        most: int, the number of stored values, if several tensors share some.

    Attributes:
        stored: the same dict.
        shapes: dict, tensor name -> shape; using it reads no tensor.
        num_values: int, the number of values in all tensors, at most `most`.
    """

    def __init__(self, stored, most=math.inf):
        self.stored, self.shapes = stored, {name: shape for name, (shape, _) in stored.items()}
        self.num_values = min(sum(map(math.prod, self.shapes.values())), most)

    def renamed(self, names):
        """Returns tensors with new names, given as a dict from new to old name."""
        return Tensors({name: self.stored[old] for name, old in names.items()}, self.num_values)

    def only(self, names):
        """Returns only the tensors with these names. Names that do not exist are skipped."""
        return self.renamed({name: name for name in names if name in self.stored})

    def without(self, names):
        """Returns all tensors but those with these names."""
        return self.renamed({name: name for name in self.stored if name not in names})

    def updated(self, arrays):
        """Returns these tensors with a dict of arrays added; an array replaces its namesake."""
        added = {name: (array.shape, lambda x=array: x) for name, array in arrays.items()}
        return Tensors(self.stored | added)

    def __getitem__(self, name):
        array = self.stored[name][1]()
        return array.astype(np.float32) if array.dtype == ml_dtypes.bfloat16 else array

    def __contains__(self, name):
        return name in self.stored  # `Mapping.__contains__` would read the tensor.

    def __iter__(self):
        return iter(self.stored)

    def __len__(self):
        return len(self.stored)


def read_tensors(source, name, read_file):
    """Returns the tensors of a file, or of all shards that an index lists.

    Args:
        source: str or path of a file, of an index, or of a folder that holds either; if a folder
            has both, the file is read.
        name: str, the name of the file in a folder. That of an index adds `.index.json`.
        read_file: function from a file's path to its `Tensors`.

    Raises:
        FileNotFoundError: there is no such file, neither of them in the folder, or no such shard.
        ValueError: the index is damaged, names a shard outside the folder, or a tensor that its
            shard does not hold.
    """
    source = pathlib.Path(source)
    files = [x for x in (source, source / name, source / f"{name}.index.json") if x.is_file()]
    if not files:
        raise FileNotFoundError(
            f"A checkpoint must be a file, or a folder that holds {name} or {name}.index.json. "
            f"Received: {str(source)!r}, which "
            + ("holds neither." if source.is_dir() else "does not exist.")
        )
    if not files[0].name.endswith(".index.json"):
        return read_file(files[0])
    index = _read_index(files[0])
    shards = {shard: read_file(files[0].parent / shard) for shard in sorted({*index.values()})}
    for name, shard in index.items():
        if name not in shards[shard]:
            raise ValueError(
                f"Each shard of a checkpoint must hold the tensors that its index names. Received: "
                f"{files[0]}, which expects {name!r} in {shard}, where it is not. The files do not "
                "belong together: download all of them again."
            )
    # Where shards share a name, the index decides. Tensors that the index does not list are read
    # too, so that nothing in the checkpoint is ignored.
    stored = {name: found for tensors in shards.values() for name, found in tensors.stored.items()}
    stored |= {name: shards[shard].stored[name] for name, shard in index.items()}
    return Tensors(stored, sum(tensors.num_values for tensors in shards.values()))


def _read_index(path):
    """Returns the shard's file name for each tensor of a sharded checkpoint."""
    with requiring(path, _INDEX):
        index = read_json(path)["weight_map"]
        "".join((*index, *index.values()))  # Raises TypeError unless all are str.
    # "model.safetensors.index.json" is the index of files that end with ".safetensors".
    ending = pathlib.PurePath(path.name.removesuffix(".index.json")).suffix
    for shard in index.values():
        # A hostile index must not make us read outside the folder, on any system.
        if shard != pathlib.PureWindowsPath(shard).name or not shard.endswith(ending):
            raise ValueError(
                f"{path} must {_INDEX}. It names the shard {shard!r}. Do not use this checkpoint "
                "unless you trust its origin."
            )
    return index
