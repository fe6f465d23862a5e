"""Malicious files are refused in little memory, and nothing in them is run."""

import contextlib
import io
import json
import os
import pathlib
import resource
import stat
import zipfile

import h5py
import keras
import numpy as np
import pytest
import tokenizers
from checks import cases, make_backbones_once
from files import change_json, read_json, write_json
from foreign import write_tf_checkpoint
from targets import TARGETS
from tiny import VOCABULARY, tiny_classifier
from tokenizers import models, normalizers, pre_tokenizers

import bert_keras
from bert_keras.heads.sequence import SequenceHead
from bert_keras.models.backbone import Backbone
from bert_keras.tokenizers import Tokenizer, WordPieceTokenizer

pytestmark = pytest.mark.once


@pytest.fixture(autouse=True)
def little_memory():
    """Limits the process to half a gigabyte more than it has."""
    statm = pathlib.Path("/proc/self/statm")
    if not statm.exists():
        yield
        return
    size = int(statm.read_text().split()[0]) * resource.getpagesize()
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (size + 2**29, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_AS, before)


@pytest.fixture(scope="module")
def members(tmp_path_factory):
    """The members of a classifier's `.keras` file, a dict of bytes."""
    path = tmp_path_factory.mktemp("saved") / "right.keras"
    tiny_classifier().save(path)
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def packed(members, path, packing=zipfile.ZIP_STORED):
    with zipfile.ZipFile(path, "w", packing) as archive:
        for name, content in members.items():
            archive.writestr(name, content)


def with_config(members, change):
    """Returns the members with a config.json that a function changed in place."""
    config = json.loads(members["config.json"])
    found = change(config)
    return {**members, "config.json": json.dumps(found or config).encode()}


def with_weights(members, change):
    """Returns the members with weights that a function changed in an open HDF5 file."""
    weights = io.BytesIO(members["model.weights.h5"])
    with h5py.File(weights, "r+") as file:
        datasets = []
        file.visititems(lambda name, x: datasets.append(name) if hasattr(x, "shape") else None)
        change(file, max(datasets, key=lambda name: file[name].size))
    return {**members, "model.weights.h5": weights.getvalue()}


def in_backbone(**sizes):
    return lambda config: config["config"]["backbone"]["config"].update(sizes)


def in_task(**arguments):
    return lambda config: config["config"].update(arguments)


def in_tokenizer(**arguments):
    def change(config):
        config["config"]["preprocessor"]["config"]["tokenizer"].update(arguments)

    return change


def lambda_layer(config):
    layer = keras.layers.Lambda(lambda x: os.system("false") or x)
    return keras.saving.serialize_keras_object(keras.Sequential([keras.Input((1,)), layer]))


def relinked(file, name):
    del file[name]
    file[name] = h5py.ExternalLink("/etc/passwd", "x")


def outside(file, name):
    shape = file[name].shape
    del file[name]
    file.create_dataset(name, shape, "float32", external=[("/etc/passwd", 0, h5py.h5f.UNLIMITED)])


def huge(file, name):
    del file[name]
    file.create_dataset(name, (2**20, 2**20), "float32", chunks=(1024, 1024))


def of(module, class_name, config=None):
    saved = {"module": module, "class_name": class_name, "registered_name": class_name}
    return {**saved, "config": {} if config is None else config}


def registered(cls, config):
    """Returns the serialized form of one of our classes."""
    name = keras.saving.get_registered_name(cls)
    return of(cls.__module__, cls.__name__, config) | {"registered_name": name}


HEAD = registered(SequenceHead, {"num_classes": 2, "hidden_dim": 16})
CONFIGS = {
    "code in a Lambda layer": lambda_layer,
    "a function of Python's": in_backbone(activation=of("os", "function", "system")),
    "a class of Python's": in_task(backbone=of("subprocess", "Popen", {"args": ["false"]})),
    "a head for a backbone": in_task(backbone=HEAD),
    "a head for a preprocessor": in_task(preprocessor=HEAD),
    "a task for a head": in_task(head_options={"hidden_activation": HEAD}),
    "a million layers": in_backbone(num_layers=10**6),
    "a thousand layers": in_backbone(num_layers=1024),
    "rows without number": in_backbone(vocabulary_size=2**40),
    "sixteen million rows": in_backbone(vocabulary_size=2**24),
    "positions": in_backbone(max_sequence_length=2**20),
    "segments": in_backbone(num_segments=1024, hidden_dim=16 * 1024),
    "a wide encoder": in_backbone(hidden_dim=20_000),
    "wide blocks": in_backbone(intermediate_dim=2**18),
    "a million classes": in_task(num_classes=2**20),
    "classes without number": in_task(num_classes=2**40),
    "a path for a vocabulary": in_tokenizer(vocabulary="/dev/zero"),
    "a negative size": in_backbone(hidden_dim=-16),
    "a size that is none": in_backbone(hidden_dim="16"),
    "no config": lambda config: {"a": 1},
}
DEEP, TOKENIZER = b"[" * 100_000, "assets/tokenizer.json"


