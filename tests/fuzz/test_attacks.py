"""Files made to do harm, one a row: each is refused in little memory, and nothing in it is run."""

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
import pytest
import tokenizers
from bundle_writer import write_bundle
from targets import TARGETS
from tiny import VOCABULARY, tiny_classifier
from tokenizers import models, normalizers, pre_tokenizers

import bert_keras
from bert_keras.models.backbone import Backbone
from bert_keras.tokenizers import BytePairTokenizer, Tokenizer, UnigramTokenizer, WordPieceTokenizer

pytestmark = pytest.mark.once


@pytest.fixture(autouse=True)
def little_memory():
    """The process gets half a gigabyte more and no more."""
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
    """The members with another config.json, which a function changes in place."""
    config = json.loads(members["config.json"])
    found = change(config)
    return {**members, "config.json": json.dumps(found or config).encode()}


def with_weights(members, change):
    """The members with other weights, an open HDF5 file that a function changes."""
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


HEAD = {"module": "bert_keras.heads.sequence", "class_name": "SequenceHead"}
HEAD |= {"registered_name": "bert_keras>SequenceHead"}
HEAD["config"] = {"num_classes": 2, "hidden_dim": 16}
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
    "a path for a vocabulary": lambda config: config["config"]["preprocessor"]["config"][
        "tokenizer"
    ].update(vocabulary="/dev/zero"),
    "a negative size": in_backbone(hidden_dim=-16),
    "a size that is none": in_backbone(hidden_dim="16"),
    "no config": lambda config: {"a": 1},
}
MEMBERS = {
    "a name that climbs": lambda members: {**members, "assets/../../evil": b""},
    "a name from the root": lambda members: {**members, "/evil": b""},
    "a name of Windows": lambda members: {**members, "assets\\..\\..\\evil": b""},
    "a file of another kind": lambda members: {**members, "code.py": b""},
    "deep JSON": lambda members: {**members, "config.json": b"[" * 100_000},
    "deep JSON in its place": lambda members: {
        **members,
        "config.json": members["config.json"].replace(b'"name"', b'"x": ' + b"[" * 100_000, 1),
    },
    "a deep tokenizer": lambda members: {
        name: b'{"a":' * 100_000 if name.endswith("tokenizer.json") else content
        for name, content in members.items()
    },
    "no tokenizer": lambda members: {
        name: content for name, content in members.items() if "assets" not in name
    },
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


@pytest.mark.parametrize("name", CONFIGS)
def test_a_keras_file_with_such_a_config_is_refused(members, tmp_path, name):
    packed(with_config(members, CONFIGS[name]), tmp_path / "x.keras")
    error = check_refused(tmp_path / "x.keras")
    assert not any(isinstance(cause, MemoryError) for cause in causes(error))


@pytest.mark.parametrize("name", MEMBERS)
def test_a_keras_file_with_such_members_is_refused(members, tmp_path, name):
    packed(MEMBERS[name](members), tmp_path / "x.keras")
    error = check_refused(tmp_path / "x.keras")
    assert not any(isinstance(cause, MemoryError) for cause in causes(error))


def test_a_keras_file_that_expands_or_links_or_repeats_is_refused(members, tmp_path):
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


def test_a_right_file_packed_again_and_smaller_is_read(members, tmp_path):
    packed(members, tmp_path / "x.keras", zipfile.ZIP_DEFLATED)
    model = bert_keras.load_model(tmp_path / "x.keras")
    assert model.classify("a b")["label"] in (0, 1)
    with pytest.raises(FileNotFoundError, match=r"none\.keras"):
        bert_keras.load_model(tmp_path / "none.keras")


@pytest.mark.parametrize("name", ["a million layers", "rows without number", "a wide encoder"])
def test_keras_itself_reads_none_of_the_largest(members, tmp_path, name):
    """By the constructors' own limits, which know of no file."""
    sizes = {"hidden_dim": 2**15, "intermediate_dim": 2**17, "num_layers": 8}
    change = in_backbone(**sizes) if name == "a wide encoder" else CONFIGS[name]
    packed(with_config(members, change), tmp_path / "x.keras")
    with pytest.raises((ValueError, TypeError), match=r"must be an int from|are allowed"):
        keras.saving.load_model(tmp_path / "x.keras")


# Presets of each format: the config, its keys, and the sizes that it has in the seeds.
FORMATS = {
    "own_preset": ("config.json", Backbone.from_preset),
    "hugging_face": ("config.json", bert_keras.TextClassifier.from_preset),
    "keras_hub": ("config.json", bert_keras.TextClassifier.from_preset),
    "tf1": ("bert_config.json", Backbone.from_preset),
}
SIZES = {
    "hidden_dim": ("hidden_size", 20_000),
    "num_layers": ("num_hidden_layers", 1024),
    "vocabulary_size": ("vocab_size", 2**24),
    "max_sequence_length": ("max_position_embeddings", 2**20),
    "intermediate_dim": ("intermediate_size", 2**18),
}


@pytest.mark.parametrize("preset", FORMATS)
def test_a_config_that_asks_for_more_than_its_weights_fill_makes_no_model(tmp_path, preset):
    name, load = FORMATS[preset]
    TARGETS[preset].write(tmp_path)
    right = (tmp_path / name).read_text()
    for ours, (theirs, size) in SIZES.items():
        config = json.loads(right)
        place = config.get("config", config)
        assert len({ours, theirs} & place.keys()) == 1
        place[ours if ours in place else theirs] = size
        (tmp_path / name).write_text(json.dumps(config))
        with pytest.raises(ValueError, match="one that its weights fill"):
            load(tmp_path)
    (tmp_path / name).write_text(right)
    load(tmp_path)


def test_a_head_that_asks_for_more_than_its_weights_fill_is_not_made(tmp_path):
    tiny_classifier().save_to_preset(tmp_path)
    saved = json.loads((tmp_path / "task.json").read_text())
    saved["config"]["num_classes"] = 2**20
    (tmp_path / "task.json").write_text(json.dumps(saved))
    with pytest.raises(ValueError, match="one that its weights fill"):
        bert_keras.TextClassifier.from_preset(tmp_path)
    # Who asks for other classes gets a new head.
    with pytest.warns(UserWarning, match="starts at random"):
        task = bert_keras.TextClassifier.from_preset(tmp_path, num_classes=9000)
    assert task.num_classes == 9000


def piece_tokenizer(**settings):
    vocabulary = {token: id for id, token in enumerate(VOCABULARY)}
    backend = tokenizers.Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]", **settings))
    backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    return backend


