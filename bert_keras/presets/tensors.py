"""The tensors of a checkpoint by name, whatever its format, each read when it is asked for."""

from collections.abc import Mapping

GIT_LFS = b"version https://git-lfs"


class Tensors(Mapping):
    """A read-only mapping from tensor name to NumPy array. A subclass reads.

    Each access reads the tensor into a new array and keeps no copy, so that a checkpoint is never
    in memory twice.

    Args:
        places: dict, tensor name -> where it is, for `read`.
        shapes: dict, tensor name -> shape.

    Attributes:
        shapes: the same, known without reading.
    """

    def __init__(self, places, shapes):
        self._places, self.shapes = places, shapes

    def read(self, name, place):
        """Returns the tensor as an array."""
        raise NotImplementedError(f"{type(self).__name__} must define `read`.")

    @property
    def root(self):
        """All tensors of the files, under the names there."""
        return self

    def original_name(self, name):
        """Returns what a tensor is called in the files."""
        return name

    def renamed(self, names):
        """Returns some of the tensors under other names, of a dict, name there -> name here."""
        return _Renamed(self, names)

    def only(self, names):
        """Returns those tensors of `names` that are here."""
        return self.renamed({name: name for name in names if name in self})

    def updated(self, arrays):
        """Returns the tensors with those of a dict of arrays added, or in their places."""
        return _Updated(self, arrays)

    def __getitem__(self, name):
        return self.read(name, self._places[name])

    def __contains__(self, name):
        return name in self._places  # Mapping's own would read the tensor to find out.

    def __iter__(self):
        return iter(self._places)

    def __len__(self):
        return len(self._places)


class _Renamed(Tensors):
    """Tensors of another mapping: their places are their names there."""

    def __init__(self, source, names):
        super().__init__(names, {name: source.shapes[place] for name, place in names.items()})
        self._source = source

    def read(self, name, place):
        return self._source[place]

    @property
    def root(self):
        return self._source.root

    def original_name(self, name):
        return self._source.original_name(self._places[name])


class _Updated(Tensors):
    """Tensors of another mapping, some of which are given."""

    def __init__(self, source, arrays):
        shapes = {name: array.shape for name, array in arrays.items()}
        super().__init__(dict.fromkeys([*source, *arrays]), {**source.shapes, **shapes})
        self._source, self._arrays = source, arrays

    def read(self, name, place):
        return self._arrays[name] if name in self._arrays else self._source[name]


def way_out(path):
    """Returns advice for a file that is damaged or of the wrong kind."""
    with open(path, "rb") as file:
        start = file.read(len(GIT_LFS))
    if start == GIT_LFS:
        return "It is a Git LFS pointer, not the file: run `git lfs pull` in its repository."
    return "If it is damaged or was not copied to its end, download it again."
