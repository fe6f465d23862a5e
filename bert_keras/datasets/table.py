"""Tables in files: CSV, TSV, JSON, JSON lines and Parquet, with columns by name or by number."""

import contextlib
import csv
import io
import itertools
import json
import os
import re
import warnings
from collections.abc import Iterator, Sequence
from typing import Any, BinaryIO, Literal

from bert_keras.checks import check_choice, refuse_unused, require
from bert_keras.datasets.files import (
    COMPRESSED_NAMES,
    as_record,
    parse_json,
    read_json_lines,
    read_lines,
)
from bert_keras.engine.atomic_files import reading
from bert_keras.types import Path

# The largest limit that fits a C long on every platform. By default csv refuses over 128 KiB.
_LONGEST_FIELD = 2**31 - 1
# The ending of a name -> the kind of table. A file with any other ending is a "tsv".
_KINDS = {".csv": "csv", ".json": "json", ".jsonl": "jsonl", ".ndjson": "jsonl"}
_KINDS |= {".parquet": "parquet", ".feather": "feather", ".xlsx": "excel", ".xlsm": "excel"}
_BINARY = ("parquet", "feather", "excel")
# A first line that tells Excel what separates the columns.
_SEPARATOR_LINE = re.compile('"?sep=(.)"?[\r\n]*')
# A field between tabs and in quotation marks.
_QUOTED = re.compile('(?<![^\t])"((?:[^"]|"")*)"(?![^\t])')


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
            _check_length(path, place, fields, num_fields)

    def find(self, column: str | int, advice: str = "") -> int:
        """Returns the position of a column that the first row names, or that is counted from 0.

        Raises:
            ValueError: there is no such column, or two of that name. The message lists the columns.
        """
        names, size = self.first if self.has_header else [], len(self.first)
        is_number = isinstance(column, int)
        places = [] if is_number else find_name(names, column)
        if (-size <= column < size) if is_number else len(places) == 1:
            return column % size if is_number else places[0]
        problem = "more than one column" if places else "no column"
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
        quoting: bool, whether `"` quotes fields; see `read_rows` for the default.

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
    names = [name for name in columns or () if header and isinstance(name, str)]
    table = Table(path, list(read_rows(path, delimiter, quoting, names)), header)
    if columns is None:
        columns = table.first if header else range(len(table.first))
    return {column: table.column(table.find(column)) for column in columns}


def read_rows(
    path: Path,
    delimiter: str | None = None,
    quoting: bool | None = None,
    names: Sequence[str] = (),
    kind: str | None = None,
    stream: BinaryIO | None = None,
    surplus: bool = False,
) -> Iterator[tuple[str, list[Any]]]:
    r"""Yields the place and the fields of every row of a table that is not blank.

    A quoted field (RFC 4180) may hold delimiters, line ends, and quotation marks, which are doubled
    or, as Spark writes them, follow a backslash. In a TSV a quotation mark may also be a character
    like any other: MRPC and QNLI hold thousands of unbalanced ones. If a blank follows each
    delimiter of the first row, the blanks after the delimiters of all rows are skipped, except in a
    TSV. JSON and Parquet yield the names of their columns first.

    Args:
        path: the file. The ending of its name tells the format: `.json` (a list of objects, one
            under the key `data`, or an object per line), `.jsonl`, `.ndjson`, `.parquet`,
            `.feather`, `.xlsx`, else text. Text and JSON may be gzip, bzip2 or xz. Text is UTF-8,
            or UTF-16 with a byte order mark.
        delimiter: str of one character, for text. By default that of a first line such as `sep=;`;
            else whichever of comma, tab, `;` and `|` splits the first row into `names`; else a tab
            if the first row has one; else in a `.csv` file a comma, or `;` or `|` if the first row
            has no comma; else a tab.
        quoting: bool, whether `"` quotes fields. By default it does, except between tabs: there it
            does if every field with a quotation mark is quoted, all rows then have the same length,
            and either some field needs its quotation marks or all texts have them.
        names: columns that the first row names.
        kind: `"csv"`, `"tsv"`, `"json"`, `"jsonl"` or `"parquet"`; by default by the name's ending.
        stream: optional buffered binary file object to read, see `read_lines`.
        surplus: bool, whether rows of a TSV without quoted fields are cut to the length of the
            first, with a warning, as in STS-B's own files.

    Yields:
        Pairs of a str, where the row begins, such as `"line 3"`, and a list: of str in text, of
        JSON values elsewhere.

    Raises:
        ValueError: the file is empty, of another format or encoding, has a quotation mark that is
            never closed, or an object without a key of the first one. The message names the file
            and the place.
    """
    kind = kind or kind_of(path)
    if kind in ("csv", "tsv"):
        yield from _rows_of_text(path, delimiter, quoting, {*names}, kind, stream, surplus)
        return
    refuse_unused(f"{path} has no delimiter", {"delimiter": delimiter})
    keys = None
    for place, record in read_records(path, kind=kind, stream=stream):
        if keys is None:
            keys = list(record)
            yield place, keys
        missing = [key for key in keys if key not in record]
        if missing:
            raise ValueError(
                f"{path}, {place}: every object must have the keys of the first, {keys}. "
                f"Missing: {missing}"
            )
        yield place, [record[key] for key in keys]
    if keys is None:
        raise ValueError(f"{path} is empty: it needs at least one JSON object.")


