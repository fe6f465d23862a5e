"""Tables in files: CSV, TSV, Excel, JSON, JSON lines and Parquet, read row by row.

Python's `csv` splits text. pandas would fill a row that is too short with empty texts, and read
`"a" b` as `a b`, both without a word; and its messages do not know the line.
"""

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
from bert_keras.datasets.files import (
    COMPRESSED_NAMES,
    as_record,
    check_at,
    parse_json,
    read_lines,
    shorten,
)
from bert_keras.engine.atomic_files import reading
from bert_keras.types import Path

# The largest limit that fits a C long on every platform. By default csv refuses over 128 KiB.
_LONGEST_FIELD = 2**31 - 1
# How many lines of a TSV, and about how many characters, tell whether quotation marks enclose its
# fields. Three times as many are in memory.
_LINES_LOOKED_AT, _CHARACTERS_LOOKED_AT = 100_000, 10_000_000
# The ending of a name -> the kind of file. As a table, a text file and any other one is a "tsv".
KINDS = {".csv": "csv", ".tsv": "tsv", ".txt": "text", ".json": "json"}
KINDS |= {".jsonl": "jsonl", ".ndjson": "jsonl", ".parquet": "parquet"}
KINDS |= {".xlsx": "excel", ".xlsm": "excel"}
_SEPARATED = (
    "A field that holds the separator must be in quotation marks; say what separates columns by "
    "`separator`, and whether they are quoted by `quoting`."
)
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
            does if in the first 100,000 lines, or in the first 10 million characters, every field
            with a quotation mark is quoted, all rows then have the same length, and the header or a
            field that needs them has the marks.
        names: columns that must be there.
        kind: `"csv"`, `"tsv"`, `"json"`, `"jsonl"`, `"excel"` or `"parquet"`; by default by the
            name's ending.
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
    if len(places) == 1:
        return places[0]
    raise ValueError(
        f"The header of {path} has {'more than one' if places else 'no'} column {column!r}. Its "
        f"first row has {size} column{'s' * (size > 1)}: {shorten([*header])}. Name those to read "
        "(--columns and label_column); where the first row is data, columns are numbers from 0. "
        "`separator` is what separates them."
    )


def find_name(names: Iterable[Any], *wanted: str) -> list[int]:
    """Returns the positions of a name: exact, without blanks, in any case, or in any width.

    Of several names wanted, it is the first that occurs.
    """
    names = [*map(str, names)]
    for each in wanted:
        for form in (str, _without_blanks, lambda name: _without_blanks(name).casefold(), _folded):
            found = [place for place, name in enumerate(names) if form(name) == form(each)]
            if found:
                return found
    return []


def _without_blanks(name):
    return " ".join(name.strip().strip("\ufeff\u200b\u2060").split())


def _folded(name):
    for _ in range(2):  # Lower case may bring more to normalize.
        name = unicodedata.normalize("NFKC", name).casefold()
    return _without_blanks(name)


def with_fields(record: dict[str, Any], layouts: tuple[tuple[str, ...], ...]) -> dict[str, Any]:
    """Returns a record that has the fields of a layout as it is, others renamed by `find_name`."""
    wanted = _wanted_names(tuple(record), layouts)
    return {wanted.get(key, key): value for key, value in record.items()} if wanted else record


@functools.lru_cache
def _wanted_names(header, layouts):
    """Returns the names in the layouts by those in a header that stand for them."""
    if any({*layout} <= {*header} for layout in layouts):
        return {}
    names = {name for layout in layouts for name in layout}
    found = {name: find_name(header, name) for name in names if name not in header}
    wanted = {header[places[0]]: name for name, places in found.items() if len(places) == 1}
    return {key: name for key, name in wanted.items() if key not in names}


