"""Tables in files: CSV, TSV, Excel, JSON, JSON lines and Parquet, read row by row.

Python's `csv` splits text. pandas would fill a row that is too short with empty texts, and read
`"a" b` as `a b`, both without a word; and its messages do not know the line.
"""

import ast
import contextlib
import csv
import functools
import io
import itertools
import json
import os
import re
import unicodedata
import warnings
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, BinaryIO, Literal

from bert_keras.checks import check_not_empty, refuse_options, require
from bert_keras.datasets.files import as_record, check_at, parse_json, read_lines
from bert_keras.engine.atomic_files import reading
from bert_keras.types import Path

# The largest limit that fits a C long on every platform. By default csv refuses over 128 KiB.
_LONGEST_FIELD = 2**31 - 1
# About how many characters of a TSV tell whether quotation marks enclose its fields. Three times as
# many are in memory.
_CHARACTERS_LOOKED_AT = 10_000_000
# The ending of a name -> the kind of file. As a table, a text file and any other one is a "tsv".
KINDS = {".csv": "csv", ".tsv": "tsv", ".txt": "text", ".json": "json"}
KINDS |= {".jsonl": "jsonl", ".ndjson": "jsonl", ".parquet": "parquet"}
KINDS |= {".xlsx": "excel", ".xlsm": "excel"}
_SEPARATED = "Put fields that hold the separator in quotation marks; see `separator` and `quoting`."
# A list that was written as text, and a name in quotation marks in it.
_LIST = re.compile(r"[\[({].*[\])}]", re.DOTALL)
_QUOTED = re.compile(r"'((?:[^'\\]|\\.)*)'|\"((?:[^\"\\]|\\.)*)\"")
# A first line that tells Excel what separates the columns.
_SEPARATOR_LINE = re.compile('"?sep=(.)"?[\r\n]*')


def read_records(
    path: Path,
    delimiter: str | None = None,
    quoting: bool | None = None,
    names: Sequence[str | int] = (),
    kind: str | None = None,
    stream: BinaryIO | None = None,
    encoding: str | None = None,
    header: bool | None = None,
    wrong: Literal["refuse", "cut", "leave out"] = "cut",
) -> Iterator[tuple[str, dict[str, Any]]]:
    r"""Yields the place and the fields, by the names of their columns, of every row of a table.

    A quoted field (RFC 4180) may hold delimiters, line ends, and doubled quotation marks. In a TSV
    a quotation mark may also be a character like any other: MRPC and QNLI hold thousands of
    unbalanced ones. Blank rows are skipped. Rows are read as they are needed, so that text, JSON
    lines and Parquet may be larger than memory.

    Args:
        path: the file. The ending of its name tells the format: `.json` (a list of objects, one
            under the key `data`, or an object per line), `.jsonl`, `.ndjson`, `.parquet`, `.xlsx`
            and `.xlsm` (the first sheet), else text. Text and JSON may be gzip, bzip2 or xz.
        delimiter: str of one character, for text. By default that of a first line such as `sep=;`;
            else whichever of comma, tab, `;` and `|` splits the first row into `names`; else a tab
            if the first row has one; else in a `.csv` file a comma, or `;` or `|` if the first row
            has no comma; else a tab.
        quoting: bool, whether `"` quotes fields. By default it does, except between tabs: there it
            does if in the first 10 million characters every field with a quotation mark is quoted,
            all rows then have the same length, and the header or a field that needs them has the
            marks.
        names: columns that must be there.
        kind: `"csv"`, `"tsv"`, `"json"`, `"jsonl"`, `"excel"` or `"parquet"`; by default by the
            name's ending, and without one by how the text begins.
        stream: optional buffered binary file object to read, see `read_lines`.
        encoding: str, of text and JSON; by default UTF-8, or what a byte order mark announces.
        header: bool, whether the first row of text or of a sheet names the columns. By default it
            does, unless all `names` are numbers. Else columns are called "0", "1" and so on.
        wrong: what to do with a row that is not as long as the first. It is an error, except that
            with `"leave out"` it is left out, and with `"cut"` surplus fields are dropped if the
            columns have no names and tabs separate them, as in STS-B. A warning counts such rows.

    Yields:
        Pairs of a str, where the row begins, such as `"line 3"`, and a dict: of str in text, of
        values elsewhere. JSON objects may have different keys. Further columns of the same name
        are called `name.1`, `name.2` and so on, as in pandas.

    Raises:
        ValueError: the file is empty, of another format or encoding, has a quotation mark that is
            never closed, a row of another length, or not one column of each of `names`. The message
            names the file and the place.
    """
    kind = kind or kind_of(path)
    if kind not in ("csv", "tsv"):
        refuse_options(f"{path} has no delimiter", {"delimiter": delimiter})
    if kind == "parquet":
        yield from _records_of_parquet(path, stream)
        return
    lines = read_lines(path, stream=stream, encoding=encoding)
    if kind in ("json", "jsonl"):
        yield from _records_of_json(path, kind, lines)
        return
    header = header if header is not None else not names or not all(map(is_number, names))
    if kind == "excel":
        rows = _rows_of_excel(path, stream)
    else:
        named = [name for name in names if header and isinstance(name, str)]
        first, delimiter = find_delimiter(path, lines, delimiter, kind, named)
        rows = _rows_of_text(path, first, lines, delimiter, quoting)
    is_strict = wrong == "cut" and (header or delimiter != "\t")
    rows = _of_one_length(path, rows, "refuse" if is_strict else wrong)
    first = next(rows, None)
    check_not_empty(first or (), f"{path} is empty: a table needs at least one row")
    known = [*map(str, first[1] if header else range(len(first[1])))]
    keys = []
    for name in known:
        forms = itertools.chain([name], (f"{name}.{number}" for number in itertools.count(1)))
        keys.append(next(x for x in forms if x not in keys and (x == name or x not in known)))
    for name in names or filter(None, known):
        find_column(path, known if name in known else keys, name)
    for place, fields in rows if header else itertools.chain([first], rows):
        yield place, dict(zip(keys, fields, strict=True))


