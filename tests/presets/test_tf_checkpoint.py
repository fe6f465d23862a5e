"""TensorFlow's checkpoints, which are read without TensorFlow."""

import os
import sys

import ml_dtypes
import numpy as np
import pytest
from bundle_writer import (
    MAGIC,
    block,
    data_path,
    entry,
    field,
    header,
    masked_crc32c,
    table,
    varint,
    write_bundle,
)

from bert_keras.presets import tf_checkpoint
from bert_keras.presets.tf_checkpoint import read_tensor_bundle

RAW = np.arange(6, dtype="float32").tobytes()
GOOD = (1, (2, 3), 0, 0, 24, masked_crc32c(RAW))


def tensors_of_all_kinds():
    rng = np.random.default_rng(0)
    return {
        "bert/embeddings/word_embeddings": rng.normal(size=(7, 4)).astype("float32"),
        "bert/a": rng.normal(size=(3, 2, 2)).astype("float64"),
        "bert/a/adam_m": rng.normal(size=5).astype("float16"),
        "bert/b": rng.normal(size=(2, 9)).astype(ml_dtypes.bfloat16),
        "empty": np.zeros((0, 3), "float32"),
        "flags": np.array([True, False, True]),
        "global_step": np.array(2**40),
        "ids": rng.integers(-9, 9, (4, 1)).astype("int32"),
        "large": rng.normal(size=(300, 200)).astype("float32"),
    }


def assert_equal(actual, expected):
    assert set(actual) == set(expected) == set(actual.shapes)
    assert len(actual) == len(expected)
    for name, array in expected.items():
        assert name in actual
        assert actual.shapes[name] == array.shape
        if array.dtype == ml_dtypes.bfloat16:
            array = array.astype("float32")
        np.testing.assert_array_equal(actual[name], array, strict=True)


@pytest.fixture
def prefix(tmp_path):
    return tmp_path / "m.ckpt"


@pytest.fixture
def index(tmp_path):
    return tmp_path / "m.ckpt.index"


@pytest.fixture
def written(prefix):
    """A checkpoint with tensors of all kinds."""
    write_bundle(prefix, tensors_of_all_kinds())
    return prefix


def index_of(*entries, first=None, **options):
    """Returns an index of some entries, whose names are `a` or stand before them."""
    rows = [e if isinstance(e, tuple) else (b"a", e) for e in entries]
    return table([first or header(), *rows], share=False, **options)


def read_all(prefix):
    bundle = read_tensor_bundle(prefix)
    return {name: bundle[name] for name in bundle}


def test_tensorflows_checkpoints_are_read(tmp_path, prefix):
    tensorflow = pytest.importorskip("tensorflow")
    tensors = tensors_of_all_kinds()
    names, prefixes = list(tensors), [str(tmp_path / f"part{i}") for i in range(3)]
    for i, shard in enumerate(prefixes):  # three data files, joined as a sharded save does it
        held = names[i::3]
        values = [tensorflow.convert_to_tensor(tensors[name]) for name in held]
        tensorflow.raw_ops.SaveV2(
            prefix=shard, tensor_names=held, shape_and_slices=[""] * len(held), tensors=values
        )
    assert_equal(read_tensor_bundle(prefixes[1]), {name: tensors[name] for name in names[1::3]})
    tensorflow.raw_ops.MergeV2Checkpoints(
        checkpoint_prefixes=prefixes, destination_prefix=str(prefix)
    )
    assert data_path(prefix, 2, 3).is_file()
    assert_equal(read_tensor_bundle(prefix), tensors)


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (bytes(32), 0x8A9136AA),
        (b"\xff" * 32, 0x62A8AB43),
        (bytes(range(32)), 0x46DD794E),
        (b"123456789", 0xE3069283),
        (b"", 0),
    ],
)
def test_checksums_are_those_of_rfc_3720_under_tensorflows_mask(data, expected):
    rotated = (expected >> 15 | expected << 17) & 0xFFFFFFFF
    assert masked_crc32c(data) == (rotated + 0xA282EAD8) % 2**32
    assert masked_crc32c(np.frombuffer(data, np.uint8)) == masked_crc32c(data)


