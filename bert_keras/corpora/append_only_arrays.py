"""Arrays that are written chunk by chunk, one file each, and read as memory maps."""

import collections
import contextlib
import os

import numpy as np

from bert_keras.engine.atomic_files import read_json, write_json

# Holds the counts, and is written last.
COUNTS_FILE = "counts.json"


def write_arrays(folder, dtypes, chunks, progress):
    """Writes arrays into a folder, unless an earlier call has finished.

    Args:
        folder: str, made if needed.
        dtypes: dict from the name of an array to its dtype.
        chunks: iterable of `(arrays, counts)`: a dict from each name to the next rows, and a dict
            of ints to sum.
        progress: function of the counts so far, called after each chunk.

    Returns:
        `collections.Counter`, the sums of the counts.
    """
    path, counts = os.path.join(folder, COUNTS_FILE), collections.Counter()
    if os.path.exists(path):
        return collections.Counter(read_json(path))
    os.makedirs(folder, exist_ok=True)
    with contextlib.ExitStack() as opened:
        files = {x: opened.enter_context(open(_path(folder, x), "wb")) for x in dtypes}
        for arrays, more_counts in chunks:
            for name, file in files.items():
                file.write(np.ascontiguousarray(arrays[name], dtypes[name]))
            counts.update(more_counts)
            progress(counts)
    write_json(path, counts)
    return counts


def open_array(folder, name, dtype):
    """Returns an array as a read-only memory map."""
    path = _path(folder, name)
    return np.memmap(path, dtype, "r") if os.path.getsize(path) else np.empty(0, dtype)


def _path(folder, name):
    return os.path.join(folder, f"{name}.bin")
