"""PyTorch's weights files, `pytorch_model.bin`, read by PyTorch without running code in them.

`torch.save` writes the bytes of the tensors and a pickle, a program that builds objects by calling
the functions it names. With `weights_only=True`, `torch.load` refuses every name that tensors do
not need. What remains to check here is that the file holds nothing but plain tensors, and that
these are no larger than the file.

Reference: https://docs.pytorch.org/docs/stable/notes/serialization.html.
"""

import functools
import os
import pickle
import re
import zipfile

from bert_keras.checks import require
from bert_keras.engine.atomic_files import advice_for, reading
from bert_keras.presets.tensors import Tensors, read_tensors
from bert_keras.tokenizers.protocol_buffers import check_whole

WEIGHTS_FILE = "pytorch_model.bin"
CONVERT = (
    "If you trust its origin, convert it once with `transformers` in an isolated environment, and "
    "load the new folder: `AutoModelForPreTraining.from_pretrained(old).save_pretrained(new)`, or "
    "the class of its task. `transformers` before 5 also needs `safe_serialization=True`."
)

_DTYPES = ("float64", "float32", "float16", "bfloat16")
_DTYPES += ("int64", "int32", "int16", "int8", "uint8", "bool")
_DTYPES = tuple(f"torch.{name}" for name in _DTYPES)


def read_torch(source: str | os.PathLike) -> Tensors:
    """Opens PyTorch's weights as a read-only mapping from tensor name to NumPy array.

    The file is mapped into memory, so that only the tensors in use occupy memory. Files from before
    PyTorch 1.6, which are no zip archives, are read as a whole.

    Args:
        source: a file that `torch.save` wrote from a dict of tensors (a "state dict"), a
            `.bin.index.json` file, or a folder that holds `pytorch_model.bin` or, for a sharded
            checkpoint, `pytorch_model.bin.index.json`. If both exist, the single file is read.

    Returns:
        `Tensors`. Arrays have the dtype of the file (float64, float32, float16, integers
        or bool), except that bfloat16 becomes float32, which holds each of its values exactly.

    Raises:
        ImportError: PyTorch is not installed, or is older than 2.10.
        FileNotFoundError: there is no such file, or no checkpoint in the folder.
        ValueError: a file is damaged, holds anything but tensors, names a function that no dict of
            tensors needs, or has a tensor with more values than its storage; or an index is wrong,
            see `read_safetensors`.

    Example:

    ```python
    checkpoint = read_torch("chinese-roberta-wwm-ext")
    checkpoint.shapes["bert.pooler.dense.weight"]  # (768, 768), nothing read yet
    kernel = checkpoint["bert.pooler.dense.weight"]  # float32 array
    ```
    """
    return read_tensors(source, WEIGHTS_FILE, _read_file)


def _read_file(path):
    advice = "Or load a folder with `model.safetensors`, which needs no PyTorch"
    torch = require("torch", f"read {path}", advice=f"{advice}.")
    if torch.__version__ < "2.10":
        raise ImportError(
            f"To read {path} safely, PyTorch must be 2.10 or later: in earlier versions a file can "
            f"run code even with `weights_only=True` (CVE-2026-24747). Received: "
            f"{torch.__version__}. Install it: `pip install --upgrade torch`. {advice}."
        )
    rule = "It must hold a dict of tensors alone, as from `torch.save(model.state_dict(), path)`."
    with reading(path, f"{rule} {advice_for(path)}"):
        try:
            tensors = torch.load(path, "cpu", weights_only=True, mmap=_is_archive(path))
        except (pickle.UnpicklingError, RuntimeError) as error:
            if "weights_only" not in str(error):
                raise
            raise ValueError(_explained(error, path)) from error
        num_values = _check_tensors(tensors, path.stat().st_size)

    def read(tensor):
        tensor = tensor.float() if tensor.dtype == torch.bfloat16 else tensor
        # A copy: a backend may keep an array's memory, which is that of the file here.
        return tensor.numpy(force=True).copy()

    stored = {name: (tuple(x.shape), functools.partial(read, x)) for name, x in tensors.items()}
    return Tensors(stored, num_values)


def _explained(error, path):
    """Returns why PyTorch refuses a file, without its advice to run the code in it."""
    if asked := re.search(r"GLOBAL (\S*\w) ", str(error)):
        return (
            "A PyTorch file must hold a dict of tensors and nothing else, since a pickle can name "
            f"any code to run. Received: {path}: it asks for {asked[1]!r}. {CONVERT}"
        )
    with open(path, "rb") as file:
        start = file.read(9)
    return (
        f"{path} must be a whole file of `torch.save`, with its default protocol. It begins with "
        f"{start}. {advice_for(path)}"
    )


def _is_archive(path):
    """Whether a file is a zip archive, which can be mapped into memory."""
    if not zipfile.is_zipfile(path):
        return False
    with zipfile.ZipFile(path) as archive:
        for member in archive.infolist():
            is_stored = member.compress_type == zipfile.ZIP_STORED
            check_whole(is_stored, f"its member {member.filename!r} is compressed")
    return True


def _check_tensors(tensors, file_size):
    """Returns the size of all storages. Raises `DamagedError` unless all are plain tensors."""
    check_whole(isinstance(tensors, dict), "it holds no dict")
    sizes = {}
    for name, tensor in tensors.items():
        dtype = str(getattr(tensor, "dtype", type(tensor).__name__))
        check_whole(isinstance(name, str) and dtype in _DTYPES, f"{name!r} is of type {dtype}")
        place = str(tensor.layout), str(tensor.device)
        check_whole(place == ("torch.strided", "cpu"), f"{name!r} is no plain array, but {place}")
        storage = tensor.untyped_storage()
        # With strides of 0, a tensor could have more values than its storage.
        check_whole(tensor.nbytes <= storage.nbytes(), f"{name!r} reaches beyond its storage")
        sizes[storage.data_ptr()] = storage.nbytes(), tensor.itemsize
    check_whole(sum(size for size, _ in sizes.values()) <= file_size, "its storages overlap")
    return sum(size // itemsize for size, itemsize in sizes.values())
