"""Reading TensorFlow's checkpoint files, `*.index` and `*.data-*`, without TensorFlow.

The data files hold the raw bytes of the tensors. The index is a table in LevelDB's format: blocks
of entries that are sorted by key, where each key stores only the difference from the key before it.
A key is a tensor's name. Its value is a small protocol buffer with dtype, shape, file, offset, size
and checksum: `BundleEntryProto` in tensorflow/core/protobuf/tensor_bundle.proto.

The files may be hostile: every number is checked against the files' sizes before it is used, and
every tensor against its checksum when it is read.
"""

import math
import os
import pathlib
from typing import NamedTuple

import ml_dtypes
import numpy as np

from bert_keras.checks import check_exists, require
from bert_keras.presets.tensors import Tensors, advice_for
from bert_keras.tokenizers.protocol_buffers import DamagedError, Reader, check_whole, fields

# Much more than BERT-large with its optimizer's slots needs, 1,200 tensors and 60 KiB of index.
_LARGEST_INDEX = 2**24
_MOST_TENSORS = 2**16
_LONGEST_NAME = 1024
_MOST_AXES = 32

_FOOTER_SIZE = 48
_MAGIC = (0xDB4775248B80FB57).to_bytes(8, "little")
_TRAILER_SIZE = 5  # of a block: compression, checksum

# The number of a dtype in tensorflow/core/framework/types.proto -> NumPy's dtype.
_DTYPES = {1: "<f4", 2: "<f8", 3: "<i4", 4: "u1", 5: "<i2", 6: "i1", 9: "<i8", 10: "?"}
_DTYPES |= {14: ml_dtypes.bfloat16, 17: "<u2", 19: "<f2", 22: "<u4", 23: "<u8"}
_DTYPES = {number: np.dtype(dtype) for number, dtype in _DTYPES.items()}


class _Entry(NamedTuple):
    """The place of a tensor. `dtype` is `None` if NumPy cannot hold it, such as strings."""

    dtype: np.dtype | None
    shape: tuple[int, ...]
    path: pathlib.Path
    offset: int
    size: int
    checksum: int


class TensorBundle(Tensors):
    """The tensors of a TensorFlow checkpoint by name. Each is read and verified on access."""

    def read(self, name, place):
        if place.dtype is None:
            raise ValueError(
                f"A tensor must hold numbers. Received: {name!r} in {place.path}, which does not."
            )
        data = np.fromfile(place.path, np.uint8, count=place.size, offset=place.offset)
        if data.size != place.size or masked_crc32c(data) != place.checksum:
            raise ValueError(
                f"A tensor must have the checksum that the index states. Received: {name!r} in "
                f"{place.path}, which has another. The file is damaged: download it again."
            )
        return data.view(place.dtype).reshape(place.shape)


def read_tensor_bundle(prefix: str | os.PathLike) -> TensorBundle:
    """Opens a TensorFlow checkpoint as a read-only mapping from tensor name to NumPy array.

    Args:
        prefix: the path without the endings: `folder/bert_model.ckpt` for `bert_model.ckpt.index`
            and `bert_model.ckpt.data-00000-of-00001`.

    Returns:
        A `TensorBundle`. Arrays have the dtype of the file, except that bfloat16 becomes float32,
        which holds each of its values exactly.

    Raises:
        FileNotFoundError: there is no index, or a data file is missing.
        ValueError: the index is damaged, too large, or of an unsupported kind (big endian,
            compressed, variables in slices), or refers to bytes beyond the end of a data file.

    Example:

    ```python
    checkpoint = read_tensor_bundle("uncased_L-2_H-128_A-2/bert_model.ckpt")
    checkpoint.shapes["bert/pooler/dense/kernel"]  # (128, 128), nothing read yet
    kernel = checkpoint["bert/pooler/dense/kernel"]  # float32 array
    ```
    """
    prefix = pathlib.Path(prefix)
    path = prefix.with_name(f"{prefix.name}.index")
    check_exists(path, "A TensorFlow checkpoint must have an index", exists=os.path.isfile)
    size = path.stat().st_size
    try:
        check_whole(size <= _LARGEST_INDEX, f"more than {_LARGEST_INDEX} bytes are no index")
        entries = _entries(_read_table(path.read_bytes()), prefix)
        return TensorBundle(entries, {name: entry.shape for name, entry in entries.items()})
    except DamagedError as error:
        raise ValueError(
            f"The index of a TensorFlow checkpoint must be whole and agree with its data files. "
            f"Received: {path} with {size} bytes: {error}. {advice_for(path)}"
        ) from error