def without_rejected(
    path: Path, records: Iterable[tuple[str, dict[str, Any]]]
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yields the records that annotators accepted; a warning counts the others.

    Prodigy's field `answer` tells which they rejected or ignored, Label Studio's `was_cancelled`
    which they left.
    """
    left_out = []
    for place, record in records:
        record = _of_label_studio(f"{path}, {place}", record)
        if record is None or record.get("answer") in ("reject", "ignore"):
            left_out.append(place)
        else:
            yield place, record
    if left_out:
        warnings.warn(
            f"{path}: {len(left_out)} rows are left out, since annotators rejected, ignored, "
            f"cancelled or have not reached them ({left_out[0]} is the first).",
            stacklevel=2,
        )


def _of_label_studio(where, record):
    """Returns a task of Label Studio as a text with its spans and choices, others unchanged.

    `None` stands for a task whose annotations were all cancelled.
    """
    data, annotations = record.get("data"), record.get("annotations")
    if not isinstance(data, dict) or not isinstance(annotations, list):
        return record
    kept = [x for x in annotations if not x.get("was_cancelled")]
    if not kept:
        return None
    advice = "Cancel the others in Label Studio, or export only the one to read."
    check_at(where, len(kept) == 1, "a text must have one annotation", len(kept), advice)
    texts = {name: value for name, value in data.items() if isinstance(value, str)}
    found, chosen = {"text": next(iter(texts.values()), None), **texts, "spans": []}, {}
    for result in kept[0].get("result", ()):
        value = result.get("value", {})
        if "start" in value:
            found["spans"].append(value)
        elif "choices" in value:
            name = result.get("from_name", "choices")
            rule = "choices must not have the name of a field of the text"
            check_at(where, name not in found, rule, name, "Rename the control or the field.")
            chosen[name] = value["choices"]
    return found | chosen


def is_number(column: str | int) -> bool:
    """Whether a column is given by its number, as an int or a str."""
    return re.fullmatch(r"-?\d+", str(column)) is not None


def format_of(path: Path, default: str) -> str:
    """Returns the format of a file by the ending of its name."""
    name = COMPRESSED_NAMES.sub("", os.fspath(path).lower())
    return KINDS.get(os.path.splitext(name)[1], default)


def kind_of(path: Path) -> str:
    """Returns the kind of a table by the ending of its name, `"tsv"` if that says nothing."""
    return format_of(path, "tsv").replace("text", "tsv")


def has_names(path: Path) -> bool:
    """Whether a file's format (JSON, Parquet) names the columns, so that no first row has to."""
    return kind_of(path) not in ("csv", "tsv", "excel")


def as_text(value: Any, place: str) -> str:
    """Returns a field as str. In JSON a field may have any type.

    Raises:
        ValueError: it is neither a str nor a number, or it is NaN.
    """
    fits = isinstance(value, (str, int, float)) and not isinstance(value, bool) and value == value
    check_at(place, fits, "texts and labels must be str or numbers", value)
    return str(value)


def warn_of_rows(path: Path, places: Sequence[str], count: int, what: str) -> None:
    """Warns of some of `count` rows: how many, and where the first ten are."""
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
        raise ValueError(f"`delimiter` must be one character. Received: {delimiter!r}")
    return (number, line), delimiter


def _rows_of_text(path, first, lines, delimiter, quoting):
    """Yields the place and the fields of each row that is not blank, see `read_records`."""
    number, line = first
    lines = itertools.chain([line], lines)
    if quoting is None and delimiter == "\t":
        head, size = [], 0
        for line in itertools.islice(lines, _LINES_LOOKED_AT):
            head.append(line)
            size += len(line)
            if size > _CHARACTERS_LOOKED_AT:
                break
        is_whole = size <= _CHARACTERS_LOOKED_AT and len(head) < _LINES_LOOKED_AT
        quoting, lines = _are_quoted("".join(head), is_whole), itertools.chain(head, lines)
    style = csv.QUOTE_NONE if quoting is False else csv.QUOTE_MINIMAL
    csv.field_size_limit(_LONGEST_FIELD)
    reader = csv.reader(lines, delimiter=delimiter, quoting=style, strict=True)
    fields = []
    while fields is not None:
        place = f"line {number + reader.line_num + 1}"
        try:
            fields = next(reader, None)
        except csv.Error as error:
            advice = "Look for a quotation mark that is never closed"
            if "new-line" in str(error):
                advice = "A carriage return (\\r) inside a row must be in quotation marks"
            raise ValueError(
                f"{path}, {place}: the row that begins here is not CSV ({error}). {advice}, or "
                "read it with `quoting=False`."
            ) from error
        if fields:
            yield place, fields


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
    if places:
        done = "cut to the length of the first" if wrong == "cut" else "left out"
        warn_of_rows(path, places, count, f"{done} because they have a wrong number of fields")


def _guess_delimiter(line, kind, names):
    """Returns what separates the columns in the first row, see `read_records`."""
    usual = ",;|\t" if kind == "csv" else "\t,;|"
    found = {each: line.replace('"', "").rstrip("\r\n").split(each) for each in usual}
    fitting = [x for x in usual if names and all(find_name(found[x], name) for name in names)]
    if fitting:
        return max(fitting, key=lambda each: len(found[each]))
    if "\t" in line or kind != "csv":
        return "\t"
    return "," if "," in line else max(",;|", key=line.count)


def _are_quoted(text, is_whole):
    """Returns whether quotation marks enclose fields in a TSV, or in its first lines.

    They do if all rows then have the same length, and a program that encloses only what needs it
    (pandas), commas too (Excel), or every text may have written them.
    """
    if not is_whole and text.count('"') % 2:  # A field goes on after the last line.
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
        sheet = pandas.read_excel(source, header=None, dtype=object, na_filter=False)
    for number, row in enumerate(sheet.itertuples(index=False, name=None), 1):
        if any(cell != "" for cell in row):
            # A date becomes text; numbers and bools stay, so that 1.0 and 1 are the same label.
            plain = (str, int, float)
            yield f"row {number}", [x if isinstance(x, plain) else str(x) for x in row]


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
    start, head = next((x for x in enumerate(lines, 1) if x[1].strip()), (1, ""))
    begin = [head]
    for line in lines:
        begin.append(line)
        if line.strip():
            break
    lines = itertools.chain(begin, lines)
    try:
        first = as_record(json.loads(head))
        # A record may have a list under `data` too.
        is_alone = not any(map(str.strip, begin[1:]))
        are_lines = isinstance(first, dict) and not (is_alone and isinstance(_rows_in(first), list))
    except (ValueError, RecursionError):  # The first line of a document over several lines.
        are_lines = not head or (kind == "jsonl" and head.strip() != "[")
    if are_lines:
        for number, line in enumerate(lines, start):
            if line.strip():
                place, record = f"line {number}", as_record(parse_json(line, path, number))
                rule = "each line must be one JSON object"
                check_at(f"{path}, {place}", isinstance(record, dict), rule, record)
                # MRQA's first line is a heading.
                is_heading = number == start and record.keys() == {"header"}
                if not (is_heading and isinstance(record["header"], dict)):
                    yield place, record
        return
    rows = _rows_in(parse_json("".join(lines), path, start))
    fits = isinstance(rows, list) and all(isinstance(row, dict) for row in rows)
    rule = "there must be a list of JSON objects, alone or under the key 'data', or one per line"
    advice = 'pandas writes such a list with `to_json(path, orient="records")`.'
    check_at(path, fits, rule, rows, advice)
    yield from ((f"row {number}", row) for number, row in enumerate(rows, 1))


def _rows_in(document):
    """Returns the rows of a JSON document, a list; else the document.

    An object has them under `data`; that of spaCy's annotation tool has pairs of a text and its
    entities under `annotations`, and null for a text that was skipped.
    """
    if isinstance(document, dict):
        rows = document.get("annotations") if "classes" in document else None
        rows = [row for row in rows if row is not None] if isinstance(rows, list) else []
        is_of_spacy = any(as_record(row) is not row for row in rows)
        document = rows if is_of_spacy else document.get("data", document)
    return [*map(as_record, document)] if isinstance(document, list) else document
