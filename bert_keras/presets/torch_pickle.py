"""Reads the tensors in PyTorch's weights files, `pytorch_model.bin`, and runs nothing in them.

`torch.save` writes the raw bytes of the tensors and a pickle: a program that builds objects by
calling the functions it names. Python's own `pickle` calls whatever is named. The interpreter here
knows only the operations that a dict of tensors needs, and calls only functions in this file; it
refuses a pickle that names any other. No tensor reaches beyond its own bytes in the file.

There are two formats. Since PyTorch 1.6 the file is a zip archive with the pickle and one
uncompressed member per storage. Before, it was five pickles: the fourth is the dict, and the last
lists the storages, whose bytes follow. A storage is a flat run of numbers; a tensor is a view of
one, given by offset, shape and strides.

Reference: https://docs.pytorch.org/docs/stable/notes/serialization.html.
"""

import math
import mmap
import os
import pathlib
import struct
import zipfile
from typing import NamedTuple

import ml_dtypes
import numpy as np

from bert_keras.engine.atomic_files import reading
from bert_keras.presets.tensors import Tensors, advice_for, locate, read_headers
from bert_keras.tokenizers.protocol_buffers import DamagedError, check_whole

WEIGHTS_FILE = "pytorch_model.bin"
INDEX_FILE = "pytorch_model.bin.index.json"
CONVERT = (
    "If you trust its origin, convert it once with `transformers` in an isolated environment, and "
    "load the new folder: `AutoModelForPreTraining.from_pretrained(old).save_pretrained(new)`, or "
    "the class of its task. `transformers` before 5 also needs `safe_serialization=True`."
)

# BERT-large with all heads takes 20,000.
_MOST_OPERATIONS = 2**21
_MOST_AXES = 32
_MAGIC = 0x1950A86A20F9469CFC6C
_DTYPES = {
    "Double": "<f8",
    "Float": "<f4",
    "Half": "<f2",
    "BFloat16": ml_dtypes.bfloat16,
    "Long": "<i8",
    "Int": "<i4",
    "Short": "<i2",
    "Char": "i1",
    "Byte": "u1",
    "Bool": "?",
}


class _Storage(NamedTuple):
    """A flat run of numbers in the file. `size` counts numbers, not bytes."""

    key: str
    dtype: np.dtype
    size: int


class _View(NamedTuple):
    """A tensor. Offset and strides count numbers; the offset is from the storage's start."""

    storage: _Storage
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]

    @property
    def span(self):
        """The count of the storage's numbers from the tensor's first to its last."""
        if 0 in self.shape:
            return 0
        return 1 + sum((n - 1) * step for n, step in zip(self.shape, self.strides, strict=True))


class _Place(NamedTuple):
    """Where a tensor is: its view, the file, and the byte at which its first number begins."""

    view: _View
    path: pathlib.Path
    start: int


class TorchCheckpoint(Tensors):
    """The tensors of PyTorch's files by name. Each is read on access; no file stays open.

    Attributes:
        num_values: int, the size of all storages. Tensors may share one.
    """

    num_values = None

    def __init__(self, places, shapes, num_values):
        super().__init__(places, shapes)
        self.num_values = num_values

    def read(self, name, place):
        view, dtype = place.view, place.view.storage.dtype
        size = view.span * dtype.itemsize
        data = np.fromfile(place.path, np.uint8, count=size, offset=place.start)
        if data.size != size:
            raise ValueError(
                f"A file must not change while it is read. Received: {place.path}, in which "
                f"{name!r} is cut off. Load it again."
            )
        strides = [step * dtype.itemsize for step in view.strides]
        return np.ndarray(view.shape, dtype, data, strides=strides)


def read_torch(source: str | os.PathLike) -> TorchCheckpoint:
    """Opens PyTorch's weights as a read-only mapping from tensor name to NumPy array.

    Neither PyTorch nor Python's unpickler is used, and nothing in the file is run.

    Args:
        source: a file that `torch.save` wrote from a dict of tensors (a "state dict"), a
            `.bin.index.json` file, or a folder that holds `pytorch_model.bin` or, for a sharded
            checkpoint, `pytorch_model.bin.index.json`. If both exist, the single file is read.

    Returns:
        A `TorchCheckpoint`. Arrays have the dtype of the file (float64, float32, float16, integers
        or bool), except that bfloat16 becomes float32, which holds each of its values exactly.

    Raises:
        FileNotFoundError: there is no such file, or no checkpoint in the folder.
        ValueError: a file is damaged, holds anything but tensors, names a function that no dict of
            tensors needs, or has a tensor that reaches beyond its storage; or an index is wrong,
            see `read_safetensors`. No tensor was read.

    Example:

    ```python
    checkpoint = read_torch("chinese-roberta-wwm-ext")
    checkpoint.shapes["bert.pooler.dense.weight"]  # (768, 768), nothing read yet
    kernel = checkpoint["bert.pooler.dense.weight"]  # float32 array
    ```
    """
    path = locate(pathlib.Path(source), (WEIGHTS_FILE, INDEX_FILE), "PyTorch")
    places, shapes, num_values = read_headers(path, _read_header)
    return TorchCheckpoint(places, shapes, sum(num_values))