def find_column(path: Path, header: Sequence[str], column: str | int) -> int:
    """Returns the position of a column that a header names, or that is counted from 0.

    Raises:
        ValueError: there is no such column, or two of that name. The message lists the columns.
    """
    size = len(header)
    places = [] if isinstance(column, int) else find_name(header, column)
    if not places and is_number(column) and -size <= int(column) < size:
        places = [int(column) % size]
    rule = f"the header has {'more than one' if places else 'no'} column {column!r}"
    advice = "Name those to read (--columns, --label_column) and what separates them "
    advice += "(--separator); without a header, columns are numbers from 0."
    check_at(path, len(places) == 1, rule, [*header], advice)
    return places[0]


def find_name(names: Iterable[Any], *wanted: str) -> list[int]:
    """Returns the positions of a name: exact, in any case, or in any width.

    Of several names wanted, it is the first that occurs.
    """
    names = [*map(str, names)]
    for each in wanted:
        for form in (str, lambda name: " ".join(name.split()).casefold(), _folded):
            found = [place for place, name in enumerate(names) if form(name) == form(each)]
            if found:
                return found
    return []


@functools.lru_cache
def _folded(name):
    for _ in range(2):  # Lower case may bring more to normalize.
        name = unicodedata.normalize("NFKC", name).casefold()
    return " ".join(name.strip().strip("\ufeff\u200b\u2060").split())


def with_known_names(record: dict[str, Any]) -> dict[str, Any]:
    """Returns a record whose fields also have the names that `find_name` takes for theirs."""
    return {_folded(name): value for name, value in record.items()} | record


def is_number(column: str | int) -> bool:
    """Whether a column is given by its number, as an int or a str."""
    return re.fullmatch(r"-?\d+", str(column)) is not None


def format_of(path: Path, default: str) -> str:
    """Returns the format of a file by the ending of its name."""
    name = re.sub(r"\.(gz|bz2|xz)$", "", os.fspath(path).lower())
    return KINDS.get(os.path.splitext(name)[1], default)


def kind_of(path: Path) -> str:
    """Returns the kind of a table by the ending of its name, else by how its text begins."""
    kind = format_of(path, "text")
    if kind == "text" and os.path.isfile(path):  # Not a pipe, which can be read only once.
        lines = read_lines(path, allow_nul=True, encoding="latin-1")
        head = "".join(itertools.islice(filter(str.strip, lines), 3))
        # A text, and what stands after it in a list or an object.
        kind = "json" if re.match(r'\s*(\[\s*)?[\[{]\s*"([^"\\]|\\.)*"\s*[,:]', head) else kind
    return kind.replace("text", "tsv")


def as_text(value: Any, place: str) -> str:
    """Returns a field as str. In JSON a field may have any type.

    Raises:
        ValueError: it is neither a str nor a number, or it is NaN.
    """
    fits = isinstance(value, (str, int, float)) and not isinstance(value, bool) and value == value
    check_at(place, fits, "texts and labels must be str or numbers", value)
    return str(value)