def masked_crc32c(data):
    """Returns the CRC-32C of bytes as TensorFlow stores it: rotated by 15 bits, plus a constant.

    Raises:
        ImportError: the package that computes it is not installed.

    Reference: https://datatracker.ietf.org/doc/html/rfc3720#appendix-B.4.
    """
    google_crc32c = require("google_crc32c", "verify a TensorFlow checkpoint", extra="tf1")
    crc = google_crc32c.value(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


# The table


def _read_table(data):
    """Returns the table's keys and values, a dict of bytes."""
    has_end = len(data) >= _FOOTER_SIZE and data.endswith(_MAGIC)
    check_whole(has_end, "its end is not that of an index")
    footer = Reader(data[-_FOOTER_SIZE:])
    _read_handle(footer)  # Skips a block about the table, which TensorFlow leaves empty.
    table = {}
    # The footer names one block, whose values are the places of all others.
    for _, value in _read_block(data, *_read_handle(footer)):
        for name, entry in _read_block(data, *_read_handle(Reader(value))):
            check_whole(name not in table, f"it lists {_text(name)!r} twice")
            check_whole(len(table) < _MOST_TENSORS, f"it lists more than {_MOST_TENSORS} tensors")
            table[name] = entry
    return table


def _read_handle(reader):
    """Returns the offset and the size of a block."""
    return reader.varint(), reader.varint()


def _read_block(data, offset, size):
    """Yields the keys and values of a block after verifying its checksum."""
    end = offset + size
    check_whole(end + _TRAILER_SIZE <= len(data), f"a block at {offset} goes beyond its end")
    stored = int.from_bytes(data[end + 1 : end + _TRAILER_SIZE], "little")
    computed = masked_crc32c(data[offset : end + 1])  # including the byte of the compression
    check_whole(computed == stored, f"the block at {offset} has a wrong checksum")
    check_whole(data[end] == 0, "it is compressed, which TensorFlow's own checkpoints are not")
    block = data[offset:end]
    # The entries are followed by the places of the keys stored in full ("restarts") and by their
    # number, four bytes each.
    num_restarts = int.from_bytes(block[-4:], "little")
    is_long_enough = size >= 4 and 4 * (num_restarts + 1) <= size
    check_whole(is_long_enough, f"the block at {offset} is too short")
    reader = Reader(block[: size - 4 * (num_restarts + 1)])
    key = b""
    while reader.has_more():
        num_shared, num_new, value_size = reader.varint(), reader.varint(), reader.varint()
        is_possible = num_shared <= len(key) and num_shared + num_new <= _LONGEST_NAME
        check_whole(is_possible, f"the block at {offset} has an impossible name")
        key = key[:num_shared] + reader.take(num_new)
        yield key, reader.take(value_size)


# The protocol buffers


def _entries(table, prefix):
    """Returns an `_Entry` for each name, all within the sizes of the data files."""
    header = dict(fields(table.pop(b"", b"")))
    num_shards, is_big_endian = header.get(1, 1), header.get(2, 0)
    check_whole(not is_big_endian, "its numbers are big-endian, which is not supported")
    is_possible = isinstance(num_shards, int) and 1 <= num_shards <= 99_999
    check_whole(is_possible, f"it asks for {num_shards} data files")
    sizes = {}
    entries = {}
    for raw_name, value in table.items():
        name = _text(raw_name)
        shard, entry = _read_entry(name, value)
        check_whole(0 <= shard < num_shards, f"{name!r} is in data file {shard} of {num_shards}")
        path = prefix.with_name(f"{prefix.name}.data-{shard:05d}-of-{num_shards:05d}")
        if path not in sizes:
            sizes[path] = _size_of(path)
        end = entry.offset + entry.size
        place = f"{name!r} is at the bytes {entry.offset} to {end} of {path.name}"
        check_whole(end <= sizes[path], f"{place}, which has {sizes[path]}")
        entries[name] = entry._replace(path=path)
    return entries


def _size_of(path):
    rule = "A TensorFlow checkpoint must have all its data files"
    check_exists(path, rule, "The download is incomplete: download it again.")
    return path.stat().st_size


def _read_entry(name, value):
    """Returns the number of the data file, and the entry without its path."""
    single = dict(fields(value))
    check_whole(7 not in single, f"{name!r} is stored in slices, which is not supported")
    dtype = _DTYPES.get(single.get(1, 0))
    shape = _read_shape(name, single.get(2, b""))
    shard, offset, size, checksum = (single.get(number, 0) for number in (3, 4, 5, 6))
    are_ints = all(isinstance(number, int) for number in (shard, offset, size, checksum))
    check_whole(are_ints, f"{name!r} has an impossible entry")
    fits = dtype is None or math.prod(shape) * dtype.itemsize == size
    check_whole(fits, f"{name!r} has the shape {shape} of {dtype} in {size} bytes")
    return shard, _Entry(dtype, shape, None, offset, size, checksum)


def _read_shape(name, value):
    shape = []
    for number, dimension in fields(value):
        if number == 2:
            shape.append(dict(fields(dimension)).get(1, 0))
        else:
            check_whole(not dimension, f"{name!r} has no known shape")
    are_sizes = all(isinstance(n, int) and n < 2**48 for n in shape)
    check_whole(len(shape) <= _MOST_AXES and are_sizes, f"{name!r} has an impossible shape")
    return tuple(shape)


def _text(name):
    return name.decode("utf-8", errors="backslashreplace")
