"""Tables in files: CSV, TSV, JSON, JSON lines and Parquet, with columns by name or by number."""

import contextlib
import csv
import itertools
import json
import os
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal

from bert_keras.checks import check_choice, require
from bert_keras.datasets.files import parse_json, read_json_lines, read_lines, read_text
from bert_keras.engine.atomic_files import reading
from bert_keras.types import Path

# The largest value that fits a C long on every platform: csv refuses fields over 128 KiB otherwise.
_LONGEST_FIELD = 2**31 - 1


class Table:
    """The rows of a file, all of one length, and the names or numbers of their columns.

    Args:
        path: the file, for messages.
        rows: list of `(place, fields)` as `read_rows` yields them, at least one.
        has_header: bool, whether the first row names the columns. If not, they have numbers.
        num_fields: tuple of int, the lengths that a row may have; by default that of the first.

    Attributes:
        first: list, the first row.
        rows: list of `(place, fields)`, without the header.

    Raises:
        ValueError: a row has another length. The message names the file and the place.
    """

    def __init__(
        self,
        path: Path,
        rows: Sequence[tuple[str, list[Any]]],
        has_header: bool,
        num_fields: Sequence[int] = (),
    ) -> None:
        self.path, self.has_header, self.first = path, has_header, rows[0][1]
        self.rows = list(rows[has_header:])
        num_fields = num_fields or (len(self.first),)
        for place, fields in self.rows:
            if len(fields) not in num_fields:
                raise ValueError(
                    f"{path}, {place}: every row must have as many fields as the first, "
                    f"{' or '.join(map(str, num_fields))}. Received {len(fields)}: "
                    f"{shorten(fields)}"
                )

    def find(self, column: str | int, advice: str = "") -> int:
        """Returns the position of a column that the first row names, or that is counted from 0.

        Raises:
            ValueError: there is no such column, or two of that name. The message lists the columns.
        """
        names, size = self.first if self.has_header else [], len(self.first)
        is_number = isinstance(column, int)
        if (-size <= column < size) if is_number else names.count(column) == 1:
            return column % size if is_number else names.index(column)
        problem = "more than one column" if column in names else "no column"
        advice = advice or "Where the first row is data, columns are numbers from 0."
        raise ValueError(
            f"{self.path} has {problem} {column!r}. Its first row has {size} columns: "
            f"{shorten(self.first)}. {advice}"
        )

    @property
    def places(self) -> list[str]:
        """Where each row begins, such as `"t.csv, line 3"`."""
        return [f"{self.path}, {place}" for place, _ in self.rows]

    def column(self, position: int) -> list[Any]:
        """Returns the fields of a column."""
        return [fields[position] for _, fields in self.rows]

    def texts(self, position: int) -> list[str]:
        """Returns the fields of a column as str; raises `ValueError` if one is not text."""
        return [*map(as_text, self.column(position), self.places)]


def read_table(
    path: Path,
    columns: Sequence[str | int] | str | int | None = None,
    delimiter: str | None = None,
    header: bool | Literal["auto"] = "auto",
    quoting: bool | None = None,
) -> dict[str | int, list[Any]]:
    """Reads columns of a file, by name or by number.

    Args:
        path: the file, see `read_rows`.
        columns: list of str (names in the header) or int (positions from 0, negative from
            the end). By default every column.
        delimiter: str of one character; see `read_rows` for the default.
        header: bool, whether the first row names the columns. With `"auto"` it does, unless all of
            `columns` are numbers.
        quoting: bool, whether `"` quotes fields; by default not if the delimiter is a tab.

    Returns:
        A dict from each of `columns` to a list, one field per row, in the file's order.

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
    check_choice("header", header, (True, False, "auto"))
    if isinstance(columns, (str, int)):
        columns = [columns]
    if header == "auto":
        header = columns is None or not all(isinstance(column, int) for column in columns)
    table = Table(path, list(read_rows(path, delimiter, quoting)), header)
    if columns is None:
        columns = table.first if header else range(len(table.first))
    return {column: table.column(table.find(column)) for column in columns}


def read_rows(
    path: Path, delimiter: str | None = None, quoting: bool | None = None
) -> Iterator[tuple[str, list[Any]]]:
    r"""Yields the place and the fields of every row of a table that is not blank.

    In a TSV a quotation mark is a letter like any other: MRPC and QNLI hold thousands of
    unbalanced ones. In a CSV (RFC 4180) a quoted field may hold delimiters, doubled quotes and
    line ends. JSON and Parquet yield the names of their columns first.

    Args:
        path: the file. The ending of its name tells the format: `.json` (a list of objects, one
            under the key `data`, or an object per line), `.jsonl`, `.ndjson`, `.parquet`, else
            text. All but Parquet may be gzip. Text is UTF-8, or UTF-16 with a byte order mark.
        delimiter: str of one character, for text. By default a tab if the first line has one; else
            a comma if the name ends in `.csv` or `.csv.gz`; else a tab.
        quoting: bool, whether `"` quotes fields. By default it does unless the delimiter is a tab.

    Yields:
        Pairs of a str, where the row begins, such as `"line 3"`, and a list: of str in text, of
        JSON values elsewhere.

    Raises:
        ValueError: the file is empty, of another format or encoding, has a quotation mark that is
            never closed, or an object without a key of the first one. The message names the file
            and the place.
    """
    if not has_names(path):
        head, lines = [], read_lines(path)
        for line in lines:
            head.append(line)
            if line.strip("\r\n"):
                break
        else:
            raise ValueError(f"{path} is empty: a table needs at least one row.")
        delimiter = _guess_delimiter(path, head[-1]) if delimiter is None else delimiter
        yield from split_rows(itertools.chain(head, lines), path, delimiter, quoting)
        return
    if delimiter is not None:
        raise ValueError(f"{path} has no delimiter. Received: {delimiter!r}. Leave it out.")
    names = None
    for place, record in read_records(path):
        if names is None:
            names = list(record)
            yield place, names
        missing = [name for name in names if name not in record]
        if missing:
            raise ValueError(
                f"{path}, {place}: every object must have the keys of the first, {names}. "
                f"Missing: {missing}"
            )
        yield place, [record[name] for name in names]
    if names is None:
        raise ValueError(f"{path} is empty: it needs at least one JSON object.")


def read_records(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yields the place and the fields, by name, of every row of a table with named columns.

    Args:
        path: the file, see `read_rows`. JSON objects may have different keys.

    Raises:
        ValueError: see `read_rows`.
    """
    if os.fspath(path).lower().endswith(".parquet"):
        parquet = require("pyarrow.parquet", f"read {path}")
        with reading(path):
            rows = parquet.read_table(path).to_pylist()
        yield from ((f"row {number}", row) for number, row in enumerate(rows, 1))
    elif has_names(path):
        yield from _json_records(path)
    else:
        table = Table(path, list(read_rows(path)), has_header=True)
        for place, fields in table.rows:
            yield place, dict(zip(table.first, fields, strict=True))


