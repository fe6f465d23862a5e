"""The tensors of a checkpoint of any format, by name. Each is read on access."""

import math
from collections.abc import Mapping

import ml_dtypes
import numpy as np

GIT_LFS = b"version https://git-lfs"


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


def advice_for(path):
    """Returns what to do about a damaged file."""
    with open(path, "rb") as file:
        start = file.read(len(GIT_LFS))
    if start == GIT_LFS:
        return "It is a Git LFS pointer, not the file: run `git lfs pull` in its repository."
    return "If it is damaged or incomplete, download it again."