def read_records(
    path: Path,
    delimiter: str | None = None,
    quoting: bool | None = None,
    names: Sequence[str] = (),
    kind: str | None = None,
    stream: BinaryIO | None = None,
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yields the place and the fields, by name, of every row of a table with named columns.

    Args:
        path: the file. JSON objects may have different keys.
        delimiter: see `read_rows`.
        quoting: see `read_rows`.
        names: columns that must be there. If all of them are numbers, the first row of a text file
            is data, and its columns are called "0", "1" and so on.
        kind: see `read_rows`.
        stream: see `read_rows`.

    Raises:
        ValueError: see `read_rows`. Text lacks one of `names`.
    """
    kind = kind or kind_of(path)
    if kind in _BINARY:
        yield from _binary_records(path, kind, stream)
    elif kind in ("json", "jsonl"):
        yield from _json_records(path, kind, stream)
    else:
        is_numbered = len(names) > 0 and all(map(is_number, names))
        rows = read_rows(path, delimiter, quoting, names, kind, stream, is_numbered)
        first = next(rows)
        header = first[1]
        if is_numbered:
            header, rows = (
                [str(number) for number in range(len(header))],
                itertools.chain([first], rows),
            )
        missing = [name for name in names if not find_name(header, name)]
        if missing:
            raise ValueError(
                f"The header of {path} must have the fields {list(names)}. Received: "
                f"{shorten(header)}. Name the fields to read by --columns, or number them from 0 "
                "if the first row is data; --separator is what separates them."
            )
        repeated = [x for x in names or header if x and len(find_name(header, x)) > 1]
        if repeated:
            raise ValueError(
                f"{path} has more than one column {repeated[0]!r}. Its first row has "
                f"{len(header)} columns: {shorten(header)}. Rename one."
            )
        for place, fields in rows:
            _check_length(path, place, fields, (len(header),))
            yield place, dict(zip(header, fields, strict=True))


def find_name(names: Sequence[Any], wanted: str) -> list[int]:
    """Returns the positions of a name: exact, else without blanks around it, else in any case."""
    for form in (str, _without_blanks, lambda name: _without_blanks(name).casefold()):
        found = [place for place, name in enumerate(names) if form(str(name)) == form(wanted)]
        if found:
            return found
    return []


def _without_blanks(name):
    return name.strip().strip("\ufeff\u200b\u2060").strip()


def accepted(answers: Sequence[Any]) -> list[bool]:
    """Returns which rows annotators accepted, by Prodigy's field `answer`; all of other files."""
    is_prodigy = {*map(str, answers)} <= {"accept", "reject", "ignore"}
    return [not is_prodigy or answer == "accept" for answer in answers]


def is_number(column: str | int) -> bool:
    """Whether a column is given by its number, as an int or a str."""
    return re.fullmatch(r"-?\d+", str(column)) is not None


def kind_of(path: Path) -> str:
    """Returns the kind of a table by the ending of its name, `"tsv"` if that says nothing."""
    name = COMPRESSED_NAMES.sub("", os.fspath(path).lower())
    return _KINDS.get(os.path.splitext(name)[1], "tsv")


def has_names(path: Path) -> bool:
    """Whether a file's format (JSON, Parquet) names the columns, so that no first row has to."""
    return kind_of(path) not in ("csv", "tsv")


def as_text(value: Any, place: str) -> str:
    """Returns a field as str. In JSON a field may have any type.

    Raises:
        ValueError: it is neither a str nor a number, or it is NaN.
    """
    if not isinstance(value, (str, int, float)) or isinstance(value, bool) or value != value:
        raise ValueError(
            f"{place}: texts and labels must be str or numbers. Received: {shorten(value, 80)}"
        )
    return str(value)


def _check_length(path, place, fields, num_fields):
    if len(fields) not in num_fields:
        raise ValueError(
            f"{path}, {place}: every row must have as many fields as the first, "
            f"{' or '.join(map(str, num_fields))}. Received {len(fields)}: {shorten(fields)}. A "
            "field that holds the separator must be in quotation marks; say what separates columns "
            "by `separator`, and whether they are quoted by `quoting`."
        )


# Rows of text


def _rows_of_text(path, delimiter, quoting, names, kind, stream, surplus):
    """Yields the place and the fields of each row that is not blank, see `read_rows`."""
    lines = enumerate(read_lines(path, stream=stream), start=1)
    first = next((item for item in lines if item[1].strip("\r\n")), None)
    if first and (found := _SEPARATOR_LINE.fullmatch(first[1])):
        delimiter = delimiter or found[1]
        first = next(lines, None)
    if first is None:
        raise ValueError(f"{path} is empty: a table needs at least one row.")
    delimiter = _guess_delimiter(first[1], kind, names) if delimiter is None else delimiter
    if not isinstance(delimiter, str) or len(delimiter) != 1:
        raise ValueError(f"`delimiter` must be one character. Received: {delimiter!r}")
    rows = _split(itertools.chain([first], lines), path, delimiter, quoting)
    yield from _without_surplus(rows, path) if surplus and delimiter == "\t" else rows


def _without_surplus(rows, path):
    """Yields rows cut to the length of the first; warns of those that were longer."""
    size, places = 0, []
    for place, fields in rows:
        size = size or len(fields)
        if len(fields) > size:
            places.append(place)
        yield place, fields[:size]
    if places:
        warnings.warn(
            f"{path}: rows with more fields than the first, {size}: {len(places)} ({places[0]} is "
            "the first). The surplus fields are not read.",
            stacklevel=1,
        )


def _guess_delimiter(line, kind, names):
    """Returns what separates the columns in the first row, see `read_rows`."""
    usual = ",;|\t" if kind == "csv" else "\t,;|"
    found = {each: line.rstrip("\r\n").split(each) for each in usual}
    with contextlib.suppress(csv.Error), _long_fields_allowed():
        found = {each: next(_reader([line], each, skips_blanks=True)) for each in usual}
    fitting = [x for x in usual if names and all(find_name(found[x], name) for name in names)]
    if fitting:
        return max(fitting, key=lambda each: len(found[each]))
    if "\t" in line or kind != "csv":
        return "\t"
    return "," if "," in line else max(",;|", key=line.count)


def _split(lines, path, delimiter, quoting):
    """Yields the place and the fields of each of the numbered lines.

    Lines without a quotation mark are split alike, whether marks quote fields or not. That is found
    out from all lines beginning with the first that has such a mark.
    """
    if quoting is None and delimiter != "\t":
        quoting = True
    size, escapes, has_comma, skips_blanks = 0, None, False, None
    while (item := next(lines, None)) is not None:
        number, line = item
        bare = line.removesuffix("\n").removesuffix("\r")
        if not bare:
            continue
        if skips_blanks is None:
            skips_blanks = delimiter not in "\t " and _has_blanks(bare, delimiter)
        if (quoting is None and '"' in bare) or (quoting and escapes is None and '\\"' in bare):
            rest = [line, *(later for _, later in lines)]
            layout = delimiter, skips_blanks, size, quoting, has_comma
            quoting, escapes = _quoting_of(rest, *layout)
            lines = enumerate(rest, start=number)
            continue
        if quoting and ('"' in bare or "\r" in bare):
            record = itertools.chain([line], (later for _, later in lines))
            fields = _quoted_fields(record, path, number, delimiter, skips_blanks, escapes)
        else:
            fields = bare.split(delimiter)
            fields = [field.lstrip(" ") for field in fields] if skips_blanks else fields
            has_comma = has_comma or "," in bare
        size = size or len(fields)
        yield f"line {number}", fields


def _has_blanks(line, delimiter):
    """Whether a blank follows each delimiter of the given line, the first row."""
    return re.search(rf"{re.escape(delimiter)}(?! )", line) is None and delimiter in line


def _reader(lines, delimiter, skips_blanks, strict=False):
    options = {"skipinitialspace": skips_blanks, "strict": strict}
    return csv.reader(lines, delimiter=delimiter, **options)


def _quoted_fields(lines, path, number, delimiter, skips_blanks, escapes):
    """Returns the fields of the row that begins with the first of the lines."""
    try:
        return next(_records(lines, delimiter, skips_blanks, escapes))[1]
    except csv.Error as error:
        advice = "Look for a quotation mark that is never closed"
        if "new-line" in str(error):
            advice = "A carriage return (\\r) inside a row must be in quotation marks"
        raise ValueError(
            f"{path}, line {number}: the row that begins here is not CSV ({error}). {advice}, or "
            "read it with `quoting=False`."
        ) from error


def _records(lines, delimiter, skips_blanks, escapes):
    """Yields the text of each row and its fields.

    Args:
        lines: iterable of str.
        delimiter: str of one character.
        skips_blanks: bool, whether blanks before a field do not belong to it.
        escapes: bool, whether a quotation mark inside a field follows a backslash.
    """
    taken = []

    def take(line):
        taken.append(re.sub(r'(\\+)"', _as_rfc_4180, line) if escapes else line)
        return taken[-1]

    reader = _reader(map(take, lines), delimiter, skips_blanks, strict=True)
    while True:
        with _long_fields_allowed():
            fields = next(reader, None)
        if fields is None:
            return
        yield "".join(taken), fields
        taken.clear()


def _as_rfc_4180(match):
    """Returns backslashes and the quotation mark after them, doubled instead of escaped."""
    number = len(match[1])
    return "\\" * (number // 2) + '"' * (1 + number % 2)


def _quoting_of(lines, delimiter, skips_blanks, size, quoting, has_comma):
    """Returns whether quotation marks quote fields, and whether a backslash escapes them.

    Args:
        lines: the lines from the first one with a quotation mark.
        delimiter: str of one character.
        skips_blanks: bool, see `_records`.
        size: number of fields in the first row, 0 if that row begins with these lines.
        quoting: bool, or `None` to detect it.
        has_comma: bool, whether a line before these has a comma.
    """
    for escapes in (False, True):
        with contextlib.suppress(csv.Error):
            records = _records(lines, delimiter, skips_blanks, escapes)
            records = [record for record in records if record[1]]
            is_regular = {len(fields) for _, fields in records} == {size or len(records[0][1])}
            if is_regular and (quoting or _are_quoted(records, size, has_comma)):
                return True, escapes
    return bool(quoting), False


def _are_quoted(records, size, has_comma):
    """Whether rows of a TSV were written with quotation marks around fields.

    A program quotes only the fields that need it (pandas), those with commas too (Excel), or all
    texts.
    """
    quoted, bare = [], []
    for text, _ in records:
        quoted += _QUOTED.findall(text.rstrip("\r\n"))
        bare.append(_QUOTED.sub("", text.rstrip("\r\n")))
    if any('"' in text for text in bare):
        return False
    if any(re.search('""|[\t\r\n]', field) for field in quoted):
        return True
    if len(records[0][1]) == 1:
        return False
    has_comma = has_comma or any("," in text for text in bare)
    is_whole = not size and all(re.fullmatch(r"[\t\d.eE+-]*", text) for text in bare)
    return is_whole or (not has_comma and any("," in field for field in quoted))


@contextlib.contextmanager
def _long_fields_allowed():
    # The limit is global to the process. Restore it, so that other users of csv keep theirs.
    previous = csv.field_size_limit(_LONGEST_FIELD)
    try:
        yield
    finally:
        csv.field_size_limit(previous)


# Rows of Parquet, Feather and Excel


def _binary_records(path, kind, stream):
    """Yields the place and the fields of each row of the first table or sheet."""
    source = path if stream is None else io.BytesIO(stream.read())
    if kind == "excel":
        openpyxl = require("openpyxl", f"read {path}", "data")
        with reading(path):
            sheet = openpyxl.load_workbook(source, read_only=True, data_only=True).worksheets[0]
            rows = [(n, row) for n, row in enumerate(sheet.iter_rows(values_only=True), 1)]
        rows = [(number, row) for number, row in rows if any(x is not None for x in row)]
        header = ["" if name is None else str(name) for name in rows[0][1]] if rows else []
        width = max((n for n, name in enumerate(header, 1) if name), default=0)
        for number, row in rows[1:]:
            cells = [_of_cell(x) for x in row]
            if any(x is not None for x in cells[width:]):
                raise ValueError(f"{path}, row {number}: a cell has no name above its column.")
            yield f"row {number}", dict(zip(header[:width], cells[:width], strict=True))
        return
    module = require(f"pyarrow.{kind}", f"read {path}", "data")
    with reading(path):
        rows = module.read_table(source).to_pylist()
    yield from ((f"row {number}", row) for number, row in enumerate(rows, 1))


def _of_cell(value):
    """Returns the value of a cell of Excel: text, a number, a bool, or a date as text."""
    is_plain = value is None or isinstance(value, (str, int, float))
    return value if is_plain else str(value)


# Rows of JSON


def _json_records(path, kind, stream):
    lines = read_lines(path, stream=stream)
    head = []
    for line in lines:
        head.append(line)
        if line.strip():
            break
    lines = itertools.chain(head, lines)
    if head and _is_a_record(head[-1], kind):
        records = ((f"line {n}", record) for n, record in read_json_lines(path, lines))
        yield from _without_heading(path, records)
        return
    content = parse_json("".join(lines) or "[]", path)
    rows = content.get("data") if isinstance(content, dict) else content
    rows = [*map(as_record, rows)] if isinstance(rows, list) else rows
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        found = f"an object with {list(content)[:20]}" if isinstance(content, dict) else content
        raise ValueError(
            f"{path} must hold a list of JSON objects, alone or under the key 'data', or an object "
            f"per line. Received: {shorten(found, 80)}. pandas writes such a list with "
            '`to_json(path, orient="records")`.'
        )
    for number, row in enumerate(rows, 1):
        yield f"row {number}", row


def _is_a_record(line, kind):
    """Whether a file has a JSON object on each line, judged by its first line that is not blank."""
    if not line.strip():
        return True
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):  # The first line of a document over several lines.
        return kind == "jsonl" and line.strip() != "["
    value = as_record(value)
    return isinstance(value, dict) and not isinstance(value.get("data"), list)


def _without_heading(path, records):
    """Yields records without a first one that shares no key with the second, as MRQA has it."""
    records = iter(records)
    head = [*itertools.islice(records, 2)]
    if len(head) == 2 and head[0][1].keys().isdisjoint(head[1][1]) and all(x[1] for x in head):
        place, heading = head.pop(0)
        warnings.warn(
            f"{path}, {place} has other keys than the next line, {list(heading)[:9]}. It is taken "
            "for a heading and not read.",
            stacklevel=2,
        )
    yield from itertools.chain(head, records)


def shorten(value: object, longest: int = 200) -> str:
    """Returns a value as text for a message, cut to `longest` characters."""
    text = value if isinstance(value, str) else repr(value)
    return text if len(text) <= longest else text[:longest] + "..."