def has_names(path: Path) -> bool:
    """Whether a file's format names its columns, so that no row of text has to."""
    name = os.fspath(path).lower().removesuffix(".gz")
    return name.endswith((".json", ".jsonl", ".ndjson", ".parquet"))


def as_text(value: Any, place: str) -> str:
    """Returns a field as str; in JSON it may be anything.

    Raises:
        ValueError: it is neither a str nor a number.
    """
    if not isinstance(value, (str, int, float)) or isinstance(value, bool):
        raise ValueError(
            f"{place}: texts and labels must be str or numbers. Received: {shorten(value, 80)}"
        )
    return str(value)


def split_rows(
    lines: Iterable[str], path: Path, delimiter: str, quoting: bool | None = None
) -> Iterator[tuple[str, list[str]]]:
    """Yields the place and the fields of every row of a table's lines that is not blank.

    Args:
        lines: iterable of str, each with its line end.
        path: the name of the file, for messages.
        delimiter: see `read_rows`.
        quoting: see `read_rows`.
    """
    if not isinstance(delimiter, str) or len(delimiter) != 1:
        raise ValueError(f"`delimiter` must be one character. Received: {delimiter!r}")
    if not (delimiter != "\t" if quoting is None else quoting):
        for number, line in enumerate(lines, start=1):
            line = line.removesuffix("\n").removesuffix("\r")
            if line:
                yield f"line {number}", line.split(delimiter)
        return
    reader = csv.reader(lines, delimiter=delimiter, strict=True)
    while True:
        place = f"line {reader.line_num + 1}"
        try:
            with _long_fields_allowed():
                fields = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise ValueError(
                f"{path}, {place}: the row that begins here is not CSV ({error}). Look for "
                f"a quotation mark that is never closed, or read it with `quoting=False`."
            ) from error
        if fields:
            yield place, fields


def _guess_delimiter(path, first_line):
    name = os.fspath(path).lower().removesuffix(".gz")
    return "," if name.endswith(".csv") and "\t" not in first_line else "\t"


@contextlib.contextmanager
def _long_fields_allowed():
    # The limit is global to the process. Restore it, so that other users of csv keep theirs.
    previous = csv.field_size_limit(_LONGEST_FIELD)
    try:
        yield
    finally:
        csv.field_size_limit(previous)


def _json_records(path):
    if _has_an_object_per_line(path):
        for line, record in read_json_lines(path):
            yield f"line {line}", record
        return
    content = parse_json(read_text(path), path)
    rows = content.get("data") if isinstance(content, dict) else content
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        found = f"an object with {list(content)[:20]}" if isinstance(content, dict) else content
        raise ValueError(
            f"{path} must hold a list of JSON objects, alone or under the key 'data', or an object "
            f"per line. Received: {shorten(found, 80)}."
        )
    for number, row in enumerate(rows, 1):
        yield f"row {number}", row


def _has_an_object_per_line(path):
    first = next((line for line in read_lines(path) if line.strip()), "{}")
    try:
        value = json.loads(first)
    except (ValueError, RecursionError):  # The first line of a document over several lines.
        return os.fspath(path).lower().removesuffix(".gz").endswith("l")
    return isinstance(value, dict) and not isinstance(value.get("data"), list)


def shorten(value: object, longest: int = 200) -> str:
    """Returns a value as a message shows it; a str as it is."""
    text = value if isinstance(value, str) else repr(value)
    return text if len(text) <= longest else text[:longest] + "..."
