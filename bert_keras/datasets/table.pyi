from collections.abc import Iterator, Sequence
from typing import Literal

from bert_keras._types import Path

def read_rows(
    path: Path, delimiter: str | None = None, quoting: bool | None = None
) -> Iterator[tuple[int, list[str]]]: ...
def guess_delimiter(path: Path, first_line: str) -> str: ...
def read_table(
    path: Path,
    columns: Sequence[str | int] | int | None = None,
    delimiter: str | None = None,
    header: bool | Literal["auto"] = "auto",
    quoting: bool | None = None,
) -> dict[str | int, list[str]]: ...
def read_numbered_table(
    path: Path,
    columns: Sequence[str | int] | int | None = None,
    delimiter: str | None = None,
    header: bool | Literal["auto"] = "auto",
    quoting: bool | None = None,
) -> tuple[dict[str | int, list[str]], list[int]]: ...
def find_column(path: Path, first_row: Sequence[str], column: str | int, header: bool) -> int: ...
