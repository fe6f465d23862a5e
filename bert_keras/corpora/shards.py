"""Folders of pre-training examples: shards of flat arrays, and a manifest with their checksums.

A shard is a safetensors file, which other tools read too. For `n` examples it holds

| tensor | dtype, shape | meaning |
|---|---|---|
| `token_ids` | uint16 or int32 `(total,)` | all rows in sequence, with special tokens |
| `offsets` | int64 `(n + 1,)` | row `i` is `token_ids[offsets[i] : offsets[i + 1]]` |
| `second_starts` | int32 `(n,)` | column of the second segment's first token, or the row's length |
| `is_random_next` | int8 `(n,)` | 1 if the second segment does not follow; pairs only |
| `word_starts` | bool `(total,)` | whether a word begins here; not if the vocabulary tells |
"""

import hashlib
import json
import os
import re
from collections.abc import Mapping
from typing import Any

import numpy as np
import safetensors.numpy

from bert_keras.checks import check_choice, check_exists
from bert_keras.engine.atomic_files import read_json, reading, replacing, write_json
from bert_keras.tokenizers.protocol_buffers import check_whole
from bert_keras.types import Array, Path

MANIFEST_FILE = "manifest.json"
FORMAT_VERSION = 2
_MAKE_AGAIN = "Make the data again, or copy the folder again."


def shard_name(index: int, count: int) -> str:
    """Returns the file name of a shard, such as `examples-00002-of-00010.safetensors`."""
    return f"examples-{index:05d}-of-{count:05d}.safetensors"


def write_shard(path: Path, arrays: Mapping[str, Array]) -> None:
    """Writes arrays as one safetensors file, whole or not at all.

    Args:
        path: str, the file; a temporary file beside it takes its place when it is complete.
        arrays: dict of str to array.
    """
    arrays = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    # The `save_file` of safetensors makes a file that only its owner may read.
    with replacing(path) as temporary, open(temporary, "wb") as file:
        file.write(safetensors.numpy.save(arrays))


def read_shard(path: Path) -> dict[str, Array]:
    """Returns the arrays of a shard, a dict by name.

    Args:
        path: str.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: the file is damaged.
    """
    with reading(path, _MAKE_AGAIN):
        return safetensors.numpy.load_file(path)


def file_sha256(path: Path) -> str:
    """Returns the SHA-256 of a file in hexadecimal digits."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def json_sha256(value: Any) -> str:
    """Returns the SHA-256 of a value of plain Python types, from its JSON with sorted keys."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


def write_manifest(folder: Path, manifest: Mapping[str, Any]) -> None:
    """Writes `manifest.json`, whole or not at all. If it exists, the data is complete."""
    write_json(os.path.join(folder, MANIFEST_FILE), manifest)


def read_manifest(folder: Path) -> dict[str, Any]:
    """Reads and checks `manifest.json`, and that every shard has its full length.

    Args:
        folder: str, a folder written by `bert-keras pretraining-data`.

    Returns:
        The manifest, a dict: `num_examples`, `sequence_length`, `objective`, `masking`, `shards`
        (a list of `file`, `num_examples`, `bytes`, `sha256`) and more.

    Raises:
        FileNotFoundError: the folder has no manifest, or a shard is missing.
        ValueError: the manifest is damaged, of another version, or a shard has another length.
    """
    folder = os.fspath(folder)
    path = os.path.join(folder, MANIFEST_FILE)
    rule = f"A folder of pre-training data must hold {MANIFEST_FILE}, which is written last"
    advice = "Run bert-keras pretraining-data; after a kill the same command continues."
    check_exists(path, rule, advice, exists=os.path.isfile)
    with reading(path, _MAKE_AGAIN):
        manifest = read_json(path)
        check_choice("version", manifest["version"], (FORMAT_VERSION,))
        shards = [
            (str(shard["file"]), int(shard["bytes"]), int(shard["num_examples"]))
            for shard in manifest["shards"]
        ]
        count = sum(count for _, _, count in shards)
        check_whole(count == manifest["num_examples"], "its counts do not add up")
        for name, _, _ in shards:
            is_inside = re.fullmatch(r"[\w.-]+", name)
            check_whole(is_inside, f"a shard must be in the folder. Received: {name!r}")
    for name, size, _ in shards:
        path = os.path.join(folder, name)
        check_exists(path, "All shards must be in the folder", _MAKE_AGAIN, exists=os.path.isfile)
        if (found := os.path.getsize(path)) != size:
            raise ValueError(
                f"A shard must have the length that {MANIFEST_FILE} states. Received: {name} in "
                f"{folder} with {found} bytes instead of {size}. {_MAKE_AGAIN}"
            )
    return manifest


def check_shard(folder: Path, shard: Mapping[str, Any]) -> None:
    """Compares a shard with the checksum in the manifest.

    Args:
        folder: str.
        shard: dict, an entry of the manifest's `shards`.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: the file was altered.
    """
    path = os.path.join(folder, shard["file"])
    found = file_sha256(path)
    if found != shard["sha256"]:
        raise ValueError(
            f"A shard must have the SHA-256 that {MANIFEST_FILE} states. Received: {path} with "
            f"{found} instead of {shard['sha256']}: it was altered. {_MAKE_AGAIN}"
        )
