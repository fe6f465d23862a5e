"""Our reader and writer of safetensors, against the package's own and by hand."""

import json
import os
import pathlib
import struct
import tracemalloc

import ml_dtypes
import numpy as np
import pytest
import safetensors.numpy
from files import write_json
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bert_keras.presets.safetensors_io import read_safetensors, write_safetensors

FILE, INDEX = "model.safetensors", "model.safetensors.index.json"
SHARDS = ("model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors")


def tensor(dtype, shape, start, end):
    return {"dtype": dtype, "shape": shape, "data_offsets": [start, end]}


def write_raw(path, header, data=b"", length=None):
    """Writes a safetensors file by hand: length of the header, header, data."""
    header = header if isinstance(header, bytes) else json.dumps(header).encode()
    length = len(header) if length is None else length
    path.write_bytes(struct.pack("<Q", length) + header + data)
    return path


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
            assert checkpoint.metadata == {"format": "pt"}
            assert_equal(checkpoint, arrays)

    def test_reads_bytes_written_by_hand(self, tmp_path):
        header = {"a": tensor("F32", [2], 0, 8), "b": tensor("I64", [1], 8, 16)}
        data = struct.pack("<2f", 1.5, -2.0) + struct.pack("<q", -7)
        checkpoint = read_safetensors(write_raw(tmp_path / "x.safetensors", header, data))
        assert checkpoint["a"].tolist() == [1.5, -2.0]
        assert checkpoint["b"].tolist() == [-7]
        assert checkpoint.metadata == {}

    def test_bfloat16_arrives_as_the_same_numbers_in_float32(self, tmp_path):
        # 1, -2, 0.15625, infinity and the smallest subnormal, as the high halves of float32.
        halves = [0x3F80, 0xC000, 0x3E20, 0x7F80, 0x0001]
        header = {"a": tensor("BF16", [5], 0, 10)}
        path = write_raw(tmp_path / "x.safetensors", header, struct.pack("<5H", *halves))
        array = read_safetensors(path)["a"]
        assert array.dtype == np.float32
        assert array.tolist() == [1.0, -2.0, 0.15625, np.inf, 2.0**-133]

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
    write_index(tmp_path, weight_map)
    return weight_map


def write_index(folder, weight_map):
    write_json(folder / INDEX, {"metadata": {"total_size": 1}, "weight_map": weight_map})


class TestShards:
    def test_shards_read_as_one_checkpoint(self, tmp_path, arrays, shards):
        assert_equal(read_safetensors(tmp_path), arrays)
        assert_equal(read_safetensors(tmp_path / INDEX), arrays)
        del shards["half"]  # A tensor that the index lacks is still found.
        write_index(tmp_path, shards)
        assert_equal(read_safetensors(tmp_path), arrays)

    def test_the_index_decides_between_two_shards(self, tmp_path):
        first, second = SHARDS
        safetensors.numpy.save_file({"a": np.zeros(2), "b": np.zeros(2)}, tmp_path / first)
        safetensors.numpy.save_file({"a": np.ones(2)}, tmp_path / second)
        write_index(tmp_path, {"a": second, "b": first})
        assert read_safetensors(tmp_path)["a"].tolist() == [1, 1]

    def test_a_missing_shard_or_tensor_is_named(self, tmp_path, shards):
        write_index(tmp_path, {**shards, "other": SHARDS[0]})
        with pytest.raises(ValueError, match=r"'other' in model-00001-of-00002.*again"):
            read_safetensors(tmp_path)
        os.remove(tmp_path / SHARDS[1])
        with pytest.raises(ValueError, match=f"{SHARDS[1]}.*download it again"):
            read_safetensors(tmp_path)

    @pytest.mark.parametrize(
        "shard",
        [
            *("../model.safetensors", "/etc/model.safetensors", "a/../../model.safetensors"),
            *("..\\model.safetensors", "C:model.safetensors", "pytorch_model.bin", "..", ""),
        ],
    )
    def test_a_shard_outside_the_folder_is_refused(self, tmp_path, shard):
        safetensors.numpy.save_file({"a": np.zeros(2)}, tmp_path / FILE)
        folder = tmp_path / "checkpoint"
        folder.mkdir()
        write_index(folder, {"a": shard})
        with pytest.raises(ValueError, match="trust its origin"):
            read_safetensors(folder)

    @pytest.mark.parametrize(
        "text",
        [
            *("{", "[]", "null", '{"weight_map": []}', '{"weight_map": {}}', '{"other": {}}'),
            *('{"weight_map": {"a": 1}}', '{"weight_map": {"a": ["b"]}}'),
            '{"weight_map": ' + "[" * 100_000,
        ],
    )
    def test_a_damaged_index_is_named(self, tmp_path, text):
        (tmp_path / INDEX).write_text(text)
        with pytest.raises(ValueError, match=r"index\.json.*download it again"):
            read_safetensors(tmp_path)