def as_list(value: Any) -> Any:
    """Returns the list that a text is, as JSON, Python or NumPy write it; else the value itself."""
    if not isinstance(value, str) or not _LIST.fullmatch(value.strip()):
        return value
    with contextlib.suppress(ValueError, SyntaxError, RecursionError, MemoryError):
        try:  # JSON first: in it, unlike in Python, two escapes may stand for one character.
            found = json.loads(value)
        except ValueError:
            # Python would join the neighbours in `['a' 'b']`, as NumPy writes arrays, and read 1_0.
            if not _QUOTED.search(value) or re.search(r"""['"]\s+['"]""", value):
                raise
            found = ast.literal_eval(value.strip())
        return [*found] if isinstance(found, (list, tuple, set)) else [found]
    if "..." in _QUOTED.sub("", value):  # NumPy leaves out the middle of a long array.
        return value
    quoted = [single or double for single, double in _QUOTED.findall(value)]
    return quoted or value.strip()[1:-1].split("," if "," in value else None)


def accepted_records(path: Path, records: Iterable[Any] | None = None) -> Iterator[Any]:
    """Yields a file's records that annotators accepted; a warning counts the others."""
    left_out, count = [], 0
    for count, (place, record) in enumerate(records or read_records(path), 1):  # noqa: B007
        if record.get("answer") in ("reject", "ignore"):  # Prodigy's field.
            left_out.append(place)
        else:
            yield place, record
    warn_of_rows(path, left_out, count, "left out because annotators rejected or ignored them")


def warn_of_rows(path: Path, places: Sequence[str], count: int, what: str) -> None:
    """Warns of some of `count` rows, if there are any: how many, and where the first ten are."""
    if places:
        numbers = ", ".join(place.split()[-1] for place in places[:10])
        numbers = f"line{'s' * (len(places) > 1)} {numbers}{', ...' * (len(places) > 10)}"
        warnings.warn(f"{path}: rows {what}: {len(places)} of {count} ({numbers}).", stacklevel=4)


# Rows of text, of Excel, and of Parquet


def find_delimiter(
    path: Path, lines: Iterator[str], delimiter: str | None, kind: str, names: Sequence[str]
) -> tuple[tuple[int, str], str]:
    """Returns the number of lines before the first row and its line, and what separates columns.

    Args:
        path: the file, for messages.
        lines: its lines, which are consumed up to the first row.
        delimiter: see `read_records`.
        kind: `"csv"` or `"tsv"`.
        names: columns that the first row names.
    """
    number, line = next((item for item in enumerate(lines) if item[1].strip("\r\n")), (0, ""))
    if found := _SEPARATOR_LINE.fullmatch(line):
        number, line, delimiter = number + 1, next(lines, ""), delimiter or found[1]
    delimiter = _guess_delimiter(line, kind, names) if delimiter is None else delimiter
    if not isinstance(delimiter, str) or len(delimiter) != 1:
        raise ValueError(f"`delimiter` (--separator) must be a character. Received: {delimiter!r}.")
    return (number, line), delimiter


def _rows_of_text(path, first, lines, delimiter, quoting):
    """Yields the place and the fields of each row that is not blank, see `read_records`."""
    number, line = first
    lines = itertools.chain([line], lines)
    if quoting is None and delimiter == "\t":
        head, size = [], 0
        while size <= _CHARACTERS_LOOKED_AT and (line := next(lines, "")):
            head.append(line)
            size += len(line)
        quoting, lines = _are_quoted("".join(head)), itertools.chain(head, lines)
    style = csv.QUOTE_NONE if quoting is False else csv.QUOTE_MINIMAL
    csv.field_size_limit(_LONGEST_FIELD)
    reader = csv.reader(lines, delimiter=delimiter, quoting=style, strict=True)
    place = f"line {number + 1}"
    try:
        for fields in reader:
            if fields:
                yield place, fields
            place = f"line {number + reader.line_num + 1}"
    except csv.Error as error:
        raise ValueError(
            f"{path}, {place}: the row that begins here is not CSV ({error}). Look for a quotation "
            "mark that is never closed, or for a carriage return (\\r) outside of quotation marks; "
            "or read it with `quoting=False` (--noquoting)."
        ) from error


def _of_one_length(path, rows, wrong):
    """Yields rows with as many fields as the first, see `read_records`."""
    size, places, count = 0, [], 0
    for count, (place, fields) in enumerate(rows, 1):  # noqa: B007
        size = size or len(fields)
        if len(fields) != size:
            if wrong == "refuse" or (wrong == "cut" and len(fields) < size):
                rule = f"every row must have as many fields as the first, {size}, not {len(fields)}"
                check_at(f"{path}, {place}", False, rule, fields, _SEPARATED)
            places.append(place)
            if wrong == "leave out":
                continue
        yield place, fields[:size]
    done = "cut to the length of the first" if wrong == "cut" else "left out"
    warn_of_rows(path, places, count, f"{done} because they have a wrong number of fields")