def with_normalizer(*parts):
    backend = piece_tokenizer()
    backend.normalizer = normalizers.Sequence(list(parts))
    return backend


def with_pattern(pattern):
    backend = piece_tokenizer()
    backend.pre_tokenizer = pre_tokenizers.Split(tokenizers.Regex(pattern), "isolated")
    return backend


HARMFUL = {
    "words": (lambda: piece_tokenizer(max_input_chars_per_word=10**9), "from 1 to 1000"),
    "growth": (
        lambda: with_normalizer(*[normalizers.Replace("a", "aaaa")] * 12),
        "must not grow",
    ),
    "prefix": (lambda: with_normalizer(normalizers.Prepend("a" * 1000)), "must not grow"),
    "repeats": (lambda: with_pattern(r"(a+)+$"), "must not repeat"),
    "deeper repeats": (lambda: with_pattern(r"(?:(x|a*)b)*"), "must not repeat"),
    "open repeats": (lambda: with_pattern(r"([a-z]{2,}|\d)*z"), "must not repeat"),
}


@pytest.mark.parametrize("name", HARMFUL)
def test_a_tokenizer_that_would_exhaust_a_machine_is_refused(tmp_path, name):
    make, message = HARMFUL[name]
    make().save(str(tmp_path / "tokenizer.json"))
    with pytest.raises(ValueError, match=message) as caught:
        Tokenizer.load(tmp_path)
    assert str(tmp_path) in str(caught.value)