class TestDamage:
    def test_every_truncation_is_noticed(self, tmp_path):
        path = tmp_path / FILE
        write_safetensors(path, {"a": np.arange(4, dtype="float32"), "b": np.ones(2)})
        content = path.read_bytes()
        for length in range(len(content)):
            path.write_bytes(content[:length])
            with pytest.raises(ValueError, match=r"model\.safetensors.*download it again"):
                read_safetensors(tmp_path)

    @pytest.mark.parametrize(
        "header, size, length",
        [
            ({"a": tensor("F32", [4], 0, 16)}, 20, None),
            ({"a": tensor("F32", [4], 0, 16), "b": tensor("F32", [4], 8, 24)}, 24, None),
            ({"a": tensor("F32", [4], 0, 16), "b": tensor("F32", [4], 0, 16)}, 16, None),
            ({"a": tensor("F32", [4], 0, 16), "b": tensor("F32", [4], 20, 36)}, 36, None),
            ({"a": tensor("F32", [400], 0, 1600)}, 16, None),
            ({"a": tensor("F32", [5], 0, 16)}, 16, None),
            ({"a": tensor("F32", [4], 16, 0)}, 16, None),
            ({"a": tensor("F32", [-4], 0, 16)}, 16, None),
            ({"a": tensor("F32", [2**62, 8], 0, 16)}, 16, None),
            ({"a": tensor("F99", [4], 0, 16)}, 16, None),
            ({"a": tensor("F32", [4], 0, 16)}, 16, 2**40),
            ({"a": tensor("F32", [4], 0, 16)}, 16, 2**64 - 1),
            (b'{"a": ' + b"[" * 100_000, 0, None),
            (b'{"\xff": 1}', 0, None),
            (b"[]", 0, None),
        ],
    )
    def test_a_header_that_lies_is_refused(self, tmp_path, header, size, length):
        path = write_raw(tmp_path / FILE, header, b"\0" * size, length)
        with pytest.raises(ValueError, match=r"model\.safetensors.*download it again"):
            read_safetensors(path)

    def test_a_git_lfs_pointer_is_refused_with_the_command_to_run(self, tmp_path):
        (tmp_path / FILE).write_text(
            "version https://git-lfs.github.com/spec/v1\noid sha256:53aa\nsize 90868376\n"
        )
        with pytest.raises(ValueError, match="git lfs pull"):
            read_safetensors(tmp_path)

    def test_a_dtype_that_numpy_lacks_is_named_before_anything_is_read(self, tmp_path):
        header = {"a": tensor("F8_E4M3", [4], 0, 4)}
        path = write_raw(tmp_path / FILE, header, b"\0" * 4)
        with pytest.raises(ValueError, match=r"F8_E4M3 for 'a'.*Convert"):
            read_safetensors(path)

    def test_a_missing_checkpoint_is_an_error_that_says_what_was_expected(self, tmp_path):
        with pytest.raises(FileNotFoundError, match=r"model\.safetensors.*holds neither"):
            read_safetensors(tmp_path)
        with pytest.raises(FileNotFoundError, match="does not exist"):
            read_safetensors(tmp_path / "nowhere")


