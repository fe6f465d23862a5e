"""Files that are whole or not there: the one way in which this package writes."""

import contextlib
import json
import os
import pathlib
import tempfile
import uuid


@contextlib.contextmanager
def replacing(path):
    """Yields the path of a temporary file, which takes the place of `path` when all is written.

    An exception inside leaves `path` as it was and removes the temporary file; a process that is
    killed leaves a file `.*.partial`, never half of `path`.

    Args:
        path: str or path, in a folder that exists.
    """
    path = os.fspath(path)
    folder, name = os.path.split(path)
    temporary = os.path.join(folder, f".{name}.{uuid.uuid4().hex}.partial")
    try:
        yield temporary
        with open(temporary, "rb+") as file:
            os.fsync(file.fileno())
        os.replace(temporary, path)
    finally:
        pathlib.Path(temporary).unlink(missing_ok=True)


@contextlib.contextmanager
def replacing_files(folder, stale=()):
    """Yields an empty folder whose files replace those of `folder` at the end, all or none.

    Args:
        folder: str or path, made when missing.
        stale: names of files that go where there is no new one.
    """
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".partial-", dir=folder) as partial:
        new, old = pathlib.Path(partial, "new"), pathlib.Path(partial, "old")
        new.mkdir()
        old.mkdir()
        yield new
        # Configs go first and come last: what lies between is no preset, never a mixed one.
        names = sorted((path.name for path in new.iterdir()), key=lambda name: ".json" in name)
        moved = []
        try:
            for name in (*reversed(names), *stale):
                if (folder / name).exists():
                    os.replace(folder / name, old / name)
            for name in names:
                os.replace(new / name, folder / name)
                moved.append(name)
        except BaseException:
            for name in moved:
                (folder / name).unlink(missing_ok=True)
            for path in old.iterdir():
                os.replace(path, folder / path.name)
            raise


def write_text(path, text):
    """Writes a text file in UTF-8, whole or not at all; lines end as they stand in `text`."""
    with replacing(path) as temporary, open(temporary, "w", encoding="utf-8", newline="") as file:
        file.write(text)


def write_json(path, value):
    """Writes a JSON file, whole or not at all."""
    write_text(path, json.dumps(value, indent=2, ensure_ascii=False) + "\n")


def read_json(path, kind=dict):
    """Returns the value of a JSON file.

    Args:
        path: str or path.
        kind: `dict` or `list`, what the value must be.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: the file is no JSON in UTF-8, or its value is of another kind.
    """
    try:
        value = json.loads(pathlib.Path(path).read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise ValueError(
            f"{path} is not valid JSON ({error}). Download or save it again."
        ) from error
    if not isinstance(value, kind):
        wanted = {dict: "object", list: "list"}[kind]
        raise ValueError(f"{path} must hold a JSON {wanted}. Received: {type(value).__name__}.")
    return value
