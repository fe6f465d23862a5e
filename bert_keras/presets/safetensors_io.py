"""Reads and writes safetensors files, the weights format of Hugging Face checkpoints.

A safetensors file is a JSON header (name, dtype, shape and byte range of each tensor) followed by
the raw bytes. Unlike a pickle it holds no code, and each tensor can be read alone. The
`safetensors` package parses it and refuses headers with wrong sizes. This module adds sharded
checkpoints, bfloat16, and errors that name the file and a remedy.
"""

import errno
import os
import pathlib
from collections.abc import Mapping

import numpy as np
import safetensors
import safetensors.numpy

from bert_keras.checks import check_choice
from bert_keras.engine.atomic_files import advice_for, reading, replacing
from bert_keras.presets.tensors import Tensors, read_tensors

WEIGHTS_FILE = "model.safetensors"

# The format's dtypes that NumPy has, and bfloat16. `presets.tensors` imports `ml_dtypes` (a
# dependency of Keras), which adds bfloat16 to NumPy, where the safetensors package finds it.
_DTYPES = ("F64", "F32", "F16", "BF16", "BOOL")
_DTYPES += ("I64", "I32", "I16", "I8", "U64", "U32", "U16", "U8")


def read_safetensors(source: str | os.PathLike) -> Tensors:
    """Opens a safetensors checkpoint as a read-only mapping from tensor name to NumPy array.

    Args:
        source: a `.safetensors` file, a `.safetensors.index.json` file, or a folder that holds
            `model.safetensors` or, for a sharded checkpoint, `model.safetensors.index.json`. If
            both exist, the single file is read.

    Returns:
        `Tensors`, read through a memory map; no file stays open. Arrays have the dtype of the file
        (float64, float32, float16, integers or bool), except that bfloat16 becomes float32, which
        holds each of its values exactly.

    Raises:
        FileNotFoundError: there is no such file, or no checkpoint in the folder.
        ValueError: a file is truncated or its header is wrong; an index names a shard outside the
            folder, or a tensor that its shard does not hold; or NumPy has no such dtype (float8,
            float4).

    Example:

    ```python
    checkpoint = read_safetensors("all-MiniLM-L6-v2")
    checkpoint.shapes["pooler.dense.weight"]  # (384, 384), nothing read yet
    kernel = checkpoint["pooler.dense.weight"]  # float32 array
    ```

    Reference: https://huggingface.co/docs/safetensors
    """
    return read_tensors(source, WEIGHTS_FILE, _read_file)


def read_metadata(path: str | os.PathLike) -> dict[str, str]:
    """Returns the free text in the header of a safetensors file, `{}` for a folder."""
    return {} if os.path.isdir(path) else _open(pathlib.Path(path)).metadata() or {}


def write_safetensors(
    path: str | os.PathLike,
    tensors: Mapping[str, np.ndarray],
    metadata: Mapping[str, str] | None = None,
) -> None:
    """Writes arrays to one safetensors file, whole or not at all.

    Args:
        path: the file to write; its folder must exist.
        tensors: dict from tensor name to array of a dtype that `read_safetensors` reads. Arrays
            may have any memory layout; they are stored in C order.
        metadata: dict of str, more text for the header.

    Raises:
        FileNotFoundError: the folder does not exist.
        OSError: the file cannot be written, see `bert_keras.engine.atomic_files.replacing`.
    """
    arrays = {name: np.asarray(value, order="C") for name, value in tensors.items()}
    # Without the first text in its header, transformers does not load a file.
    metadata = {"format": "pt", **(metadata or {})}
    with replacing(path) as temporary:
        try:
            safetensors.numpy.save_file(arrays, temporary, metadata=metadata)
        except safetensors.SafetensorError as error:  # It is also raised for a full disk.
            raise OSError(errno.EIO, str(error), temporary) from error


def weights_files(folder):
    """Returns the names of the files of weights that a new checkpoint in a folder replaces."""
    shards = [path.name for path in pathlib.Path(folder).glob("model-*-of-*.safetensors")]
    return [WEIGHTS_FILE, f"{WEIGHTS_FILE}.index.json", *shards]


def _read_file(path: pathlib.Path) -> Tensors:
    checkpoint, stored = _open(path), {}
    for name in checkpoint.keys():  # noqa: SIM118 (`safe_open` is not a mapping)
        tensor = checkpoint.get_slice(name)
        advice = "Convert it to float32, float16 or bfloat16 with the library that wrote it."
        check_choice(f"dtype of {name}` in `{path}", tensor.get_dtype(), _DTYPES, advice)
        shape = tuple(tensor.get_shape())
        stored[name] = shape, lambda name=name: _open(path).get_tensor(name)
    return Tensors(stored)


def _open(path: pathlib.Path):
    """Returns a `safetensors.safe_open` of the file, whose header has been checked."""
    with reading(path, advice_for(path)):
        return safetensors.safe_open(path, framework="numpy")
