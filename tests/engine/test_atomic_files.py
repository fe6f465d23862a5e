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
    assert (tmp_path / "file").read_text() == "slow"
    assert os.listdir(tmp_path) == ["file"]


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


def test_a_link_stays_a_link_and_a_mode_stays_as_it_was(tmp_path):
    file, folder = tmp_path / "file", tmp_path / "folder"
    file.write_text("old")
    file.chmod(0o604)
    folder.mkdir()
    links = [tmp_path / "link to file", tmp_path / "link to folder"]
    for link in links:
        link.symlink_to(link.name.removeprefix("link to "))
    files.write_text(links[0], "new")
    write_folder(links[1], "new")
    assert (file.read_text(), file.stat().st_mode & 0o777) == ("new", 0o604)
    assert (folder / "weights").read_text() == "new"
    assert all(link.is_symlink() for link in links)
    tiny_backbone().save_to_preset(tmp_path / "preset")
    assert (tmp_path / "preset" / "model.safetensors").stat().st_mode & 0o444 == 0o444


def test_a_device_is_written_to_and_stays(tmp_path):
    files.write_text(os.devnull, "nothing")
    assert not pathlib.Path(os.devnull).is_file()


def test_the_current_folder_stays_the_current_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_folder(".", "new")
    assert pathlib.Path("weights").read_text() == "new"


def test_a_folder_that_cannot_be_swapped_is_written_file_by_file(tmp_path, monkeypatch):
    monkeypatch.setattr(os.path, "ismount", lambda _: True)
    monkeypatch.setattr(files, "_swap", None)
    for text in ("old", "new"):
        write_folder(tmp_path / "preset", text)
    assert sorted(os.listdir(tmp_path / "preset")) == ["config.json", "weights"]
    assert (tmp_path / "preset" / "weights").read_text() == "new"


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


def test_a_file_that_nobody_may_write_stays(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("old")
    monkeypatch.setattr(os, "access", lambda *_: False)  # For the superuser nothing is read-only.
    with pytest.raises(PermissionError, match="still there"), files.replacing(tmp_path / "file"):
        pytest.fail("work was done before")
    assert os.listdir(tmp_path) == ["file"]


@pytest.mark.parametrize("is_swapped", [True, False])
def test_files_that_others_write_meanwhile_are_kept(tmp_path, monkeypatch, is_swapped):
    folder, chown = tmp_path / "preset", os.chown
    write_folder(folder, "old")
    for name in ("README", "1/README"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text("of before")

    def meanwhile(*args):  # The links are made, the folders not yet swapped.
        for name in ("README", "1/README"):
            files.write_text(folder / name, "of meanwhile")
        if not is_swapped:
            raise NO_SPACE
        return chown(*args)

    monkeypatch.setattr(os, "chown", meanwhile)
    with files.replacing_files(folder) as new:
        for name in ("config.json", "1/weights"):
            (new / name).parent.mkdir(exist_ok=True)
            files.write_text(new / name, "new")
    found = {str(x.relative_to(folder)): x.read_text() for x in folder.rglob("*") if x.is_file()}
    assert found == {
        **dict.fromkeys(("README", "1/README"), "of meanwhile"),
        **dict.fromkeys(("config.json", "1/weights"), "new"),
        "weights": "old",
    }
    assert os.listdir(tmp_path) == ["preset"]


# Models


def labels_of_adapters(path):
    with open(path, "rb") as file:
        header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
    return tuple(json.loads(header["__metadata__"]["bert_keras_adapters"])["label_names"])


def labels_of_task(path):
    load = keras.models.load_model if path.is_file() else bert_keras.TextClassifier.from_preset
    return load(path).label_names


KINDS = {
    "x.keras": ("save", labels_of_task),
    "preset": ("save_to_preset", labels_of_task),
    "huggingface": ("export_to_huggingface", labels_of_task),
    "adapters": ("save_adapters", labels_of_adapters),
}


classifier = functools.cache(tiny_classifier)


@pytest.mark.parametrize("kind", KINDS)
def test_a_full_disk_leaves_the_old_file_and_says_so(tmp_path, kind):
    resource = pytest.importorskip("resource")
    method, labels = KINDS[kind]

    def save(names):
        options = {"lora_rank": 2} if kind == "adapters" else {}
        getattr(classifier(label_names=names, **options), method)(tmp_path / kind)

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
        assert labels(tmp_path / kind) == ONE
    save(TWO)
    assert labels(tmp_path / kind) == TWO
    assert os.listdir(tmp_path) == [kind]


def test_weights_alone_are_whole_or_as_they_were(tmp_path):
    backbone, path = tiny_backbone(), tmp_path / "x.weights.h5"
    shards = {"max_shard_size": 0.00001}
    for name, options in (
        (path.name, {}),
        ("x.weights.json", shards),
        ("new/x.weights.json", shards),
    ):
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
    callbacks = [
        keras.callbacks.ModelCheckpoint(tmp_path / "x.keras"),
        keras.callbacks.ModelCheckpoint(tmp_path / "x.weights.h5", save_weights_only=True),
    ]
    task.fit(["a", "b"], [0, 1], epochs=1, verbose=0, callbacks=callbacks)
    assert sorted(os.listdir(tmp_path)) == ["x.keras", "x.weights.h5"]
    keras.models.load_model(tmp_path / "x.keras").load_weights(tmp_path / "x.weights.h5")


# What a file names


def registered_classes():
    found = keras.saving.get_custom_objects()
    return [
        name for name in found if name.startswith("bert_keras>") and isinstance(found[name], type)
    ]


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

    def rename(member, content):
        is_config = member == "config.json"
        return content.replace(b"TextClassifier", b"TokenScorer") if is_config else content

    changed = changed_archive(tmp_path / "x.keras", rename)
    message = f"{changed} needs the class 'TokenScorer', .* Import the module"
    with pytest.raises(ValueError, match=message) as found:
        bert_keras.load_model(changed)
    with pytest.raises(FileNotFoundError, match=r"must exist.*missing\.keras'.*current folder is"):
        bert_keras.load_model(tmp_path / "missing.keras")
    assert "damaged" not in str(found.value)


def test_a_file_and_the_one_beside_it_are_replaced_together(tmp_path):
    def write(*names):
        with files.replacing_files(tmp_path, ["model.bin"], index="model.xml") as folder:
            for name in names:
                (folder / name).write_text("new")
            if not names:
                raise NO_SPACE

    def there():
        return {path.name: path.read_text() for path in tmp_path.iterdir()}

    old = {"model.xml": "old", "model.bin": "old", "other": "old"}
    for name, text in old.items():
        (tmp_path / name).write_text(text)
    with pytest.raises(OSError, match="still there"):
        write()
    assert there() == old
    write("model.xml", "model.bin")
    assert there() == {"model.xml": "new", "model.bin": "new", "other": "old"}
    write("model.xml")
    assert there() == {"model.xml": "new", "other": "old"}