# Of published tokenizers.
PATTERNS = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
    r" {2,}",
    r"((?<=[a-z])(b+)|(c\(+d)e+)(f*)",
)


@pytest.mark.parametrize("pattern", PATTERNS)
def test_usual_patterns_are_read(tmp_path, pattern):
    with_pattern(pattern).save(str(tmp_path / "tokenizer.json"))
    assert Tokenizer.load(tmp_path).tokenize("a b") != []


def test_a_pattern_that_gives_up_on_a_text_is_told(tmp_path):
    with_pattern(r"(a|aa)+$").save(str(tmp_path / "tokenizer.json"))
    tokenizer = Tokenizer.load(tmp_path)
    assert tokenizer.tokenize("a") == ["a"]
    with pytest.raises(ValueError, match="this tokenizer's settings"):
        tokenizer.tokenize("a" * 3000 + "!")


def test_ids_without_end_are_refused_at_once(tmp_path):
    saved = json.loads(piece_tokenizer().to_str())
    saved["model"]["vocab"]["z"] = 2**31
    (tmp_path / "tokenizer.json").write_text(json.dumps(saved))
    with pytest.raises(ValueError, match="without a gap"):
        Tokenizer.load(tmp_path)


@pytest.mark.parametrize("maker", [WordPieceTokenizer, BytePairTokenizer, UnigramTokenizer])
def test_no_config_names_a_vocabulary(tmp_path, maker):
    """Whatever a file says of a tokenizer, from which class, nothing but its assets is read."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)  # Whoever opens it waits for ever.
    name = keras.saving.get_registered_name(maker)
    for argument in ("vocabulary", "merges", "model", "backend", "preset", "source"):
        saved = {"module": maker.__module__, "class_name": maker.__name__}
        saved |= {"registered_name": name, "config": {argument: str(pipe)}}
        outer = {"module": "bert_keras", "class_name": "TextPreprocessor"}
        outer |= {"registered_name": "bert_keras>TextPreprocessor"}
        outer["config"] = {"tokenizer": {argument: str(pipe)}}
        for config in (saved, outer):
            with pytest.raises((ValueError, TypeError)):
                keras.saving.deserialize_keras_object(config)


@pytest.mark.parametrize("preset", FORMATS)
def test_pipes_and_devices_in_the_place_of_files_are_not_opened(tmp_path, preset):
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


def test_a_vocabulary_that_lost_its_end_is_refused(tmp_path):
    tokenizer = WordPieceTokenizer(VOCABULARY)
    tokenizer.save(tmp_path)
    (tmp_path / "vocab.txt").write_text("\n".join(VOCABULARY[:10]) + "\n")
    with pytest.raises(ValueError, match=r"vocab\.txt with 10 tokens, .* 21"):
        Tokenizer.load(tmp_path)
    (tmp_path / "tokenizer.json").unlink()
    for name in ("config.json", "bert_config.json"):
        (tmp_path / name).write_text('{"vocab_size": 21}')
        with pytest.raises(ValueError, match=r"vocab\.txt with 10 tokens, .* 21"):
            Tokenizer.load(tmp_path)
        (tmp_path / name).unlink()
    # Tables are filled up to multiples of 8, 64, ...
    (tmp_path / "config.json").write_text('{"vocab_size": 16}')
    assert Tokenizer.load(tmp_path).vocabulary_size == 10
    assert Tokenizer.load(tmp_path / "vocab.txt").vocabulary_size == 10


@pytest.mark.parametrize("made", [set, frozenset, dict.fromkeys])
def test_a_vocabulary_without_an_order_is_refused(made):
    with pytest.raises(TypeError, match="must have an order"):
        WordPieceTokenizer(made(VOCABULARY))


def test_an_index_of_a_tensor_bundle_is_held_to_its_files(tmp_path):
    TARGETS["tf1"].write(tmp_path)
    write_bundle(tmp_path / "bert_model.ckpt", {})
    with pytest.raises(ValueError, match="one that its weights fill"):
        Backbone.from_preset(tmp_path)