NAMES = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
SIZES = st.lists(st.integers(0, 3), max_size=3)
DTYPES = st.sampled_from(["float64", "float32", "float16", "int64", "int8", "uint8", "bool"])


class TestWriting:
    def test_the_safetensors_package_reads_it_back(self, tmp_path, arrays):
        path = tmp_path / FILE
        write_safetensors(path, arrays, metadata={"format": "pt"})
        found = safetensors.numpy.load_file(path)
        assert sorted(found) == sorted(arrays)
        for name, array in arrays.items():
            np.testing.assert_array_equal(found[name], array, strict=True)
        with safetensors.safe_open(path, framework="numpy") as file:
            assert file.metadata() == {"format": "pt"}
        assert os.listdir(tmp_path) == [FILE]

    def test_any_memory_layout_is_stored_in_c_order(self, tmp_path):
        array = np.arange(24, dtype="float32").reshape(2, 3, 4)
        layouts = {
            "transposed": array.T,
            "fortran": np.asfortranarray(array),
            "strided": array[:, ::2, ::-1],
            "broadcast": np.broadcast_to(array[:1], (5, 3, 4)),
            "big_endian": array.astype(">f4"),
        }
        write_safetensors(tmp_path / FILE, layouts)
        checkpoint = read_safetensors(tmp_path)
        for name, expected in layouts.items():
            np.testing.assert_array_equal(checkpoint[name], expected)

    def test_bfloat16_is_written_as_such(self, tmp_path):
        values = np.array([1.0, -2.0, 0.15625], ml_dtypes.bfloat16)
        write_safetensors(tmp_path / FILE, {"a": values})
        with safetensors.safe_open(tmp_path / FILE, framework="numpy") as file:
            assert file.get_slice("a").get_dtype() == "BF16"
        assert read_safetensors(tmp_path)["a"].tolist() == [1.0, -2.0, 0.15625]

    def test_a_failed_write_leaves_the_old_file_and_nothing_else(self, tmp_path, monkeypatch):
        path = tmp_path / FILE
        write_safetensors(path, {"a": np.ones(2)})

        def fill_the_disk(tensors, filename, metadata=None):
            pathlib.Path(filename).write_bytes(b"half")
            raise OSError("No space left on device")

        monkeypatch.setattr(safetensors.numpy, "save_file", fill_the_disk)
        with pytest.raises(OSError, match="No space left"):
            write_safetensors(path, {"a": np.zeros(2)})
        assert os.listdir(tmp_path) == [FILE]
        assert read_safetensors(path)["a"].tolist() == [1, 1]

    @pytest.mark.parametrize(
        "tensors, message",
        [
            ({"a": np.array(["text"])}, "`dtype` of `a`.*str"),
            ({"a": np.array([object()])}, "object"),
            ({"a": np.ones(2, "complex64")}, "complex64"),
        ],
    )
    def test_an_unsupported_dtype_is_refused_before_writing(self, tmp_path, tensors, message):
        with pytest.raises(ValueError, match=message):
            write_safetensors(tmp_path / FILE, tensors)
        assert os.listdir(tmp_path) == []

    def test_a_missing_folder_is_named(self, tmp_path):
        with pytest.raises(FileNotFoundError, match="nowhere"):
            write_safetensors(tmp_path / "nowhere" / FILE, {"a": np.ones(2)})

    @settings(max_examples=50, deadline=None, suppress_health_check=list(HealthCheck))
    @given(st.dictionaries(NAMES, st.tuples(SIZES, DTYPES), max_size=5))
    def test_any_arrays_are_read_as_they_were_written(self, tmp_path, description):
        rng = np.random.default_rng(0)
        arrays = {
            name: (rng.normal(size=shape) * 3).astype(dtype)
            for name, (shape, dtype) in description.items()
            if name != "__metadata__"
        }
        write_safetensors(tmp_path / FILE, arrays)
        assert_equal(read_safetensors(tmp_path), arrays)
