"""Files and folders stay whole, whatever ends a write, and at whichever step."""

import contextlib
import errno
import functools
import inspect
import json
import os
import pathlib
import subprocess
import sys

import keras
import numpy as np
import pytest
import safetensors
from files import contents
from tiny import tiny_backbone, tiny_classifier

import bert_keras
from bert_keras.engine import atomic_files as files

pytestmark = pytest.mark.once

ONE, TWO = ("no 1", "yes 1"), ("no 2", "yes 2")
WRITER = pathlib.Path(__file__).with_name("killed_writer.py")


NO_SPACE = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def write_folder(folder, text):
    with files.replacing_files(folder) as new:
        for name in ("config.json", "weights"):
            files.write_text(new / name, text)


@pytest.mark.parametrize("how", ["killed", "failed"])
@pytest.mark.parametrize("what", ["file", "swapped", "moved"])
def test_a_write_leaves_the_old_or_the_new_content_whatever_ends_it(tmp_path, what, how):
    command = [sys.executable, WRITER, tmp_path, what, how]
    found = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.split()
    # File by file there are moments without config.json, so without a checkpoint.
    between = {"none"} if (what, how) == ("moved", "killed") else set()
    assert set(found) == {"old", "new"} | between
    assert len(found) > (10 if what == "file" else 40)


def test_files_of_a_running_writer_are_not_swept(tmp_path):
    with files.replacing(tmp_path / "file") as temporary:
        pathlib.Path(temporary).write_text("slow")
        files.write_text(tmp_path / "file", "quick")
        assert (tmp_path / "file").read_text() == "quick"
    assert contents(tmp_path) == {"file": b"slow"}


def test_a_reader_sees_one_state_while_somebody_writes(tmp_path):
    folder, found = tmp_path / "preset", []
    write_folder(folder, "old")

    @files.retry_if_changed
    def read(cls, preset):
        texts = {(preset / "config.json").read_text()}
        if len(found) < 3:
            found.append(texts)
            write_folder(folder, f"new {len(found)}")
        return texts | {(preset / "weights").read_text()}

    assert read(None, folder) == {"new 3"}


def test_a_link_stays_a_link_and_a_mode_stays_as_it_was(write, tmp_path):
    file, folder = write("file", "old"), tmp_path / "folder"
    file.chmod(0o604)
    folder.mkdir()
    links = [tmp_path / f"link to {path.name}" for path in (file, folder)]
    for link, path in zip(links, (file, folder), strict=True):
        link.symlink_to(path.name)
    files.write_text(links[0], "new")
    write_folder(links[1], "new")
    assert (file.read_text(), file.stat().st_mode & 0o777) == ("new", 0o604)
    assert (folder / "weights").read_text() == "new"
    assert all(link.is_symlink() for link in links)
    tiny_backbone().save_to_preset(tmp_path / "preset")
    assert (tmp_path / "preset" / "model.safetensors").stat().st_mode & 0o444 == 0o444


def test_a_device_and_the_current_folder_are_written_to_and_stay(tmp_path, monkeypatch):
    files.write_text(os.devnull, "nothing")
    assert not pathlib.Path(os.devnull).is_file()
    monkeypatch.chdir(tmp_path)
    write_folder(".", "new")
    assert pathlib.Path("weights").read_text() == "new"


def test_a_folder_that_cannot_be_swapped_is_written_file_by_file(tmp_path, monkeypatch):
    monkeypatch.setattr(os.path, "ismount", lambda _: True)
    monkeypatch.setattr(files, "_swap", None)
    for text in ("old", "new"):
        write_folder(tmp_path / "preset", text)
    assert contents(tmp_path / "preset") == {"config.json": b"new", "weights": b"new"}


TENSORFLOW_ERROR = "ResourceExhaustedError: part-0; No space left on device [Op:SaveV2]"


@pytest.mark.parametrize("error", [NO_SPACE, RuntimeError(TENSORFLOW_ERROR)])
@pytest.mark.parametrize("old", ["old", None])
def test_an_error_names_the_path_and_what_is_there(tmp_path, error, old):
    path = tmp_path / "file"
    if old:
        path.write_text(old)
    there = "What was there is still there" if old else "Nothing is there now"
    with pytest.raises(OSError, match=f"No space left.*{there}") as found, files.replacing(path):
        raise error
    assert (found.value.errno, found.value.filename) == (errno.ENOSPC, str(path))


