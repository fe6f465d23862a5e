"""The tensors of a checkpoint of any format, by name. Each is read on access."""

import math
import pathlib
from collections.abc import Mapping

import ml_dtypes
import numpy as np

from bert_keras.engine.atomic_files import advice_for, read_json


class Tensors(Mapping):
    """A read-only mapping from tensor name to NumPy array. Subclasses define `read`.

    Each access reads one tensor into a new array, so that memory never holds a whole checkpoint
    beside the model. bfloat16 becomes float32, which holds each of its values exactly.

    Args:
        places: dict, tensor name -> where the tensor is stored, in the form that `read` takes.
        shapes: dict, tensor name -> shape.

    Attributes:
        shapes: the same dict; using it reads no tensor.
    """

    def __init__(self, places, shapes):
        self._places, self.shapes = places, shapes

    def read(self, name, place):
        """Returns the tensor as an array."""
        raise NotImplementedError(f"{type(self).__name__} must define `read`.")

    @property
    def num_values(self):
        """The number of values in all tensors. Values that several tensors share count once."""
        return sum(map(math.prod, self.shapes.values()))

    def renamed(self, names):
        """Returns tensors with new names, given as a dict from new to old name."""
        return _Renamed(self, names)

    def only(self, names):
        """Returns only the tensors with the given names. Names that do not exist are skipped."""
        return self.renamed({name: name for name in names if name in self})

    def updated(self, arrays):
        """Returns these tensors with a dict of arrays added; an array replaces its namesake."""
        return _Updated(self, arrays)

    def __getitem__(self, name):
        array = self.read(name, self._places[name])
        return array.astype(np.float32) if array.dtype == ml_dtypes.bfloat16 else array

    def __contains__(self, name):
        return name in self._places  # `Mapping.__contains__` would read the tensor.

    def __iter__(self):
        return iter(self._places)

    def __len__(self):
        return len(self._places)


class _Renamed(Tensors):
    """The tensors of another mapping under new names."""

    def __init__(self, source, names):
        super().__init__(names, {name: source.shapes[place] for name, place in names.items()})
        self._source = source

    def read(self, name, place):
        return self._source[place]

    @property
    def num_values(self):
        return min(super().num_values, self._source.num_values)


class _Updated(Tensors):
    """The tensors of another mapping, with arrays added or in their place."""

    def __init__(self, source, arrays):
        shapes = {name: array.shape for name, array in arrays.items()}
        super().__init__(dict.fromkeys([*source, *arrays]), {**source.shapes, **shapes})
        self._source, self._arrays = source, arrays

    def read(self, name, place):
        return self._arrays[name] if name in self._arrays else self._source[name]


def locate(source, names, kind):
    """Returns the path of a checkpoint's file or index.

    Args:
        source: `Path` of a file or a folder.
        names: names of the file and of the index; if a folder has both, the file is returned.
        kind: str, the format, for the message.

    Raises:
        FileNotFoundError: there is no such file, or neither of them in the folder.
    """
    if source.is_file():
        return source
    for name in names:
        if (source / name).is_file():
            return source / name
    raise FileNotFoundError(
        f"A {kind} checkpoint must be a file, or a folder that holds {' or '.join(names)}. "
        f"Received: {str(source)!r}, which "
        + ("holds neither." if source.is_dir() else "does not exist.")
    )


def read_headers(path, read_header):
    """Returns the place and the shape of every tensor in a file, or in all shards of an index.

    Args:
        path: `Path` of a file or of an index, whose name ends with `.index.json`.
        read_header: function of a file's path. It returns a dict, tensor name -> place; a dict,
            tensor name -> shape; and a third value of any kind that concerns the whole file.

    Returns:
        The two dicts for all tensors, and a list of the third values, one per file.

    Raises:
        ValueError: the index is damaged, names a shard that is missing or outside the folder, or a
            tensor that its shard does not hold.
    """
    if not path.name.endswith(".index.json"):
        places, shapes, file_value = read_header(path)
        return places, shapes, [file_value]
    tensor_to_shard = _read_index(path)
    places, shapes, file_values = {}, {}, []
    for shard in sorted(set(tensor_to_shard.values())):
        shard_places, shard_shapes, file_value = read_header(path.parent / shard)
        for name, place in shard_places.items():
            # Where shards share a name, the index decides. Tensors that the index does not list
            # are read too, so that nothing in the checkpoint is ignored.
            if tensor_to_shard.setdefault(name, shard) == shard:
                places[name], shapes[name] = place, shard_shapes[name]
        file_values.append(file_value)
    for name, shard in tensor_to_shard.items():
        if name not in shapes:
            raise ValueError(
                f"Each shard of a checkpoint must hold the tensors that its index names. Received: "
                f"{path}, which expects {name!r} in {shard}, where it is not. The files do not "
                "belong together: download all of them again."
            )
    return places, shapes, file_values


def _read_index(path):
    """Returns the shard's file name for each tensor of a sharded checkpoint."""
    rule = (
        'The index of a sharded checkpoint must be JSON like {"weight_map": {tensor name: file '
        f"name of a shard in the same folder}}}}. Received: {path}, "
    )
    try:
        tensor_to_shard = read_json(path)["weight_map"]
        shards = sorted(set(tensor_to_shard.values()))
        "".join((*tensor_to_shard, *shards))  # Raises TypeError unless all are str.
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{rule}which is not. {advice_for(path)}") from error
    if not shards:
        raise ValueError(f"{rule}which is empty. It is damaged: download it again.")
    # "model.safetensors.index.json" is the index of files that end with ".safetensors".
    ending = pathlib.PurePath(path.name.removesuffix(".index.json")).suffix
    for shard in shards:
        # A hostile index must not make us read outside the folder, on any system.
        if shard != pathlib.PureWindowsPath(shard).name or not shard.endswith(ending):
            raise ValueError(
                f"{rule}which names the shard {shard!r}. Do not use this checkpoint unless you "
                "trust its origin."
            )
        if not (path.parent / shard).is_file():
            raise ValueError(
                f"Each shard that an index names must exist. Received: {path}, which names "
                f"{shard!r}. The download is incomplete: download it again."
            )
    return tensor_to_shard
