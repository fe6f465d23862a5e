"""Tables in TSV and CSV files: columns by name or by number."""

import contextlib
import csv
import os
from collections.abc import Iterator, Sequence
from typing import Literal

from bert_keras.checks import check_choice
from bert_keras.datasets.files import read_lines
from bert_keras.types import Path

# The largest value that fits a C long on every platform: csv refuses fields over 128 KiB otherwise.
_LONGEST_FIELD = 2**31 - 1


def read_rows(
    path: Path, delimiter: str | None = None, quoting: bool | None = None
) -> Iterator[tuple[int, list[str]]]:
    r"""Yields `(line number, fields)` for every row of a TSV or CSV file that is not blank.

    In a TSV a quotation mark is a letter like any other: MRPC and QNLI hold thousands of
    unbalanced ones. In a CSV (RFC 4180) a quoted field may hold delimiters, doubled quotes and
    line ends.

    Args:
        path: the file, plain or gzip.
        delimiter: str of one character. By default a tab where the first line has one; else a
            comma where the name ends in `.csv` or `.csv.gz`; else a tab.
        quoting: bool, whether `"` quotes fields. By default it does unless the delimiter is a tab.

    Yields:
        Pairs of an int, the line on which the row begins, and a list of str.

    Raises:
        ValueError: the file is empty, of another encoding, or has a quotation mark that is never
            closed. The message names the file and the line.
    """
    lines = read_lines(path)
    first = next((line for line in lines if line.strip("\r\n")), None)
    # The first line is wanted again, with its number: start over rather than keep state.
    lines.close()
    if first is None:
        raise ValueError(f"{path} is empty: a table needs at least one row.")
    if delimiter is None:
        delimiter = guess_delimiter(path, first)
    if not isinstance(delimiter, str) or len(delimiter) != 1:
        raise ValueError(f"`delimiter` must be one character. Received: {delimiter!r}")
    quoting = delimiter != "\t" if quoting is None else quoting
    split = _split_quoted if quoting else _split_plain
    return split(path, read_lines(path), delimiter)


def guess_delimiter(path: Path, first_line: str) -> str:
    """Returns the delimiter of a table by its first line or, without a tab there, by its name."""
    name = os.fspath(path).lower().removesuffix(".gz")
    return "," if name.endswith(".csv") and "\t" not in first_line else "\t"


def read_table(
    path: Path,
    columns: Sequence[str | int] | int | None = None,
    delimiter: str | None = None,
    header: bool | Literal["auto"] = "auto",
    quoting: bool | None = None,
) -> dict[str | int, list[str]]:
    """Reads columns of a TSV or CSV file, by name or by number.

    Args:
        path: the file; `.gz` is unpacked on the way. UTF-8 with or without a byte order mark,
            or UTF-16 with one.
        columns: list of str (names in the header) or int (positions from 0, negative from
            the end). By default every column of the header.
        delimiter: str of one character; see `read_rows` for the default.
        header: bool, whether the first row names the columns. `"auto"`: it does, unless all of
            `columns` are numbers.
        quoting: bool, whether `"` quotes fields; by default not where the delimiter is a tab.

    Returns:
        A dict from each of `columns` to a list of str, one per row, in the file's order.

    Raises:
        ValueError: a column does not exist (the message lists those that do), a row has another
            number of fields than the first, or the file is empty or badly encoded. The
            message names the file and the line.

    Example:
        ```python
        table = read_table("MRPC/dev.tsv", columns=["#1 String", "#2 String", "Quality"])
        table["Quality"][:3]  # ['1', '0', '0']
        ```
    """
    return read_numbered_table(path, columns, delimiter, header, quoting)[0]


def read_numbered_table(
    path: Path,
    columns: Sequence[str | int] | int | None = None,
    delimiter: str | None = None,
    header: bool | Literal["auto"] = "auto",
    quoting: bool | None = None,
) -> tuple[dict[str | int, list[str]], list[int]]:
    """Reads columns as `read_table` does, and the line on which each row begins.

    Args:
        path: see `read_table`.
        columns: see `read_table`.
        delimiter: see `read_table`.
        header: see `read_table`.
        quoting: see `read_table`.

    Returns:
        A tuple of the dict that `read_table` returns, and a list of int, one line number a row.

    Raises:
        ValueError: see `read_table`.
    """
    check_choice("header", header, (True, False, "auto"))
    if isinstance(columns, (str, int)):
        columns = [columns]
    if header == "auto":
        header = columns is None or not all(isinstance(column, int) for column in columns)
    rows = read_rows(path, delimiter, quoting)
    first_line, first = next(rows)
    if columns is None:
        columns = first if header else list(range(len(first)))
    positions = {column: find_column(path, first, column, header) for column in columns}
    table, lines = {column: [] for column in columns}, []
    if not header:
        rows = _chain_first(first_line, first, rows)
    for line, fields in rows:
        if len(fields) != len(first):
            raise ValueError(
                f"{path}, line {line}: every row must have as many fields as the first, "
                f"{len(first)}. Received {len(fields)}: {_shorten(fields)}"
            )
        for column, position in positions.items():
            table[column].append(fields[position])
        lines.append(line)
    return table, lines


def find_column(path: Path, first_row: Sequence[str], column: str | int, header: bool) -> int:
    """Returns the position of a column that is named in the first row, or counted from 0.

    Raises:
        ValueError: there is no such column, or two of that name. The message lists the columns.
    """
    if isinstance(column, int):
        if -len(first_row) <= column < len(first_row):
            return column % len(first_row)
        raise ValueError(
            f"{path} has {len(first_row)} columns, numbered from 0. Received column {column}. "
            f"The first row is {_shorten(first_row)}"
        )
    if not header:
        raise ValueError(
            f"With `header=False` columns are numbers from 0. Received the name {column!r}."
        )
    if first_row.count(column) != 1:
        problem = "no column" if column not in first_row else "more than one column"
        raise ValueError(
            f"{path} has {problem} {column!r}. Its columns are {_shorten(first_row)}. "
            f"If its first row is data, name the columns by number."
        )
    return first_row.index(column)


def _chain_first(line, fields, rows):
    yield line, fields
    yield from rows


def _split_plain(path, lines, delimiter):
    for number, line in enumerate(lines, start=1):
        line = line.removesuffix("\n").removesuffix("\r")
        if line:
            yield number, line.split(delimiter)


def _split_quoted(path, lines, delimiter):
    reader = csv.reader(lines, delimiter=delimiter, strict=True)
    while True:
        start = reader.line_num + 1
        try:
            with _long_fields_allowed():
                fields = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise ValueError(
                f"{path}, line {start}: the row that begins here is not CSV ({error}). Look for "
                f"a quotation mark that is never closed, or read it with `quoting=False`."
            ) from error
        if fields:
            yield start, fields


@contextlib.contextmanager
def _long_fields_allowed():
    # The limit is global to the process: put it back, so that other users of csv keep theirs.
    previous = csv.field_size_limit(_LONGEST_FIELD)
    try:
        yield
    finally:
        csv.field_size_limit(previous)


def _shorten(fields, longest=200):
    text = repr(fields)
    return text if len(text) <= longest else text[:longest] + "..."
