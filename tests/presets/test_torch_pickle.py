"""PyTorch's weights files are read, and nothing in them is run."""

import json
import os
import pathlib
import pickle
import re
import sys
import zipfile

import numpy as np
import pytest
import torch
from checks import cases
from foreign import bert_of_transformers, write_hugging_face
from hub_server import HubServer

import bert_keras
from bert_keras.presets.resolve import resolve
from bert_keras.presets.safetensors_io import read_safetensors
from bert_keras.presets.torch_pickle import read_torch

FORMATS = {
    "zip": {},
    "legacy": {"_use_new_zipfile_serialization": False},
}
DTYPES = ("float64", "float32", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint8")
SQUARE = torch.arange(24.0).reshape(4, 6)
TENSORS = {
    **{name: torch.arange(-3, 9).reshape(3, 4).to(getattr(torch, name)) for name in DTYPES},
    "bool": torch.tensor([[True, False], [False, True]]),
    "scalar": torch.tensor(2.5),
    "empty": torch.zeros(0, 5),
    "a storage that the others share": SQUARE,
    "transposed": SQUARE.T,
    "part": SQUARE[1:3, ::2],
    "column": SQUARE[:, 5],
    "axis of one": torch.arange(5).expand(1, -1),
    "parameter": torch.nn.Parameter(torch.ones(2, 2)),
}


class Named:
    """Pickles as a call of any function."""

    def __init__(self, function, *arguments):
        self.call = function, arguments

    def __reduce__(self):
        return self.call


def view(*place):
    """A tensor on four numbers, whose offset, shape and strides nobody has checked."""
    storage = torch.zeros(4)._typed_storage()
    return Named(torch._utils._rebuild_tensor_v2, storage, *place, False, {})


# PyTorch's words for a view beyond a storage, of an archive and of an older file.
BEYOND = "storage that is not resizable|storage has wrong byte size"


@pytest.fixture(params=FORMATS.values(), ids=FORMATS)
def save(request, tmp_path):
    def save(value, name="pytorch_model.bin", **options):
        torch.save(value, tmp_path / name, **request.param, **options)
        return tmp_path / name

    return save


def test_arrays_equal_the_tensors(save):
    found = read_torch(save(TENSORS))
    assert list(found) == list(TENSORS)
    for name, tensor in TENSORS.items():
        wanted = (tensor.float() if tensor.dtype == torch.bfloat16 else tensor).detach().numpy()
        array = found[name]
        assert found.shapes[name] == array.shape == wanted.shape
        assert array.dtype == wanted.dtype
        np.testing.assert_array_equal(array, wanted)


def test_without_a_safe_pytorch_the_error_says_what_to_install(save, monkeypatch):
    path = save(TENSORS)
    monkeypatch.setattr(torch, "__version__", torch.torch_version.TorchVersion("2.9.1"))
    with pytest.raises(ImportError, match=r"CVE-2026-24747.*pip install --upgrade torch"):
        read_torch(path)
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(ImportError, match=r"pip install torch`.*model\.safetensors"):
        read_torch(path)


@pytest.mark.skipif(
    not os.path.exists("/proc/self/status"), reason="only Linux tells a mapped file from memory"
)
def test_the_file_is_not_held_in_memory_beside_the_arrays(tmp_path):
    path = tmp_path / "pytorch_model.bin"
    torch.save({f"{i}": torch.ones(2**22) for i in range(8)}, path)

    def own_memory():
        status = pathlib.Path("/proc/self/status").read_text()
        return int(re.search(r"RssAnon:\s+(\d+) kB", status)[1]) * 1024

    before = own_memory()
    checkpoint = read_torch(path)
    for name in checkpoint:
        assert checkpoint[name].sum() == 2**22
    assert own_memory() - before < path.stat().st_size / 2


def test_values_that_tensors_share_count_once(save):
    numbers = torch.zeros(100)
    assert read_torch(save({"a": numbers, "b": numbers, "c": numbers[3:]})).num_values == 100


@cases(
    (Named(os.system, "touch evil"), r"asks for '(posix|nt)\.system'"),
    (
        {"a": torch.ones(2), "b": Named(eval, "open('evil', 'w')")},
        "asks for 'eval'",
    ),
    ({"a": Named(torch.load, "evil")}, r"asks for 'torch\.serialization\.load'"),
    (torch.nn.Linear(2, 2), r"asks for 'torch\.nn\.modules\.linear\.Linear'"),
    ({"a": torch.ones(2, dtype=torch.complex64)}, r"'a' is of type torch\.complex64"),
    ({"a": torch.ones(2).to_sparse()}, "'a' is no plain array, but .*torch.sparse_coo"),
    ({"a": torch.ones(2, device="meta")}, "'a' is no plain array, but .*meta"),
    ({"a": Named(torch._utils._rebuild_parameter, 1, 2, 3)}, "'int' object has no attribute"),
    ({"a": torch.ones(2), "b": {"c": torch.ones(2)}}, "'b' is of type dict"),
    ({"epoch": 3}, "'epoch' is of type int"),
    ({"is_best": True}, "'is_best' is of type bool"),
    ({7: torch.ones(2)}, "7 is of type torch.float32"),
    ([torch.ones(2)], "holds no dict"),
    ({"a": view(0, (5,), (1,))}, BEYOND),
    ({"a": view(0, (2**40,), (0,))}, "'a' reaches beyond its storage"),
    ({"a": view(0, 4, 1)}, r"TypeError: .*invalid (types|combination)"),
)
def test_anything_but_tensors_within_their_storages_is_refused(
    save, tmp_path, monkeypatch, value, problem
):
    monkeypatch.chdir(tmp_path)
    path = save(value)
    with pytest.raises(ValueError, match=problem) as raised:
        read_torch(path)
    assert str(path) in str(raised.value)
    assert "weights_only" not in str(raised.value)
    assert not os.path.exists("evil")


def test_a_pickle_of_python_s_is_refused(tmp_path):
    path = tmp_path / "training_args.bin"
    path.write_bytes(pickle.dumps(Named(os.system, "false"), protocol=2))
    with pytest.raises(ValueError, match=r"asks for '(posix|nt)\.system'.*save_pretrained"):
        read_torch(path)
    path.write_bytes(pickle.dumps({"a": 1}, protocol=2))
    with pytest.raises(ValueError, match=r"training_args\.bin cannot be read.*magic number"):
        read_torch(path)


def test_a_file_that_is_cut_off_is_called_incomplete_wherever_it_ends(save):
    path = save({**TENSORS, "last": torch.zeros(0, 5)})
    data = path.read_bytes()
    for size in (0, 1, 30, len(data) // 2, len(data) - 1):
        path.write_bytes(data[:size])
        with pytest.raises(ValueError, match=r"pytorch_model.*download it again\.$"):
            read_torch(path)


@pytest.mark.parametrize(
    ("start", "problem"),
    [
        (b"<!DOCTYPE html>", r"file of `torch\.save`.*b'<!DOCTYPE'.*download it again\.$"),
        (b"@\0\0\0\0\0\0\0{}", r"file of `torch\.save`.* It begins with b'@"),
        (
            b"version https://git-lfs.github.com",
            "Git LFS pointer.*`git lfs pull` in its repo[a-z.]*$",
        ),
        (bytes(1024), r"file of `torch\.save`.* It begins with b'"),
    ],
    ids=["page", "safetensors", "pointer", "tar"],
)
def test_a_file_of_another_kind_is_called_so(tmp_path, start, problem):
    path = tmp_path / "pytorch_model.bin"
    path.write_bytes(start)
    with pytest.raises(ValueError, match=problem):
        read_torch(path)


@pytest.mark.filterwarnings("ignore:Detected pickle protocol")
@pytest.mark.parametrize("protocol", [4, 5])
def test_a_protocol_that_pytorch_does_not_read_is_refused(save, protocol):
    path = save({"a": torch.ones(2)}, pickle_protocol=protocol)
    with pytest.raises(ValueError, match=r"pytorch_model\.bin.* with its default protocol\."):
        read_torch(path)


def test_an_archive_with_compressed_members_is_refused(tmp_path):
    path = tmp_path / "a.bin"
    torch.save({"a": torch.zeros(2**16)}, path)
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    with pytest.raises(ValueError, match=r"data\.pkl' is compressed"):
        read_torch(path)


def shards_of(tensors, folder, last="pytorch_model-00002-of-00002.bin"):
    names = ["pytorch_model-00001-of-00002.bin", last]
    weight_map = {name: names[i % 2] for i, name in enumerate(tensors)}
    for shard in names:
        part = {name: x for name, x in tensors.items() if weight_map[name] == shard}
        torch.save(part, folder / shard)
    index = folder / "pytorch_model.bin.index.json"
    index.write_text(json.dumps({"weight_map": weight_map}))


def test_a_shard_of_another_kind_is_refused(tmp_path):
    shards_of(TENSORS, tmp_path, "model.safetensors")
    with pytest.raises(ValueError, match=r"names the shard 'model\.safetensors'"):
        read_torch(tmp_path)


@pytest.fixture
def theirs(tmp_path):
    """A BertForSequenceClassification as transformers before version 4 saved it."""
    model = bert_of_transformers("SequenceClassification", id2label={0: "a", 1: "b", 2: "c"})
    write_hugging_face(tmp_path / "theirs", model)
    return tmp_path / "theirs"


def logits(folder):
    task = bert_keras.TextClassifier.from_preset(folder)
    return task.predict(["a b c", "d e", ""], verbose=0)


def as_pickle(folder, **options):
    tensors = {name: torch.tensor(x) for name, x in read_safetensors(folder).items()}
    torch.save(tensors, folder / "pytorch_model.bin", **options)
    return tensors


def test_of_both_formats_safetensors_is_read(theirs):
    expected = logits(theirs)
    (theirs / "pytorch_model.bin").write_bytes(b"damaged")
    np.testing.assert_array_equal(logits(theirs), expected)


@pytest.mark.parametrize("is_sharded", [False, True])
def test_the_hub_is_asked_for_a_pickle_only_without_other_weights(
    theirs, tmp_path, monkeypatch, is_sharded
):
    expected, tensors = logits(theirs), as_pickle(theirs)
    if is_sharded:
        shards_of(tensors, theirs)
        (theirs / "pytorch_model.bin").unlink()
    torch.save({}, theirs / "training_args.bin")
    with HubServer({"owner/name": theirs}) as hub:
        hub.use(monkeypatch, tmp_path / "cache")
        names = {path.name for path in resolve("hf://owner/name").iterdir()}
        assert not [name for name in names if name.endswith(".bin")]
    (theirs / "model.safetensors").unlink()
    with HubServer({"owner/name": theirs}) as hub:
        hub.use(monkeypatch, tmp_path / "another")
        np.testing.assert_array_equal(logits("hf://owner/name"), expected)
        assert not [request for request in hub.requests if "training_args" in request]
