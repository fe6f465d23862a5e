"""Writes valid and damaged TensorFlow checkpoints without TensorFlow.

`test_tf_checkpoint.py` shows that TensorFlow reads what it writes.
"""

import numpy as np

from bert_keras.presets.tf_checkpoint import masked_crc32c

MAGIC = (0xDB4775248B80FB57).to_bytes(8, "little")
DTYPES = {"float32": 1, "float64": 2, "int32": 3, "int64": 9, "bool": 10}
DTYPES |= {"bfloat16": 14, "float16": 19}


def varint(value):
    value &= 2**64 - 1
    parts = []
    while value >= 0x80:
        parts.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*parts, value])


def field(number, value):
    """One field of a protocol buffer: an int as a varint, or bytes with their length."""
    if isinstance(value, bytes):
        return varint(number << 3 | 2) + varint(len(value)) + value
    return varint(number << 3) + varint(value)


def entry(dtype, shape, shard, offset, size, checksum, further=b""):
    """A `BundleEntryProto`."""
    dimensions = b"".join(field(2, field(1, n)) for n in shape)
    fields = enumerate((dtype, dimensions, shard, offset, size), 1)
    checksum = varint(6 << 3 | 5) + checksum.to_bytes(4, "little")
    return b"".join(field(*x) for x in fields) + checksum + further


def block(rows, compression=0, share=True):
    """One block of a table: keys with shared prefixes, values, and the trailer."""
    body, restarts, previous = b"", [], b""
    for i, (key, value) in enumerate(rows):
        shared = 0
        if i % 16 == 0 or not share:
            restarts.append(len(body))
        else:
            while shared < min(len(key), len(previous)) and key[shared] == previous[shared]:
                shared += 1
        body += varint(shared) + varint(len(key) - shared) + varint(len(value))
        body += key[shared:] + value
        previous = key
    for restart in [*restarts, len(restarts)] if restarts else [0, 1]:
        body += restart.to_bytes(4, "little")
    body += bytes([compression])
    return body + masked_crc32c(body).to_bytes(4, "little")


def table(rows, rows_per_block=1000, **options):
    """A whole index file of sorted rows."""
    data, handles = b"", []
    for i in range(0, len(rows), rows_per_block):
        part = rows[i : i + rows_per_block]
        raw = block(part, **options)
        handles.append((part[-1][0], varint(len(data)) + varint(len(raw) - 5)))
        data += raw
    footer = b""
    for raw in (block([]), block(handles)):
        footer += varint(len(data)) + varint(len(raw) - 5)
        data += raw
    return data + footer.ljust(40, b"\0") + MAGIC


def header(num_shards=1, endianness=0):
    """The `BundleHeaderProto`, under the empty key."""
    return (b"", field(1, num_shards) + field(2, endianness) + field(3, field(1, 1)))


def write_bundle(prefix, tensors, num_shards=1, rows_per_block=1000):
    """Writes arrays as a checkpoint with one or more data files."""
    contents = [b"" for _ in range(num_shards)]
    rows = []
    for i, name in enumerate(sorted(tensors)):
        array = np.asarray(tensors[name])
        raw = array.tobytes()
        shard = i % num_shards
        place = (shard, len(contents[shard]), len(raw), masked_crc32c(raw))
        rows.append((name.encode(), entry(DTYPES[array.dtype.name], array.shape, *place)))
        contents[shard] += raw
    for i, content in enumerate(contents):
        data_path(prefix, i, num_shards).write_bytes(content)
    index = table([header(num_shards), *rows], rows_per_block)
    prefix.with_name(f"{prefix.name}.index").write_bytes(index)


def data_path(prefix, shard=0, num_shards=1):
    """The path of a data file."""
    return prefix.with_name(f"{prefix.name}.data-{shard:05d}-of-{num_shards:05d}")