def _read_header(path):
    """Returns the `_Place` and the shape of each tensor, and the size of all storages."""
    with reading(path, advice_for(path)), path.open("rb") as file:
        try:
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
                value, storages, starts = (_open_zip if _is_zip(data) else _open_legacy)(data, path)
                _check_storages(storages, starts, len(data))
            check_whole(isinstance(value, dict), "it holds no dict")
            for name, view in value.items():
                _check_view(name, view)
        except DamagedError as error:
            raise ValueError(
                "A PyTorch file must hold a dict of tensors and nothing else, since a pickle can "
                f"name any code to run. Received: {path}: {error}. {advice_for(path)} {CONVERT}"
            ) from error
    places, shapes = {}, {}
    for name, view in value.items():
        start = starts[view.storage.key] + view.offset * view.storage.dtype.itemsize
        places[name], shapes[name] = _Place(view, path, start), view.shape
    return places, shapes, sum(storage.size for storage in storages.values())


def _check_storages(storages, starts, size):
    """Raises `DamagedError` unless all storages are in the file, side by side."""
    sizes = {key: storage.size * storage.dtype.itemsize for key, storage in storages.items()}
    for key, num_bytes in sizes.items():
        check_whole(starts[key] + num_bytes <= size, f"the storage {key!r} goes beyond its end")
    check_whole(sum(sizes.values()) <= size, "its storages overlap")


def _check_view(name, view):
    """Raises `DamagedError` unless a tensor has a name and lies within its storage."""
    is_view = isinstance(name, str) and isinstance(view, _View)
    check_whole(is_view, f"{name!r} is of type {type(view).__name__}, which is no tensor")
    axes = (*view.shape, *view.strides)
    are_sizes = all(type(number) is int and number >= 0 for number in (view.offset, *axes))
    is_possible = are_sizes and len(view.shape) == len(view.strides) <= _MOST_AXES
    check_whole(is_possible, f"{name!r} has an impossible shape")
    # With strides of 0, a tensor could have more numbers than its storage.
    fits = max(view.offset + view.span, math.prod(view.shape)) <= view.storage.size
    check_whole(fits, f"{name!r} reaches beyond its storage")


def _is_zip(data):
    return data[:4] == b"PK\3\4"


def _open_zip(data, path):
    """Returns a zip archive's value, its storages, and the byte at which each storage starts."""
    starts, storages = {}, {}
    with zipfile.ZipFile(path) as archive:
        for member in archive.infolist():
            # Drop the first folder: it has the name that the file had when it was saved.
            name, start = member.filename.partition("/")[2], member.header_offset
            header = data[start : start + 30]
            is_stored = member.compress_type == zipfile.ZIP_STORED and header[:2] == b"PK"
            check_whole(is_stored, f"its member {name!r} is compressed or damaged")
            starts[name] = start + 30 + sum(struct.unpack("<2H", header[26:]))
    check_whole("data.pkl" in starts, "it is an archive without data.pkl")
    order = starts.get("byteorder", 0)
    check_whole(
        data[order : order + 3] != b"big", "its numbers are big-endian, which is not supported"
    )
    data.seek(starts["data.pkl"])
    value = _unpickled(data, storages)
    return value, storages, {key: starts[f"data/{key}"] for key in storages}


def _open_legacy(data, path):
    """Returns the same as `_open_zip` for a file from before PyTorch 1.6."""
    starts, storages = {}, {}
    check_whole(_unpickled(data) == _MAGIC, "it does not begin as PyTorch's files do")
    _unpickled(data)  # the version of the format, always 1001
    check_whole(
        _unpickled(data)["little_endian"] is True,
        "its numbers are big-endian, which is not supported",
    )
    value, keys = _unpickled(data, storages), _unpickled(data)
    for key in keys:
        size = data.read(8)
        check_whole(len(size) == 8, "it ends early")
        size = int.from_bytes(size, "little")
        check_whole(size == storages[key].size, f"the storage {key!r} has another size")
        starts[key] = data.tell()
        data.seek(starts[key] + size * storages[key].dtype.itemsize)
    return value, storages, starts


# What a pickle may name, and what stands for it here.


def _new_dict(pairs=()):
    return _updated({}, [part for pair in pairs for part in pair])


def _new_tensor(storage, offset, shape, strides, *_):
    storage, start = storage
    return _View(storage, start + offset, shape, strides)