def test_without_the_package_for_checksums_the_error_says_what_to_install(written, monkeypatch):
    monkeypatch.setitem(sys.modules, "google_crc32c", None)
    with pytest.raises(ImportError, match=r"pip install '\.\[tf1\]'"):
        read_tensor_bundle(written)


def test_an_index_of_many_blocks_with_long_common_prefixes_is_read(prefix):
    tensors = {f"bert/layer_{i}/kernel": np.full((2,), i, "float32") for i in range(300)}
    write_bundle(prefix, tensors, num_shards=2, rows_per_block=37)
    assert_equal(read_tensor_bundle(prefix), tensors)


def test_tensorflow_reads_what_the_tests_write(prefix):
    """So the damaged files below differ from right ones only in the damage."""
    tensorflow = pytest.importorskip("tensorflow")
    tensors = tensors_of_all_kinds()
    write_bundle(prefix, tensors, num_shards=2, rows_per_block=4)
    reader = tensorflow.train.load_checkpoint(str(prefix))
    assert set(reader.get_variable_to_shape_map()) == set(tensors)
    for name, array in tensors.items():
        np.testing.assert_array_equal(reader.get_tensor(name), array)


REFUSED = [
    ("bytes 4 to 28 of m.ckpt.data", index_of(entry(1, (2, 3), 0, 4, 24, 0))),
    ("goes|bytes 18446744073709551615", index_of(entry(1, (2, 3), 0, -1, 24, 0))),
    (r"shape \(2, 4\) of float32 in 24", index_of(entry(1, (2, 4), 0, 0, 24, 0))),
    ("impossible shape", index_of(entry(1, (-1, 6), 0, 0, 24, 0))),
    ("impossible shape", index_of(entry(1, (1,) * 40, 0, 0, 4, 0))),
    ("data file 7 of 1", index_of(entry(1, (2, 3), 7, 0, 24, 0))),
    ("slices", index_of(entry(*GOOD, further=field(7, b"")))),
    ("twice", index_of(entry(*GOOD), entry(*GOOD))),
    ("goes beyond", index_of(entry(*GOOD)[:-3])),
    ("impossible entry", index_of(field(1, 1) + field(2, b"") + field(4, b"x"))),
    ("number is where a message", index_of(field(1, 1) + field(2, 5))),
    ("no known shape", index_of(field(1, 1) + field(2, field(3, 1)))),
    ("type 3", index_of(varint(1 << 3 | 3))),
    ("longer than 64 bits", index_of(b"\x08" + b"\xff" * 11)),
    ("impossible name", index_of((b"a" * 2000, entry(*GOOD)))),
    ("big-endian", index_of(entry(*GOOD), first=header(endianness=1))),
    ("0 data files", index_of(entry(*GOOD), first=header(num_shards=0))),
    ("18446744073709551615 data files", index_of(entry(*GOOD), first=header(num_shards=-1))),
    ("compressed", index_of(entry(*GOOD), compression=1)),
    ("git lfs pull", b"version https://git-lfs.github.com/spec/v1\n"),
]


@pytest.mark.parametrize(("message", "content"), REFUSED, ids=[message for message, _ in REFUSED])
def test_an_index_that_cannot_be_right_is_refused(prefix, index, message, content):
    index.write_bytes(content)
    data_path(prefix).write_bytes(RAW)
    with pytest.raises(ValueError, match=message) as raised:
        read_tensor_bundle(prefix)
    assert "m.ckpt.index" in str(raised.value)


def test_text_is_listed_but_not_read(prefix, index):
    index.write_bytes(index_of((b"text", entry(7, (1,), 0, 0, 9, 0))))
    data_path(prefix).write_bytes(RAW)
    bundle = read_tensor_bundle(prefix)
    assert bundle.shapes == {"text": (1,)}
    with pytest.raises(ValueError, match="must hold numbers"):
        bundle["text"]


