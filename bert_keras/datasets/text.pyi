from collections.abc import Iterable, Iterator
from typing import Literal

from bert_keras._types import Path

def find_text_files(paths: Path | Iterable[Path]) -> list[str]: ...
def read_documents(
    paths: Path | Iterable[Path],
    documents: Literal["file", "blank_line"] = "file",
    passages: Literal["paragraph", "line"] = "paragraph",
    errors: Literal["strict", "replace"] = "strict",
) -> Iterator[list[str]]: ...
