"""Vectors of any number of texts in one file."""

import itertools
import pathlib
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from bert_keras.answers.catalog import answerers_of
from bert_keras.checks import as_texts, check_int, check_not_empty
from bert_keras.engine.atomic_files import replacing
from bert_keras.types import Path

# The number of batches in a part, which is sorted by length.
_BATCHES = 16


def write_vectors(
    embedder: Any,
    texts: Iterable[str],
    path: Path,
    prompt: str | None = None,
    batch_size: int = 32,
    progress: Callable[[str], object] | None = None,
) -> int:
    """Embeds any number of texts into a file, which `np.load(path, mmap_mode="r")` reads.

    Memory does not depend on the number of texts: vectors are kept in a temporary file beside the
    file, which appears when it is complete.

    Args:
        embedder: a `TextEmbedder`, or an `ExportedTask` with `embed`.
        texts: iterable of str: a list, a column of `datasets.Dataset`, or a generator that reads a
            file.
        path: str, a `.npy` file for a float32 array `(num_texts, dim)`. An old file is replaced
            when the new one is complete.
        prompt: see `TextEmbedder.embed`.
        batch_size: int.
        progress: function of a str, called after each part; or `None`.

    Returns:
        int, the number of texts.

    Raises:
        TypeError: something is not text.
        ValueError: there are no texts, the ending of `path` does not fit, or a text has another
            form of vector than one array.

    Example:
    ```python
    texts = datasets.load_dataset("wikipedia", "20220301.simple", split="train")["text"]
    bert_keras.search.write_vectors(embedder, texts, "wikipedia.npy", prompt="document")
    index.add(np.load("wikipedia.npy", mmap_mode="r"))
    ```
    """
    check_int("batch_size", batch_size)
    if "embed" not in answerers_of(embedder):
        raise ValueError(
            "Vectors are written by a `TextEmbedder`, or by an exported one. Received: "
            f"{type(embedder).__name__}. Call the `embed` of another embedder on one part of the "
            "texts at a time."
        )
    path = pathlib.Path(path)
    if path.suffix.lower() != ".npy":
        raise ValueError(f"Vectors go into a .npy file. Received: {path}. Change its ending.")
    if isinstance(texts, str):
        as_texts(texts)  # Raises: its characters are not the texts.
    texts, count = iter(texts), 0
    with replacing(path) as temporary:
        values = pathlib.Path(temporary).with_name("values")
        while part := list(itertools.islice(texts, _BATCHES * batch_size)):
            as_texts(part, f"texts[{count}:]" if count else "texts")
            vectors = embedder.embed(part, prompt, batch_size=batch_size)
            with open(values, "ab") as file:
                file.write(np.ascontiguousarray(vectors, "float32"))
            count += len(part)
            if progress is not None:
                progress(f"{count:,} texts embedded")
        check_not_empty(range(count), "There must be texts to embed")
        with open(temporary, "wb") as file:  # To a path, NumPy would add `.npy` after `.NPY`.
            np.save(file, np.memmap(values, "float32", "r").reshape(count, -1))
    return count
