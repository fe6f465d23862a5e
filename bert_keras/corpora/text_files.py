"""Text files as documents of passages, the input of pre-training."""

import functools
import glob
import itertools
import os
import pathlib
from collections.abc import Iterable, Iterator
from typing import Literal

from bert_keras.checks import check_choice, raise_at_first
from bert_keras.datasets.files import read_lines
from bert_keras.datasets.table import format_of
from bert_keras.types import Path

_ENDINGS = (".txt", ".txt.gz")


def find_text_files(paths: Path | Iterable[Path]) -> list[str]:
    """Returns the text files in `paths`, those in a folder or of a pattern sorted by path.

    Args:
        paths: str or path, or a list of them: files of any name, folders, whose `.txt` and
            `.txt.gz` files are taken, and patterns with `*` for both.

    Returns:
        List of str.

    Raises:
        FileNotFoundError: a path is no file (such as a pipe) or does not exist, a pattern matches
            nothing, or a folder holds no text file.
        ValueError: a file is a table, such as JSON lines, by the ending of its name.
    """
    if isinstance(paths, (str, os.PathLike)):
        paths = [paths]
    files = []
    for path in map(os.fspath, paths):
        matches = [] if os.path.exists(path) else sorted(glob.glob(path))
        for match in matches or [path]:
            found = [match]
            if os.path.isdir(match):
                below = sorted(map(str, pathlib.Path(match).rglob("*")))
                found = [file for file in below if file.lower().endswith(_ENDINGS)]
            found = [*filter(os.path.isfile, found)]  # A pipe could be read only once.
            if not found:
                rule = f"Texts must be in files, or in a folder with {' or '.join(_ENDINGS)} files"
                raise FileNotFoundError(f"{rule}. Received: {match}, which holds none.")
            files += found
    is_table = [format_of(file, "text") != "text" for file in files]
    advice = "Write its texts into a .txt file, with blank lines between documents."
    raise_at_first(is_table, files, "A corpus must be plain text, not a table", advice)
    return files


def read_documents(
    paths: Path | Iterable[Path],
    documents: Literal["file", "blank_line"] = "file",
    passages: Literal["paragraph", "line"] = "paragraph",
) -> Iterator[list[str]]:
    r"""Yields the documents of text files, each a list of passages.

    Three conventions cover most corpora:

    | corpus | `documents` | `passages` |
    |---|---|---|
    | a book per file, blank lines between wrapped paragraphs (Gutenberg) | "file" | "paragraph" |
    | a passage per line, however long (Chinese novels, WikiText) | "file" | "line" |
    | a sentence per line, blank lines between documents (BERT) | "blank_line" | "line" |

    Files are read line by line, with one document in memory at a time.

    Args:
        paths: files and folders; see `find_text_files`.
        documents: `"file"` or `"blank_line"`, the end of a document.
        passages: `"paragraph"`, the lines up to a blank one joined by spaces, or `"line"`.

    Yields:
        A list of str, none empty, without white space at their ends. Documents without text are
        skipped.

    Raises:
        FileNotFoundError: a path does not exist.
        ValueError: a file has another encoding (the message names the file, the line and the
            byte) or is a table, or an argument is not one of its values.

    Example:
        ```python
        for passages in read_documents("gutenberg/"):
            print(len(passages), passages[0])
        ```
    """
    check_choice("documents", documents, ("file", "blank_line"))
    check_choice("passages", passages, ("paragraph", "line"))
    return _documents(find_text_files(paths), documents == "blank_line", passages)


def _documents(files, ends_at_blank_line, passages):
    split = _paragraphs if passages == "paragraph" else functools.partial(map, str.strip)
    for path in files:
        found = split(read_lines(path))
        if ends_at_blank_line:
            yield from (
                list(block) for has_text, block in itertools.groupby(found, bool) if has_text
            )
        elif document := [*filter(None, found)]:
            yield document


def _paragraphs(lines):
    """Yields paragraphs, with an empty string between two."""
    for has_text, block in itertools.groupby(map(str.strip, lines), bool):
        yield " ".join(block) if has_text else ""
