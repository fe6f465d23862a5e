"""TensorFlow's checkpoint files, `*.index` and `*.data-*`, read by TensorFlow."""

import glob
import math
import os
import pathlib

import numpy as np

from bert_keras.checks import check_exists, require
from bert_keras.engine.atomic_files import advice_for, reading
from bert_keras.presets.tensors import Tensors

_INCOMPLETE = "The download is incomplete: download it again."


def read_tf_checkpoint(prefix: str | os.PathLike) -> Tensors:
    """Opens a TensorFlow checkpoint as a read-only mapping from tensor name to NumPy array.

    Args:
        prefix: the path without the endings: `folder/bert_model.ckpt` for `bert_model.ckpt.index`
            and `bert_model.ckpt.data-00000-of-00001`.

    Returns:
        `Tensors`, each verified on access. Arrays have the dtype of the file, except that bfloat16
        becomes float32, which holds each of its values exactly.

    Raises:
        ImportError: TensorFlow is not installed.
        FileNotFoundError: there is no index.
        ValueError: the index is damaged, the data files are missing or smaller than the tensors, or
            the path has brackets, which TensorFlow reads as a pattern.

    Example:

    ```python
    checkpoint = read_tf_checkpoint("uncased_L-2_H-128_A-2/bert_model.ckpt")
    checkpoint.shapes["bert/pooler/dense/kernel"]  # (128, 128), nothing read yet
    kernel = checkpoint["bert/pooler/dense/kernel"]  # float32 array
    ```
    """
    prefix = pathlib.Path(prefix)
    advice = "Or load a folder with `model.safetensors`, which needs no TensorFlow."
    tensorflow = require("tensorflow", f"read {prefix}", advice=advice)
    index = prefix.with_name(f"{prefix.name}.index")
    check_exists(index, "A TensorFlow checkpoint must have an index", exists=os.path.isfile)
    files = sorted(prefix.parent.glob(f"{glob.escape(prefix.name)}.data-*"))
    for path in files:  # TensorFlow would wait for ever for a pipe.
        check_exists(path, "A checkpoint's data must be an ordinary file", exists=os.path.isfile)
    with reading(index, advice_for(index)):
        # `tensorflow.train.load_checkpoint` would follow a file `checkpoint` to anywhere.
        try:
            reader = tensorflow.compat.v1.train.NewCheckpointReader(str(prefix))
        except tensorflow.errors.NotFoundError as error:  # The file exists, see above.
            raise ValueError(
                "TensorFlow reads brackets and backslashes in a checkpoint's path as a pattern. "
                f"Received: {index}. Rename the folder or the files without them."
            ) from error
        dtypes = reader.get_variable_to_dtype_map()
        shapes = {k: tuple(shape) for k, shape in reader.get_variable_to_shape_map().items()}
    needed = sum(math.prod(shape) * dtypes[name].size for name, shape in shapes.items())
    size = sum(path.stat().st_size for path in files)
    if needed > size:
        found = ", ".join(path.name for path in files) or f"no {prefix.name}.data-00000-of-00001"
        raise ValueError(
            f"A TensorFlow checkpoint must have all its data files. Received: {index} with tensors "
            f"of {needed} bytes. Found: {found}, {size} bytes. {_INCOMPLETE}"
        )

    def read(name):
        with reading(prefix, _INCOMPLETE):
            kind = dtypes[name]
            if not (kind.is_floating or kind.is_integer or kind.is_bool):
                raise ValueError(f"A tensor must hold numbers. Received: {name!r} of {kind.name}.")
            return np.asarray(reader.get_tensor(name))

    return Tensors(shapes, read)