MEMBERS = {
    "a name that climbs": lambda members: {**members, "assets/../../evil": b""},
    "a name from the root": lambda members: {**members, "/evil": b""},
    "a name of Windows": lambda members: {**members, "assets\\..\\..\\evil": b""},
    "a file of another kind": lambda members: {**members, "code.py": b""},
    "deep JSON": lambda members: {**members, "config.json": DEEP},
    "deep JSON in its place": lambda members: {
        **members,
        "config.json": members["config.json"].replace(b'"name"', b'"x": ' + DEEP, 1),
    },
    "a deep tokenizer": lambda members: {**members, TOKENIZER: b'{"a":' * 100_000},
    "no tokenizer": lambda members: {k: x for k, x in members.items() if "assets" not in k},
    "no weights": lambda members: {**members, "model.weights.h5": b""},
    "weights from another file": lambda members: with_weights(members, relinked),
    "values from another file": lambda members: with_weights(members, outside),
    "values that are not there": lambda members: with_weights(members, huge),
}


def check_refused(path):
    before = sorted(path.parent.iterdir())
    with pytest.raises((ValueError, TypeError)) as caught:
        bert_keras.load_model(path)
    assert str(path) in str(caught.value)
    assert sorted(path.parent.iterdir()) == before
    return caught.value


def causes(error):
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


@pytest.mark.parametrize("name", [*CONFIGS, *MEMBERS])
def test_a_malicious_keras_file_is_refused(members, tmp_path, name):
    changed = with_config(members, CONFIGS[name]) if name in CONFIGS else MEMBERS[name](members)
    packed(changed, tmp_path / "x.keras")
    error = check_refused(tmp_path / "x.keras")
    assert not any(isinstance(cause, MemoryError) for cause in causes(error))


def test_a_keras_file_with_a_bomb_a_link_or_a_repeated_name_is_refused(members, tmp_path):
    path = tmp_path / "x.keras"
    packed({**members, "assets/zeros": bytes(2**27)}, path, zipfile.ZIP_DEFLATED)
    assert path.stat().st_size < 2**19
    assert "would unpack to" in str(check_refused(path))
    packed(members, path)
    with zipfile.ZipFile(path, "a") as archive:
        link = zipfile.ZipInfo("assets/preprocessor/tokenizer.json.link")
        link.external_attr = (stat.S_IFLNK | 0o777) << 16
        archive.writestr(link, "/etc/passwd")
    assert "has a member" in str(check_refused(path))
    packed(members, path)
    with zipfile.ZipFile(path, "a") as archive, pytest.warns(UserWarning, match="Duplicate"):
        archive.writestr("config.json", members["config.json"])
    assert "of one name" in str(check_refused(path))


def test_a_valid_file_that_was_compressed_is_read(members, tmp_path):
    packed(members, tmp_path / "x.keras", zipfile.ZIP_DEFLATED)
    model = bert_keras.load_model(tmp_path / "x.keras")
    assert model.classify("a b")["label"] in (0, 1)


# Format -> the file with its config, and how it is loaded.
FORMATS = {
    "own_preset": ("config.json", Backbone.from_preset),
    "hugging_face": ("config.json", bert_keras.TextClassifier.from_preset),
    "keras_hub": ("config.json", bert_keras.TextClassifier.from_preset),
    "tf1": ("bert_config.json", Backbone.from_preset),
}
# Our name of a size -> theirs, and a value too large.
SIZES = {
    "hidden_dim": ("hidden_size", 20_000),
    "num_layers": ("num_hidden_layers", 1024),
    "vocabulary_size": ("vocab_size", 2**24),
    "max_sequence_length": ("max_position_embeddings", 2**20),
    "intermediate_dim": ("intermediate_size", 2**18),
}


@pytest.mark.parametrize("preset", FORMATS)
def test_no_model_is_made_that_is_larger_than_its_weights(tmp_path, preset):
    name, load = FORMATS[preset]
    TARGETS[preset].write(tmp_path)
    right = (tmp_path / name).read_text()
    for ours, (theirs, size) in SIZES.items():
        config = json.loads(right)
        sizes = config.get("config", config)
        assert len({ours, theirs} & sizes.keys()) == 1
        sizes[ours if ours in sizes else theirs] = size
        write_json(tmp_path / name, config)
        with pytest.raises(ValueError, match="one that its weights fill"):
            load(tmp_path)
    (tmp_path / name).write_text(right)
    load(tmp_path)
    if preset == "tf1":
        write_tf_checkpoint(tmp_path / "bert_model.ckpt", {"global_step": np.array(1)})
        with pytest.raises(ValueError, match="one that its weights fill"):
            load(tmp_path)


