"""TensorFlow's checkpoints, written by TensorFlow."""

import os
import re
import sys

import ml_dtypes
import numpy as np
import pytest
from foreign import write_tf_checkpoint

from bert_keras.presets.formats.tf1 import read_tf_checkpoint


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


def data_path(prefix, shard=0, num_shards=1):
    return prefix.with_name(f"{prefix.name}.data-{shard:05d}-of-{num_shards:05d}")


@pytest.fixture
def prefix(tmp_path):
    return tmp_path / "m.ckpt"


@pytest.fixture
def written(prefix):
    """A checkpoint with tensors of all kinds, in three data files."""
    import tensorflow

    tensors = tensors_of_all_kinds()
    prefixes = [f"{prefix}-{i}" for i in range(3)]
    for i, shard in enumerate(prefixes):
        write_tf_checkpoint(shard, {name: tensors[name] for name in list(tensors)[i::3]})
    tensorflow.raw_ops.MergeV2Checkpoints(
        checkpoint_prefixes=prefixes, destination_prefix=str(prefix)
    )
    return prefix


def test_arrays_equal_the_tensors(written):
    found = read_tf_checkpoint(written)
    expected = tensors_of_all_kinds()
    assert set(found) == set(expected) == set(found.shapes)
    for name, array in expected.items():
        assert found.shapes[name] == array.shape
        if array.dtype == ml_dtypes.bfloat16:
            array = array.astype("float32")
        np.testing.assert_array_equal(found[name], array, strict=True)


def test_without_tensorflow_the_error_says_what_to_install(written, monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorflow", None)
    with pytest.raises(ImportError, match=r"pip install tensorflow`.*model\.safetensors"):
        read_tf_checkpoint(written)


def test_a_missing_file_is_named(written):
    data_path(written, 1, 3).unlink()
    with pytest.raises(
        ValueError, match=r"all its data files.*Found: m\.ckpt\.data-00000-of-00003, "
    ):
        read_tf_checkpoint(written)
    os.remove(f"{written}.index")
    with pytest.raises(FileNotFoundError, match=r"must have an index.*m\.ckpt\.index"):
        read_tf_checkpoint(written)


@pytest.mark.parametrize("name", ["a[1]/m.ckpt", "m[2].ckpt"])
def test_a_path_with_brackets_is_refused_with_the_reason(tmp_path, name):
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    write_tf_checkpoint(tmp_path / "m.ckpt", {"a": np.ones(3, "float32")})
    for ending in (".index", ".data-00000-of-00001"):
        os.rename(f"{tmp_path / 'm.ckpt'}{ending}", f"{path}{ending}")
    with pytest.raises(ValueError, match=rf"{re.escape(name)}\.index cannot.*have no brackets"):
        read_tf_checkpoint(path)