@pytest.mark.parametrize("name", [None, "/x", "read"])
def test_an_error_of_another_file_or_of_none_stays_as_it_is(tmp_path, name):
    error = ConnectionResetError(errno.ECONNRESET, "reset")
    if name:
        error = FileNotFoundError(2, "no", str(tmp_path / name))
    with pytest.raises(type(error)) as found, files.replacing(tmp_path / "file"):
        raise error
    assert found.value is error


def test_a_file_that_nobody_may_write_stays(write, tmp_path, monkeypatch):
    path = write("file", "old")
    monkeypatch.setattr(os, "access", lambda *_: False)  # For the superuser nothing is read-only.
    with pytest.raises(PermissionError, match="still there"), files.replacing(path):
        pytest.fail("work was done before")
    assert contents(tmp_path) == {"file": b"old"}


@pytest.mark.parametrize("is_swapped", [True, False])
def test_files_that_others_write_meanwhile_are_kept(write, tmp_path, monkeypatch, is_swapped):
    folder, chown = tmp_path / "preset", os.chown
    write_folder(folder, "old")
    others = [write(f"preset/{name}", "of before") for name in ("README", "1/README")]

    def meanwhile(*args):  # The links are made, the folders not yet swapped.
        for path in others:
            files.write_text(path, "of meanwhile")
        if not is_swapped:
            raise NO_SPACE
        return chown(*args)

    monkeypatch.setattr(os, "chown", meanwhile)
    with files.replacing_files(folder) as new:
        for name in ("config.json", "1/weights"):
            (new / name).parent.mkdir(exist_ok=True)
            files.write_text(new / name, "new")
    expected = dict.fromkeys(("README", "1/README"), b"of meanwhile")
    expected |= {"config.json": b"new", "1/weights": b"new", "weights": b"old"}
    assert contents(folder) == expected
    assert os.listdir(tmp_path) == ["preset"]


# Models


KINDS = {"x.keras": "save", "preset": "save_to_preset", "huggingface": "export_to_huggingface"}
KINDS["adapters"] = "save_adapters"


def labels_of(path):
    if path.name == "adapters":
        metadata = safetensors.safe_open(path, "numpy").metadata()
        return tuple(json.loads(metadata["bert_keras_adapters"])["label_names"])
    load = keras.models.load_model if path.is_file() else bert_keras.TextClassifier.from_preset
    return load(path).label_names


classifier = functools.cache(tiny_classifier)


@pytest.mark.parametrize("kind", KINDS)
def test_a_full_disk_leaves_the_old_file_and_says_so(tmp_path, kind):
    resource = pytest.importorskip("resource")
    options = {"lora_rank": 2} if kind == "adapters" else {}

    def save(names):
        getattr(classifier(label_names=names, **options), KINDS[kind])(tmp_path / kind)

    save(ONE)
    for limit in (0, 1000):
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        try:
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, before[1]))
            with pytest.raises(OSError, match="still there") as found:
                save(TWO)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
        assert found.value.filename == str(tmp_path / kind)
        assert labels_of(tmp_path / kind) == ONE
    save(TWO)
    assert labels_of(tmp_path / kind) == TWO
    assert os.listdir(tmp_path) == [kind]


def test_weights_alone_are_whole_or_as_they_were(tmp_path):
    backbone = tiny_backbone()
    for name in ("x.weights.h5", "x.weights.json", "new/x.weights.json"):
        options = {"max_shard_size": 0.00001} if name.endswith("json") else {}
        backbone.save_weights(tmp_path / name, **options)
        again = tiny_backbone()
        again.load_weights(tmp_path / name)
        np.testing.assert_array_equal(again.get_weights()[0], backbone.get_weights()[0])
    before = sorted(os.listdir(tmp_path))
    with pytest.raises(OSError, match="Nothing is there"):
        backbone.save_weights(tmp_path / "nothing" / "x.weights.h5")
    with pytest.raises(ValueError, match=r"must end in .\.weights\.h5"):
        backbone.save_weights(tmp_path / "x.npz")
    assert sorted(os.listdir(tmp_path)) == before


