"""A `.keras` file from somebody else, looked at before Keras opens it."""

import io
import os
import pathlib
import stat
import zipfile
from collections.abc import Mapping

import h5py
import keras

from bert_keras.engine.atomic_files import reading
from bert_keras.engine.size_limit import filled_by
from bert_keras.types import Path

_MEMBERS = {"config.json", "metadata.json", "model.weights.h5"}
# Keras packs nothing, and who packs a file again makes its weights hardly smaller.
_MOST_EXPANSION = 100


def load_model(
    path: Path, custom_objects: Mapping[str, object] | None = None, compile: bool = True
) -> keras.Model:
    """Like `keras.saving.load_model`, for a `.keras` file from whomever.

    Keras's own function, which loads such files as well, makes the model that the file's config
    asks for before it looks at the weights. This one makes none that the file could not fill,
    unpacks no more than 100 times the file, and any error is one that names it. Code in the file is
    never run. See docs/untrusted_files.md.

    Args:
        path: str or path of the file.
        custom_objects: dict, name -> class of your own that the file names.
        compile: bool, whether the model is compiled as it was.

    Returns:
        The model.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: it is damaged, or holds what no `.keras` file of a model of this package does.

    Example:
    ```python
    classifier = bert_keras.load_model("downloaded.keras")
    ```
    """
    path = os.fspath(path)
    if os.path.isdir(path):
        raise ValueError(
            f"`load_model` opens a file `*.keras`. Received: the folder {path}, which the class of "
            "its task opens, by `from_preset`."
        )
    with reading(path):
        size = os.path.getsize(path)
        with zipfile.ZipFile(path) as archive:
            _check_members(archive.infolist(), size)
            num_values = _count_values(archive)
        with filled_by(path, lambda: num_values):
            model = keras.saving.load_model(path, custom_objects, compile, safe_mode=True)
        tokenizer = getattr(model, "tokenizer", None)
        if tokenizer is not None and not tokenizer.has_vocabulary:
            raise ValueError("It lacks its tokenizer's assets.")
        return model


def _count_values(archive):
    member = archive.getinfo("model.weights.h5")
    # Of packed members only the beginning is near.
    is_stored = member.compress_type == zipfile.ZIP_STORED
    counts = []

    def count(name, item):
        if isinstance(item, h5py.Dataset):
            if item.nbytes > member.file_size:  # Where nothing is stored zeros would be read.
                raise ValueError(f"It has not all the values of {name!r}, {item.shape}.")
            # A byte may hold two values of 4 bits.
            counts.append(item.size * (2 if item.dtype.itemsize == 1 else 1))

    opened = archive.open(member) if is_stored else io.BytesIO(archive.read(member))
    with opened as file, h5py.File(file) as weights:
        weights.visititems(count)
    return sum(counts)


def _check_members(members, size):
    names = [member.filename for member in members]
    for member in members:
        parts = pathlib.PureWindowsPath(member.filename).parts
        is_known = member.filename in _MEMBERS or (parts[:1] == ("assets",) and ".." not in parts)
        if not is_known or stat.S_ISLNK(member.external_attr >> 16):
            raise ValueError(f"It has a member {member.filename!r}, as no model's file has.")
    if len(set(names)) < len(names):
        raise ValueError(f"It has members of one name: {names!r:.200}.")
    if (unpacked := sum(member.file_size for member in members)) > _MOST_EXPANSION * size:
        raise ValueError(f"Its {size} bytes would become {unpacked}.")
