"""Our reader and writer of safetensors, against the package's own and by hand."""

import json
import os
import struct
import tracemalloc

import ml_dtypes
import numpy as np
import pytest
import safetensors.numpy
from files import write_json

from bert_keras.presets.safetensors_io import read_safetensors, write_safetensors

FILE, INDEX = "model.safetensors", "model.safetensors.index.json"
SHARDS = ("model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors")


def tensor(dtype, shape, start, end):
    return {"dtype": dtype, "shape": shape, "data_offsets": [start, end]}


def raw(header, data=b"", length=None):
    """Returns a safetensors file made by hand: length of the header, header, data."""
    header = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(header) if length is None else length) + header + data


def index(weight_map):
    return {"metadata": {"total_size": 1}, "weight_map": weight_map}


@pytest.fixture
def arrays():
    rng = np.random.default_rng(0)
    return {
        "embeddings.weight": rng.normal(size=(5, 3)).astype("float32"),
        "half": rng.normal(size=(2, 2)).astype("float16"),
        "double": rng.normal(size=(4,)),
        "position_ids": np.arange(7, dtype="int64")[None],
        "flags": np.array([True, False]),
        "scalar": np.array(3.5, "float32"),
        "empty": np.zeros((0, 3), "float32"),
    }


def assert_equal(checkpoint, arrays):
    assert sorted(checkpoint) == sorted(arrays)
    for name, array in arrays.items():
        assert checkpoint[name].dtype == array.dtype, name
        assert checkpoint.shapes[name] == array.shape
        np.testing.assert_array_equal(checkpoint[name], array, strict=True)


class TestReading:
    def test_reads_what_the_safetensors_package_wrote(self, tmp_path, arrays):
        safetensors.numpy.save_file(arrays, tmp_path / FILE, {"format": "pt"})
        for source in (tmp_path, tmp_path / FILE, str(tmp_path)):
            checkpoint = read_safetensors(source)
            assert len(checkpoint) == len(arrays)
            assert_equal(checkpoint, arrays)

    def test_bfloat16_is_written_as_such_and_read_as_the_same_numbers_in_float32(self, tmp_path):
        # 1, -2, 0.15625, infinity and the smallest subnormal, as the high halves of float32.
        halves = [0x3F80, 0xC000, 0x3E20, 0x7F80, 0x0001]
        header = {"a": tensor("BF16", [5], 0, 10)}
        (tmp_path / FILE).write_bytes(raw(header, struct.pack("<5H", *halves)))
        array = read_safetensors(tmp_path)["a"]
        assert array.dtype == np.float32
        assert array.tolist() == [1.0, -2.0, 0.15625, np.inf, 2.0**-133]
        written = raw(header, array.astype(ml_dtypes.bfloat16).tobytes())
        write_safetensors(tmp_path / FILE, {"a": array.astype(ml_dtypes.bfloat16)})
        assert (tmp_path / FILE).read_bytes()[-10:] == written[-10:]
        with safetensors.safe_open(tmp_path / FILE, framework="numpy") as file:
            assert file.get_slice("a").get_dtype() == "BF16"

    def test_an_unknown_name_is_a_key_error_and_membership_reads_nothing(self, tmp_path, arrays):
        write_safetensors(tmp_path / FILE, arrays)
        checkpoint = read_safetensors(tmp_path)
        os.remove(tmp_path / FILE)
        assert "half" in checkpoint and "other" not in checkpoint
        assert checkpoint.shapes["half"] == (2, 2)
        with pytest.raises(KeyError):
            checkpoint["other"]

    def test_each_tensor_is_a_fresh_writable_array(self, tmp_path, arrays):
        write_safetensors(tmp_path / FILE, arrays)
        checkpoint = read_safetensors(tmp_path)
        checkpoint["half"][:] = 0
        np.testing.assert_array_equal(checkpoint["half"], arrays["half"])

    def test_a_checkpoint_is_not_held_in_memory(self, tmp_path):
        arrays = {f"layer_{i}": np.full((512, 512), i, "float32") for i in range(16)}
        write_safetensors(tmp_path / FILE, arrays)
        tracemalloc.start()
        for i, array in enumerate(read_safetensors(tmp_path).values()):
            assert array.shape == (512, 512), i
        most = tracemalloc.get_traced_memory()[1] / 2**20
        tracemalloc.stop()
        assert 1 <= most < 4, f"{most:.0f} MiB for 16 tensors of 1 MiB each"


@pytest.fixture
def shards(tmp_path, arrays):
    """Writes the arrays as two shards with an index; returns which is where."""
    weight_map = {}
    for i, shard in enumerate(SHARDS):
        held = {name: arrays[name] for name in sorted(arrays)[i::2]}
        safetensors.numpy.save_file(held, tmp_path / shard)
        weight_map |= dict.fromkeys(held, shard)
    write_json(tmp_path / INDEX, index(weight_map))
    return weight_map


