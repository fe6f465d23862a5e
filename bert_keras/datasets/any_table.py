"""Tables as people have them: CSV with any separator, TSV, JSON, JSON lines, Parquet."""

import json
import os

from bert_keras.datasets.files import read_json, read_json_lines, read_lines
from bert_keras.datasets.table import read_rows


def read_any_rows(path, delimiter=None):
    """Yields `(place, fields)` for each row of a table; JSON and Parquet have their names first.

    Args:
        path: the file. Its name's ending tells the format: `.json` (a list of objects, or one under
            the key `data`, or an object a line), `.jsonl`, `.ndjson`, `.parquet`, else a table of
            text, see `read_rows`. All but Parquet may be gzip.
        delimiter: str of one character, for tables of text.

    Yields:
        Pairs of a str for messages, such as `"line 3"`, and a list: of str in tables of text, of
        JSON values elsewhere.

    Raises:
        ValueError: the file is empty, in another format, or an object lacks a key that the first
            one has. The message names the file and the place.
    """
    if not has_names(path):
        for line, fields in read_rows(path, delimiter):
            yield f"line {line}", fields
        return
    if delimiter is not None:
        raise ValueError(f"{path} has no delimiter. Received: {delimiter!r}. Leave it out.")
    keys = None
    for place, found in read_objects(path):
        if keys is None:
            keys = list(found)
            yield place, keys
        missing = [key for key in keys if key not in found]
        if missing:
            raise ValueError(
                f"{path}, {place}: every object must have the first one's keys, {keys}. "
                f"Missing: {missing}"
            )
        yield place, [found[key] for key in keys]
    if keys is None:
        raise ValueError(f"{path} is empty: it needs at least one JSON object.")


def read_objects(path):
    """Yields `(place, dict)` for each row of a table whose columns have names, by these names.

    Args:
        path: the file, see `read_any_rows`.

    Raises:
        ValueError: see `read_any_rows`; of JSON any object may have its own keys.
    """
    if has_names(path):
        is_parquet = os.fspath(path).lower().endswith(".parquet")
        yield from _parquet_objects(path) if is_parquet else _json_objects(path)
        return
    rows = read_any_rows(path)
    _, names = next(rows)
    for place, fields in rows:
        if len(fields) != len(names):
            raise ValueError(
                f"{path}, {place}: a row must have {len(names)} fields. "
                f"Received {len(fields)}: {repr(fields)[:200]}"
            )
        yield place, dict(zip(names, fields, strict=True))


def has_names(path):
    """Whether a file's format has names for its columns, so that no row of text has to."""
    name = os.fspath(path).lower().removesuffix(".gz")
    return name.endswith((".json", ".jsonl", ".ndjson", ".parquet"))


def as_text(value, place):
    """Returns a field as str; in JSON it may be anything, and what nobody reads does not matter.

    Raises:
        ValueError: it is neither str nor number.
    """
    if not isinstance(value, (str, int, float)) or isinstance(value, bool):
        raise ValueError(
            f"{place}: texts and labels must be str or numbers. Received: {repr(value)[:80]}"
        )
    return str(value)


def _json_objects(path):
    if _is_a_line_each(path):
        for line, found in read_json_lines(path):
            yield f"line {line}", found
        return
    found = read_json(path)
    rows = found.get("data") if isinstance(found, dict) else found
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        keys = f"an object with {list(found)[:20]}" if isinstance(found, dict) else repr(found)[:80]
        raise ValueError(
            f"{path} must hold a list of JSON objects, alone or under the key 'data', or an object "
            f"a line. Received: {keys}."
        )
    for number, row in enumerate(rows, 1):
        yield f"row {number}", row


def _is_a_line_each(path):
    first = next((line for line in read_lines(path) if line.strip()), "{}")
    try:
        found = json.loads(first)
    except (ValueError, RecursionError):  # Of a document over several lines it is no value yet.
        return os.fspath(path).lower().removesuffix(".gz").endswith("l")
    return isinstance(found, dict) and not isinstance(found.get("data"), list)


def _parquet_objects(path):
    try:
        from pyarrow import parquet
    except ImportError as error:
        raise ImportError(f"{path} needs pyarrow: pip install pyarrow") from error
    for number, row in enumerate(parquet.read_table(path).to_pylist(), 1):
        yield f"row {number}", row
