"""What tests do to files: they change JSON and compare folders."""

import json
import pathlib


def write_json(path, value):
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(value), encoding="utf-8")


def read_json(path):
    return json.loads(path.read_text(encoding="utf-8"))


def change_json(path, **changes):
    """Sets some keys of a JSON object."""
    write_json(path, {**read_json(path), **changes})


def contents(folder):
    """Returns the bytes of each file in a folder, by its path there."""
    files = filter(pathlib.Path.is_file, folder.rglob("*"))
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}