class TestShards:
    def test_shards_read_as_one_checkpoint(self, tmp_path, arrays, shards):
        assert_equal(read_safetensors(tmp_path), arrays)
        assert_equal(read_safetensors(tmp_path / INDEX), arrays)
        del shards["half"]  # A tensor that the index lacks is still found.
        write_json(tmp_path / INDEX, index(shards))
        assert_equal(read_safetensors(tmp_path), arrays)

    def test_the_index_decides_between_two_shards(self, tmp_path):
        first, second = SHARDS
        safetensors.numpy.save_file({"a": np.zeros(2), "b": np.zeros(2)}, tmp_path / first)
        safetensors.numpy.save_file({"a": np.ones(2)}, tmp_path / second)
        write_json(tmp_path / INDEX, index({"a": second, "b": first}))
        assert read_safetensors(tmp_path)["a"].tolist() == [1, 1]


F32 = tensor("F32", [4], 0, 16)
# Headers that the package refuses, sizes of the data, and what the length says if it is not the
# header's. tests/fuzz has others.
LYING = [
    ({"a": F32}, 20, None),
    ({"a": tensor("F32", [400], 0, 1600)}, 16, None),
    ({"a": F32}, 16, 2**64 - 1),
    (b'{"a": ' + b"[" * 100_000, 0, None),
]
OUTSIDE = [
    *("../model.safetensors", "/etc/model.safetensors", "a/../../model.safetensors"),
    *("..\\model.safetensors", "C:model.safetensors", "pytorch_model.bin", "..", ""),
]
DAMAGED_INDEXES = [
    *(b"{", b"[]", b"null", b'{"weight_map": []}', b'{"other": {}}'),
    *(b'{"weight_map": {"a": 1}}', b'{"weight_map": {"a": ["b"]}}'),
    b'{"weight_map": ' + b"[" * 100_000,
]
LFS = b"version https://git-lfs.github.com/spec/v1\noid sha256:53aa\nsize 90868376\n"
# A file's name and content -> the error's message.
REFUSED = [
    *((FILE, raw(h, b"\0" * n, size), r"model\.safetensors.*download it") for h, n, size in LYING),
    (FILE, raw({"a": tensor("F8_E4M3", [4], 0, 4)}, b"\0" * 4), r"`dtype of a`.*F8_E4M3.*Convert"),
    (FILE, LFS, "git lfs pull"),
    (INDEX, LFS, "git lfs pull"),
    *((INDEX, json.dumps(index({"a": name})).encode(), "trust its origin") for name in OUTSIDE),
    *((INDEX, content, r"index\.json.*download it again") for content in DAMAGED_INDEXES),
]


class TestDamage:
    @pytest.mark.parametrize(("name", "content", "message"), REFUSED, ids=range(len(REFUSED)))
    def test_a_file_that_cannot_be_right_is_refused(self, tmp_path, name, content, message):
        safetensors.numpy.save_file({"a": np.zeros(2)}, tmp_path / FILE)  # It is not read instead.
        (tmp_path / "checkpoint").mkdir()
        (tmp_path / "checkpoint" / name).write_bytes(content)
        for source in (tmp_path / "checkpoint", tmp_path / "checkpoint" / name):
            with pytest.raises(ValueError, match=message):
                read_safetensors(source)

    def test_what_is_missing_is_named(self, tmp_path, shards):
        write_json(tmp_path / INDEX, index({**shards, "other": SHARDS[0]}))
        with pytest.raises(ValueError, match=r"'other' in model-00001-of-00002.*again"):
            read_safetensors(tmp_path)
        os.remove(tmp_path / SHARDS[1])
        with pytest.raises(FileNotFoundError, match=SHARDS[1]):
            read_safetensors(tmp_path)
        os.remove(tmp_path / INDEX)
        with pytest.raises(FileNotFoundError, match=r"model\.safetensors.*holds neither"):
            read_safetensors(tmp_path)
        with pytest.raises(FileNotFoundError, match="does not exist"):
            read_safetensors(tmp_path / "nowhere")


class TestWriting:
    def test_the_safetensors_package_reads_any_memory_layout_back(self, tmp_path, arrays):
        path, array = tmp_path / FILE, np.arange(24, dtype="float32").reshape(2, 3, 4)
        arrays |= {"transposed": array.T, "fortran": np.asfortranarray(array)}
        arrays |= {"strided": array[:, ::2, ::-1], "big_endian": array.astype(">f4")}
        arrays["broadcast"] = np.broadcast_to(array[:1], (5, 3, 4))
        write_safetensors(path, arrays)
        found = safetensors.numpy.load_file(path)
        assert sorted(found) == sorted(arrays)
        for name, array in arrays.items():
            expected = array.astype(array.dtype.newbyteorder("="))
            np.testing.assert_array_equal(found[name], expected, strict=True)
        with safetensors.safe_open(path, framework="numpy") as file:
            assert file.metadata() == {"format": "pt"}
        assert os.listdir(tmp_path) == [FILE]

    def test_a_missing_folder_is_named(self, tmp_path):
        with pytest.raises(FileNotFoundError, match="nowhere"):
            write_safetensors(tmp_path / "nowhere" / FILE, {"a": np.ones(2)})
