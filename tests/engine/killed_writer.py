"""Writes files and is killed, or fails, at each disk operation in turn.

python tests/engine/killed_writer.py FOLDER WHAT HOW

WHAT is `file`, `swapped` (a folder in one step) or `moved` (a folder file by file), HOW is `killed`
or `failed`. After each operation it prints what was there: `old`, `new` or `none`. It does not
import Keras, so that the children that it forks are small. Run by test_atomic_files.py.
"""

import errno
import importlib.util
import os
import pathlib
import sys

PATH = pathlib.Path(__file__).resolve().parents[2] / "bert_keras" / "engine" / "atomic_files.py"
spec = importlib.util.spec_from_file_location("files", PATH)
files = importlib.util.module_from_spec(spec)
spec.loader.exec_module(files)
# What changes something on the disk, as Python tells its audit hooks.
STEPS = ("open", "os.rename", "os.link", "os.mkdir", "os.remove", "os.rmdir", "os.chmod")
NAMES = ("config.json", "weights", "1/config.json")


def write(path, text):
    if path.name == "file":
        return files.write_text(path, text)
    with files.replacing_files(path, stale=["old.txt"]) as new:
        for name in NAMES:
            (new / name).parent.mkdir(exist_ok=True)
            files.write_text(new / name, text)


def write_old(path):
    write(path, "old")
    assert os.listdir(path.parent) == [path.name], "what a killed run left was not swept"
    if path.name != "file":
        (path / "old.txt").write_text("old")
        (path / "README").write_text("kept")
        (path / ".git" / "objects").mkdir(parents=True, exist_ok=True)
        (path / ".git" / "objects" / "1").write_text("kept")


def state_of(path):
    """Returns "old", "new" or "none"; asserts that nothing is mixed or lost."""
    if path.name == "file":
        return path.read_text()
    assert (path / "README").read_text() == "kept"
    assert (path / ".git" / "objects" / "1").read_text() == "kept"
    if not (path / "config.json").exists():
        return "none"
    (text,) = {(path / name).read_text() for name in NAMES}
    assert (path / "old.txt").exists() == (text == "old")
    return text


def in_child(path, step, act):
    """Writes in a child that acts before a step; returns its exit code, 7 if it took fewer."""
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    steps = []

    def hook(event, arguments):
        if event in STEPS:
            steps.append(event)
            if len(steps) - 1 == step:
                act()

    try:
        sys.addaudithook(hook)
        write(path, "new")
        os._exit(0 if len(steps) > step else 7)
    finally:
        os._exit(1)


def fail():
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def main(folder, what, how):
    path = pathlib.Path(folder, "file" if what == "file" else "preset")
    if what == "moved":
        files._swap = lambda *_: False
    os.fsync = lambda _: None  # It takes most of the time.
    act = fail if how == "failed" else lambda: os._exit(9)
    code, step = None, 0
    while code != 7:
        write_old(path)
        code = in_child(path, step, act)
        state = state_of(path)
        assert how == "killed" or state == ("old" if code == 1 else "new")
        print(state)
        step += 1


main(*sys.argv[1:])
