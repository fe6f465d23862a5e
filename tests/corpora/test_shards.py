import os

import numpy as np
import pytest
import safetensors.numpy
from checks import refused
from files import change_json

from bert_keras.corpora import read_manifest, read_shard
from bert_keras.corpora.shards import (
    check_shard,
    file_sha256,
    shard_name,
    write_manifest,
    write_shard,
)

ARRAYS = {
    "token_ids": np.array([2, 60000, 3], np.uint16),
    "offsets": np.array([0, 3]),
    "second_starts": np.array([3], np.int32),
    "is_random_next": np.array([1], np.int8),
    "word_starts": np.array([True, False, True]),
    "mask_positions": np.empty(0, np.int32),
}


@pytest.fixture
def folder(tmp_path):
    """A folder of two shards with its manifest."""
    shards = []
    for index in range(2):
        name = shard_name(index, 2)
        write_shard(tmp_path / name, ARRAYS)
        about = {"bytes": os.path.getsize(tmp_path / name), "sha256": file_sha256(tmp_path / name)}
        shards.append({"file": name, "num_examples": 1, **about})
    write_manifest(tmp_path, {"version": 2, "num_examples": 2, "shards": shards})
    return tmp_path


def test_a_shard_comes_back_unless_it_is_truncated_and_others_can_read_it(tmp_path):
    write_shard(shard := tmp_path / "shard", ARRAYS)
    for arrays in (read_shard(shard), safetensors.numpy.load_file(shard)):
        assert set(arrays) == set(ARRAYS)
        for name, array in ARRAYS.items():
            assert arrays[name].dtype == array.dtype
            np.testing.assert_array_equal(arrays[name], array)
    (tmp_path / "plain").touch()
    assert shard.stat().st_mode == (tmp_path / "plain").stat().st_mode
    whole, message = shard.read_bytes(), r"shard cannot be read .*damaged.* Make the data again"
    for size in range(len(whole)):
        shard.write_bytes(whole[:size])
        with pytest.raises(ValueError, match=message):
            read_shard(shard)


def test_missing_cut_and_altered_shards_are_named(folder):
    for shard in read_manifest(folder)["shards"]:
        check_shard(folder, shard)
    path = folder / shard_name(1, 2)
    whole = path.read_bytes()
    path.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    with pytest.raises(ValueError, match=r"00001-of-00002.* was altered"):
        check_shard(folder, read_manifest(folder)["shards"][1])
    path.write_bytes(whole[:-1])
    with pytest.raises(ValueError, match=r"00001-of-00002.* instead of"):
        read_manifest(folder)
    path.unlink()
    with pytest.raises(FileNotFoundError, match=r"shards must be in the folder.*00001-of-00002"):
        read_manifest(folder)


@refused(
    ({"num_examples": 3}, "cannot be read .*do not add up"),
    ({"version": 1}, "`version` .* Received: 1"),
    ({"shards": [{}]}, "cannot be read .*damaged"),
    (
        {"shards": [{"file": "../x", "num_examples": 2, "bytes": 1, "sha256": ""}]},
        r".*must be in the folder. Received: '\.\./x'",
    ),
    prefix=r"manifest\.json:? ?",
)
def test_damaged_manifests_are_refused(folder, changes):
    change_json(folder / "manifest.json", **changes)
    read_manifest(folder)