def _tensor_of_parameter(tensor, *_):
    return tensor


_ALLOWED = {
    "collections OrderedDict": _new_dict,
    "torch._utils _rebuild_tensor_v2": _new_tensor,
    "torch._utils _rebuild_parameter": _tensor_of_parameter,
}
_ALLOWED |= {f"torch {name}Storage": np.dtype(dtype) for name, dtype in _DTYPES.items()}
_CONSTANTS = {
    "EMPTY_DICT": dict,
    "EMPTY_LIST": list,
    "EMPTY_TUPLE": tuple,
    "NEWFALSE": lambda: False,
    "NEWTRUE": lambda: True,
    "NONE": lambda: None,
}
_LITERALS = ("BININT", "BININT1", "BININT2", "LONG1", "BINFLOAT", "BINUNICODE")
_LITERALS += ("SHORT_BINUNICODE", "BINSTRING", "SHORT_BINSTRING")
# How many values an operation takes from the stack. The next three take all above the last mark.
_NUM_TAKEN = {"TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3, "SETITEM": 2, "APPEND": 1, "STACK_GLOBAL": 2}
_NUM_TAKEN |= {"REDUCE": 2, "BUILD": 1, "BINPERSID": 1}
_TO_MARK = ("TUPLE", "SETITEMS", "APPENDS")


def _unpickled(file, storages=None):
    """Returns the value of the pickle at a file's position.

    Args:
        file: an open file.
        storages: dict; the storages that the pickle refers to are added to it, by key.

    Raises:
        DamagedError: the pickle names or does something that no dict of tensors needs. Any other
            error means that the pickle is damaged.
    """
    import pickletools  # Only here: most programs read no such file.

    stack, marks, memo = [], [], {}
    for number, (opcode, argument, _) in enumerate(pickletools.genops(file)):
        check_whole(number < _MOST_OPERATIONS, "its pickle is too long for an encoder's")
        name = opcode.name
        if name in _CONSTANTS:
            stack.append(_CONSTANTS[name]())
        elif name in _LITERALS:
            stack.append(argument)
        elif name == "GLOBAL":
            stack.append(_allowed(argument))
        elif name == "MARK":
            marks.append(len(stack))
        elif name in ("BINPUT", "LONG_BINPUT", "MEMOIZE"):
            memo[len(memo) if argument is None else argument] = stack[-1]
        elif name in ("BINGET", "LONG_BINGET"):
            stack.append(memo[argument])
        elif name in _NUM_TAKEN or name in _TO_MARK:
            start = len(stack) - _NUM_TAKEN[name] if name in _NUM_TAKEN else marks.pop()
            taken = stack[start:]
            del stack[start:]
            _apply(name, taken, stack, storages)
        else:
            check_whole(name in ("PROTO", "FRAME", "STOP"), f"it has the operation {name}")
    return stack.pop()


def _apply(name, taken, stack, storages):
    """Runs an operation on the values that were taken from the stack."""
    if name.startswith("TUPLE"):
        stack.append(tuple(taken))
    elif name.startswith("SETITEM"):
        _updated(stack[-1], taken)
    elif name.startswith("APPEND"):
        check_whole(isinstance(stack[-1], list), "it appends to a value that is no list")
        stack[-1].extend(taken)
    elif name == "STACK_GLOBAL":
        stack.append(_allowed(" ".join(taken)))
    elif name == "REDUCE":
        function, arguments = taken
        stack.append(function(*arguments))
    elif name == "BINPERSID":
        stack.append(_storage_of(*taken[0], storages=storages))
    # BUILD sets attributes of the `OrderedDict` on the stack, which are of no use here.


def _allowed(name):
    check_whole(name in _ALLOWED, f"it asks for {name.replace(' ', '.')!r}")
    return _ALLOWED[name]


def _storage_of(kind, dtype, key, device, size, view=None, *, storages):
    """Returns a storage, and where in it the tensor's own part begins (0 except in old files)."""
    storage = _Storage(key, dtype, size)
    is_whole = kind == "storage" and isinstance(dtype, np.dtype) and type(key) is str
    check_whole(is_whole and type(size) is int and size >= 0, "it refers to no storage")
    is_same = storages.setdefault(key, storage) == storage
    check_whole(is_same, f"it has two storages called {key!r}")
    return storage, 0 if view is None else view[1]


def _updated(target, parts):
    """Returns a dict after adding the items of a list: key, value, key, value, and so on."""
    check_whole(isinstance(target, dict), "it sets an item of a value that is no dict")
    keys, values = parts[::2], parts[1::2]
    check_whole(all(type(key) in (str, int) for key in keys), "a dict has a key that is no name")
    target.update(zip(keys, values, strict=True))
    return target
