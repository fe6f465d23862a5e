"""Checks a `.keras` file from an untrusted source before Keras opens it.

Why: Keras unpacks whatever a file contains, and makes the model that its config describes, before
it looks at the weights.

Remove when `test_keras_makes_the_model_of_a_file_before_it_looks_at_the_weights` fails.
"""

import io
import os
import pathlib
import stat
import zipfile
from collections.abc import Mapping

import h5py
import keras

from bert_keras.checks import check_exists
from bert_keras.engine.atomic_files import reading
from bert_keras.engine.size_limit import parameter_budget
from bert_keras.types import Path

_MEMBERS = {"config.json", "metadata.json", "model.weights.h5"}
# Keras does not compress, and compression hardly makes weights smaller.
_MOST_EXPANSION = 100


def load_model(
    path: Path, custom_objects: Mapping[str, object] | None = None, compile: bool = True
) -> keras.Model:
    """Like `keras.saving.load_model`, for a `.keras` file from an untrusted source.

    Keras's own function also loads such files, but makes the model that the file's config describes
    before it looks at the weights. This one refuses a config of a bigger model than the weights
    contain, unpacks at most 100 times the size of the file, and names the file in every
    error. Code in the file is never run. See docs/untrusted_files.md.

    Args:
        path: str or path of the file.
        custom_objects: dict, name -> a class of yours that the file names.
        compile: bool, whether to compile the model as it was.

    Returns:
        The model.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: it is damaged, or contains something that a model's `.keras` file never does.

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
    check_exists(path, "The file of a model must exist", f"The current folder is {os.getcwd()!r}.")
    with reading(path):
        size = os.path.getsize(path)
        with zipfile.ZipFile(path) as archive:
            _check_members(archive.infolist(), size)
            num_values = _count_values(archive)
        with parameter_budget(path, lambda: num_values):
            model = keras.saving.load_model(path, custom_objects, compile, safe_mode=True)
        tokenizer = getattr(model, "tokenizer", None)
        if tokenizer is not None and not tokenizer.has_vocabulary:
            raise ValueError("It lacks its tokenizer's assets.")
        return model


def _count_values(archive):
    member = archive.getinfo("model.weights.h5")
    # A compressed member cannot be read from any position.
    is_stored = member.compress_type == zipfile.ZIP_STORED
    counts = []

    def count(name, item):
        if isinstance(item, h5py.Dataset):
            if item.nbytes > member.file_size:  # HDF5 would read zeros where nothing is stored.
                raise ValueError(f"It lacks values of {name!r}, {item.shape}.")
            # One byte may hold two 4-bit values.
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
            raise ValueError(f"It has a member {member.filename!r}, which no model's file has.")
    if len(set(names)) < len(names):
        raise ValueError(f"It has several members of one name: {names!r:.200}.")
    if (unpacked := sum(member.file_size for member in members)) > _MOST_EXPANSION * size:
        raise ValueError(f"Its {size} bytes would unpack to {unpacked}.")