def test_no_head_is_made_that_is_larger_than_its_weights(tmp_path):
    tiny_classifier().save_to_preset(tmp_path)
    config = read_json(tmp_path / "task.json")["config"]
    change_json(tmp_path / "task.json", config={**config, "num_classes": 2**20})
    with pytest.raises(ValueError, match="one that its weights fill"):
        bert_keras.TextClassifier.from_preset(tmp_path)
    # Another number of classes makes a new head.
    with pytest.warns(UserWarning, match="starts at random"):
        task = bert_keras.TextClassifier.from_preset(tmp_path, num_classes=9000)
    assert task.num_classes == 9000


@pytest.mark.parametrize("preset", FORMATS)
def test_pipes_and_devices_in_place_of_files_are_not_opened(tmp_path, preset, monkeypatch):
    make_backbones_once(monkeypatch)
    _, load = FORMATS[preset]
    TARGETS[preset].write(tmp_path)
    for path in sorted(tmp_path.rglob("*.*")):
        content = path.read_bytes()
        path.unlink()
        for make in (os.mkfifo, lambda path: path.symlink_to("/dev/zero")):
            make(path)
            with contextlib.suppress(ValueError, OSError, StopIteration):
                load(tmp_path)
            path.unlink()
        path.write_bytes(content)


def test_a_truncated_vocabulary_is_refused(tmp_path):
    WordPieceTokenizer(VOCABULARY).save(tmp_path)
    (tmp_path / "vocab.txt").write_text("\n".join(VOCABULARY[:10]) + "\n")
    assert Tokenizer.load(tmp_path).vocabulary == VOCABULARY
    (tmp_path / "tokenizer.json").unlink()
    for name in ("config.json", "bert_config.json"):
        (tmp_path / name).write_text('{"vocab_size": 21}')
        with pytest.raises(ValueError, match=r"vocab\.txt with 10 tokens, .* 21"):
            Tokenizer.load(tmp_path)
        (tmp_path / name).unlink()
    # Tables are often padded to a multiple of 8, 64, ...
    (tmp_path / "config.json").write_text('{"vocab_size": 16}')
    assert Tokenizer.load(tmp_path).vocabulary_size == 10
    assert Tokenizer.load(tmp_path / "vocab.txt").vocabulary_size == 10


def piece_tokenizer(normalizer=(), pattern=None, **settings):
    """Returns the JSON of a tokenizer with a pattern that splits words, as an object."""
    vocabulary = {token: id for id, token in enumerate(VOCABULARY)}
    backend = tokenizers.Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]", **settings))
    backend.normalizer = normalizers.Sequence(list(normalizer))
    backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    if pattern is not None:
        backend.pre_tokenizer = pre_tokenizers.Split(tokenizers.Regex(pattern), "isolated")
    return json.loads(backend.to_str())


def with_a_huge_id():
    saved = piece_tokenizer()
    saved["model"]["vocab"]["z"] = 2**31
    return saved


@cases(
    (piece_tokenizer(max_input_chars_per_word=10**9), "from 1 to 1000"),
    (piece_tokenizer([normalizers.Replace("a", "aaaa")] * 12), "must not grow"),
    (piece_tokenizer([normalizers.Prepend("a" * 1000)]), "must not grow"),
    (
        piece_tokenizer([normalizers.Replace("a", "b" * 9), normalizers.Replace("b", "a" * 9)]),
        "must not grow",
    ),
    (with_a_huge_id(), "without a gap"),
)
def test_a_tokenizer_that_would_exhaust_a_machine_is_refused(tmp_path, saved, message):
    write_json(tmp_path / "tokenizer.json", saved)
    with pytest.raises(ValueError, match=message) as caught:
        Tokenizer.load(tmp_path)
    assert str(tmp_path) in str(caught.value)


# Their time doubles with each character.
EXPONENTIAL = (r"(a|aa)+$", r"(a+)+$", r"(?:(x|a*)b?)*$")
# From published tokenizers.
PATTERNS = (
    *EXPONENTIAL,
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
    r" {2,}",
    r"((?<=[a-z])(b+)|(c\(+d)e+)(f*)",
)


@pytest.mark.parametrize("pattern", PATTERNS)
def test_patterns_are_accepted_and_fail_on_a_text_that_takes_too_long(tmp_path, pattern):
    write_json(tmp_path / "tokenizer.json", piece_tokenizer(pattern=pattern))
    tokenizer = Tokenizer.load(tmp_path)
    assert tokenizer.tokenize("a") == ["a"]
    if pattern in EXPONENTIAL:
        with pytest.raises(ValueError, match="This tokenizer's settings fail"):
            tokenizer.tokenize("a" * 3000 + "!")


@pytest.mark.parametrize("made", [set, frozenset, dict.fromkeys])
def test_a_vocabulary_without_an_order_is_refused(made):
    with pytest.raises(TypeError, match="must have an order"):
        WordPieceTokenizer(made(VOCABULARY))