def _guess_delimiter(line, kind, names):
    """Returns what separates the columns in the first row, see `read_records`."""
    usual = ",;|\t" if kind == "csv" else "\t,;|"
    found = {each: line.replace('"', "").rstrip("\r\n").split(each) for each in usual}
    fitting = [x for x in usual if names and all(find_name(found[x], name) for name in names)]
    if fitting:
        return max(fitting, key=lambda each: len(found[each]))
    return next((x for x in "\t,;|" if x in line), ",") if kind == "csv" else "\t"


def _are_quoted(text):
    """Returns whether quotation marks enclose fields in a TSV, or in its first lines.

    They do if all rows then have the same length, and a program that encloses only what needs it
    (pandas), commas too (Excel), or every text may have written them.
    """
    if text.count('"') % 2:  # A field may go on after the last line.
        text = text[: text.rfind("\n", 0, text.rindex('"')) + 1]
    quoted = re.compile(r'(?<![^\t\n])"([^"]*+(?:""[^"]*+)*+)"(?![^\t\r\n])')
    fields, bare = quoted.findall(text), quoted.sub("", text)
    if '"' in bare or len({row.count("\t") for row in re.split("[\r\n]+", bare) if row}) > 1:
        return False
    is_needed = any(re.search('""|[\t\r\n]', field) for field in fields)
    for_commas = "," not in bare and any("," in field for field in fields)
    return is_needed or ("\t" in bare and (for_commas or text.startswith('"')))


def _rows_of_excel(path, stream):
    """Yields the place and the cells of each row of the first sheet that is not blank."""
    pandas = require("pandas", f"read {path}", "data")
    with reading(path):
        source = path if stream is None else io.BytesIO(stream.read())
        # Without `na_filter` an empty cell is an empty text, as in CSV, and NA stays a text.
        sheet = pandas.read_excel(source, header=None, dtype=str, na_filter=False)
    for number, row in enumerate(sheet.itertuples(index=False, name=None), 1):
        if any(cell != "" for cell in row):
            yield f"row {number}", row


def _records_of_parquet(path, stream):
    parquet = require("pyarrow.parquet", f"read {path}", "data")
    with reading(path):
        file = parquet.ParquetFile(path if stream is None else io.BytesIO(stream.read()))
        batches = file.iter_batches(1024)  # By default 65,536 rows.
        rows = itertools.chain.from_iterable(batch.to_pylist() for batch in batches)
        yield from ((f"row {number}", row) for number, row in enumerate(rows, 1))


# Rows of JSON


def _records_of_json(path, kind, lines):
    """Yields the place and the value of each object, in lines of their own or in a list."""
    lines = enumerate(lines, 1)
    head = [*itertools.islice((item for item in lines if item[1].strip()), 2)]
    if not head:
        return
    start, first, second = head[0][0], head[0][1].strip(), head[-1][1].strip()
    lines = itertools.chain(head, lines)
    # No line of a list ends where the next object begins: a comma is between them.
    if kind == "jsonl" or (len(head) == 2 and first[-1] in "]}" and second[0] in "[{"):
        rule = "each line must be one JSON object"
        for number, line in lines:
            if line.strip():
                place, record = f"line {number}", as_record(parse_json(line, path, number))
                check_at(f"{path}, {place}", isinstance(record, dict), rule, record)
                # MRQA's first line is a heading.
                is_heading = number == start and record.keys() == {"header"}
                if not (is_heading and isinstance(record["header"], dict)):
                    yield place, record
        return
    rows = parse_json("".join(line for _, line in lines), path, start)
    if isinstance(rows, dict):
        # pandas writes a table as an object of columns, each an object too.
        is_row = len(head) == 1 and not all(isinstance(value, dict) for value in rows.values())
        rows = rows.get("data", [rows] if is_row else rows)
    rows = [*map(as_record, rows)] if isinstance(rows, list) else rows
    fits = isinstance(rows, list) and all(isinstance(row, dict) for row in rows)
    rule = "there must be a list of JSON objects, alone or under the key 'data', or one per line"
    advice = 'pandas writes such a list with `to_json(path, orient="records")`.'
    check_at(path, fits, rule, rows, advice)
    yield from ((f"row {number}", row) for number, row in enumerate(rows, 1))