def test_damaged_data_are_noticed_when_they_are_read_and_truncated_ones_before(written):
    path = data_path(written)
    data = bytearray(path.read_bytes())
    data[-1] ^= 0x10
    path.write_bytes(data)
    bundle = read_tensor_bundle(written)
    bundle["ids"]
    with pytest.raises(ValueError, match=r"'large'.*which has another"):
        bundle["large"]
    path.write_bytes(data[:-1])
    with pytest.raises(ValueError, match=r"'large' is at the bytes .* download it again"):
        read_tensor_bundle(written)


def test_an_index_that_would_fill_the_memory_is_refused(prefix, index, monkeypatch):
    """A name may repeat the one before it in three bytes: small files can ask for a lot."""
    assert tf_checkpoint._MOST_TENSORS * tf_checkpoint._LONGEST_NAME <= 2**26
    monkeypatch.setattr(tf_checkpoint, "_MOST_TENSORS", 50)
    rows = [header(), *((b"k" * 999 + b"%06d" % i, b"") for i in range(51))]
    index.write_bytes(table(rows))
    with pytest.raises(ValueError, match="more than 50 tensors"):
        read_tensor_bundle(prefix)
    os.truncate(index, 2**40)
    with pytest.raises(ValueError, match="more than 16777216 bytes"):
        read_tensor_bundle(prefix)


def test_a_missing_file_is_named(prefix):
    with pytest.raises(FileNotFoundError, match=r"must have an index.*m\.ckpt\.index"):
        read_tensor_bundle(prefix)
    write_bundle(prefix, tensors_of_all_kinds(), num_shards=3)
    data_path(prefix, 1, 3).unlink()
    with pytest.raises(
        FileNotFoundError, match=r"all its data files.*m\.ckpt\.data-00001-of-00003"
    ):
        read_tensor_bundle(prefix)


def test_every_truncation_and_every_damaged_byte_of_an_index_is_an_error(prefix, index):
    write_bundle(prefix, {"a/kernel": np.ones((2, 3), "float32"), "a/bias": np.ones(3, "float32")})
    data = index.read_bytes()
    for size in range(len(data)):
        index.write_bytes(data[:size])
        with pytest.raises(ValueError, match=r"m\.ckpt\.index"):
            read_tensor_bundle(prefix)
    # No reader needs the block about the table, which TensorFlow leaves empty, its address, and
    # the zeros that pad the last 48 bytes.
    unused = data.index(block([]))
    needless = {*range(unused, unused + len(block([]))), *range(len(data) - 48, len(data) - 8)}
    for position in range(len(data)):
        damaged = bytearray(data)
        damaged[position] ^= 0x81
        index.write_bytes(damaged)
        try:
            assert set(read_all(prefix)) == {"a/kernel", "a/bias"}
            assert position in needless
        except ValueError:
            pass


def test_damaged_bytes_with_right_checksums_raise_only_these_errors(prefix, index):
    """A hostile index has right checksums and arbitrary numbers."""
    rng = np.random.default_rng(0)
    data_path(prefix).write_bytes(RAW)
    body = block([header(), (b"a", entry(*GOOD)), (b"ab", entry(*GOOD))])[:-5]
    outcomes = set()
    for _ in range(400):
        damaged = bytearray(body)
        for _ in range(rng.integers(1, 4)):
            damaged[rng.integers(len(damaged))] = rng.integers(256)
        raw = bytes(damaged) + b"\0"
        raw += masked_crc32c(raw).to_bytes(4, "little")
        rest = block([(b"ab", varint(0) + varint(len(raw) - 5))])
        footer = varint(0) + varint(0) + varint(len(raw)) + varint(len(rest) - 5)
        index.write_bytes(raw + rest + footer.ljust(40, b"\0") + MAGIC)
        try:
            read_all(prefix)
            outcomes.add("read")
        except (ValueError, FileNotFoundError) as error:
            outcomes.add(type(error).__name__)
    assert outcomes == {"read", "ValueError", "FileNotFoundError"}