@pytest.mark.parametrize("answer", ["n", "y"])
def test_overwrite_false_asks_once_as_keras_does(tmp_path, monkeypatch, answer):
    questions = []
    monkeypatch.setattr("builtins.input", lambda text: questions.append(text) or answer)
    for name, write in (("x.keras", "save"), ("x.weights.h5", "save_weights")):
        (tmp_path / name).write_text("old")
        getattr(tiny_backbone(), write)(tmp_path / name, overwrite=False)
        assert ((tmp_path / name).read_bytes() == b"old") == (answer == "n")
    assert len(questions) == 2


def test_checkpoints_by_keras_s_callback_are_whole_too(tmp_path):
    task = tiny_classifier()
    paths = {tmp_path / "x.keras": False, tmp_path / "x.weights.h5": True}
    make = keras.callbacks.ModelCheckpoint
    callbacks = [make(path, save_weights_only=alone) for path, alone in paths.items()]
    task.fit(["a", "b"], [0, 1], epochs=1, verbose=0, callbacks=callbacks)
    assert sorted(os.listdir(tmp_path)) == ["x.keras", "x.weights.h5"]
    keras.models.load_model(tmp_path / "x.keras").load_weights(tmp_path / "x.weights.h5")


# What a file names


def registered_classes():
    found = keras.saving.get_custom_objects().items()
    return [name for name, x in found if name.startswith("bert_keras>") and isinstance(x, type)]


@pytest.fixture(scope="module")
def opened(tmp_path_factory):
    """A file whose opening is noted, by one hook: Python removes none."""
    path, is_open = tmp_path_factory.mktemp("opened") / "secret", []
    path.write_text("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nsecret\n")

    def hook(event, arguments):
        if path is not None and event == "open" and str(arguments[0]) == str(path):
            is_open.append(event)

    sys.addaudithook(hook)
    yield path, is_open
    path = None


@pytest.mark.parametrize("name", registered_classes())
def test_no_argument_of_a_config_is_a_path(opened, name):
    path, is_open = opened
    found = keras.saving.get_registered_object(name)
    parameters = inspect.signature(found).parameters.values()
    arguments = [x.name for x in parameters if x.kind not in (x.VAR_POSITIONAL, x.VAR_KEYWORD)]
    every = dict.fromkeys(arguments, str(path))
    for config in (every, *({name: str(path)} for name in arguments)):
        saved = {"module": None, "class_name": name.split(">")[1], "registered_name": name}
        with contextlib.suppress(Exception):
            keras.saving.deserialize_keras_object({**saved, "config": config})
    assert not is_open


def test_a_class_that_is_not_imported_is_no_damage(tmp_path, changed_archive):
    tiny_classifier().save(tmp_path / "x.keras")

    names = b"TextClassifier", b"TokenScorer"
    changed = changed_archive(tmp_path / "x.keras", lambda member, content: content.replace(*names))
    message = f"{changed} needs the class 'TokenScorer', .* Import the module"
    with pytest.raises(ValueError, match=message) as found:
        bert_keras.load_model(changed)
    with pytest.raises(FileNotFoundError, match=r"must exist.*missing\.keras'.*current folder is"):
        bert_keras.load_model(tmp_path / "missing.keras")
    assert "damaged" not in str(found.value)


def test_a_file_and_the_one_beside_it_are_replaced_together(write, tmp_path):
    def replace(*names):
        with files.replacing_files(tmp_path, ["model.bin"], index="model.xml") as folder:
            for name in names:
                (folder / name).write_text("new")
            if not names:
                raise NO_SPACE

    for name in ("model.xml", "model.bin", "other"):
        write(name, "old")
    with pytest.raises(OSError, match="still there"):
        replace()
    assert contents(tmp_path) == {"model.xml": b"old", "model.bin": b"old", "other": b"old"}
    replace("model.xml", "model.bin")
    assert contents(tmp_path) == {"model.xml": b"new", "model.bin": b"new", "other": b"old"}
    replace("model.xml")
    assert contents(tmp_path) == {"model.xml": b"new", "other": b"old"}
