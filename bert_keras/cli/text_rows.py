"""The rows that a command reads, and the answers that it writes, one at a time."""

import contextlib
import csv
import io
import itertools
import json
import os
import sys

from bert_keras.datasets.table import split_rows
from bert_keras.engine.atomic_files import reading, replacing

# The format of a file by the ending of its name.
FORMATS = {".jsonl": "jsonl", ".json": "jsonl", ".csv": "csv", ".tsv": "tsv", ".txt": "text"}


def read_and_write_utf8():
    """Sets the encoding of standard input and output to UTF-8, except in a terminal.

    A lone surrogate, which UTF-8 cannot encode, is written as in JSON, and refused when read.
    """
    options = (
        {"encoding": "utf-8-sig", "errors": "strict", "newline": ""},
        {"encoding": "utf-8", "errors": "backslashreplace"},
    )
    for stream, of_stream in zip((sys.stdin, sys.stdout), options, strict=True):
        if isinstance(stream, io.TextIOWrapper):
            kept = {"errors": of_stream["errors"]}
            stream.reconfigure(**(kept if stream.isatty() else of_stream))


def format_of(path, default):
    """Returns the format of a file: `"text"`, `"jsonl"`, `"csv"` or `"tsv"`."""
    return FORMATS.get(os.path.splitext(path or "")[1].lower(), default)


def rows_of_arguments(texts, columns, has_list):
    """Returns the rows in arguments: one for each with a single column, else one for all."""
    if len(columns) == 1:
        return [(text,) for text in texts]
    return [_checked(tuple(texts), columns, has_list, "The arguments")]


def read_rows(path, kind, columns, has_list=False):
    """Yields the rows of a file, or of standard input, as tuples of fields.

    Args:
        path: str, or `None` or `"-"` for standard input.
        kind: a result of `format_of`. In `"text"` each line is a row, with tabs between its fields.
        columns: names of the fields.
        has_list: bool, whether the last field holds a list, or everything left of a line.

    Raises:
        ValueError: a row lacks a field; the message names the row and the field.
    """
    is_file = path not in (None, "-")
    source = open(path, encoding="utf-8-sig", newline="") if is_file else sys.stdin  # noqa: SIM115
    name = path if is_file else "standard input"
    with source if is_file else contextlib.nullcontext(source) as file, reading(name):
        for number, row in enumerate(_rows(file, name, kind, columns), 1):
            place = f"Row {number} of {name}"
            if kind == "text":
                fields = tuple(row.split("\t")) if len(columns) > 1 else (row,)
            elif row:  # Blank lines of JSON lines are skipped.
                fields = _fields(row, columns, place)
                if has_list and isinstance(fields[-1], list):
                    fields = (*fields[:-1], *fields[-1])
            else:
                continue
            yield _checked(fields, columns, has_list, place)


def _rows(file, name, kind, columns):
    """Yields the lines of a file, or a dict for each row of a table."""
    if kind in ("text", "jsonl"):
        yield from (line.rstrip("\r\n") for line in file)
        return
    header = None
    for _, fields in split_rows(file, name, "," if kind == "csv" else "\t"):
        if header is None:
            header = fields
            _fields(dict.fromkeys(header), columns, f"The header of {name}")
        else:
            yield dict(zip(header, fields, strict=False))


def _fields(row, columns, place):
    try:
        record = row if isinstance(row, dict) else json.loads(row)
        return tuple(record[name] for name in columns)
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        received = f"keys {list(row)}" if isinstance(row, dict) else repr(row[:80])
        raise ValueError(
            f"{place} must have the fields {list(columns)}. Received: {received}. Name the fields "
            "to read by --columns."
        ) from error


def _checked(fields, columns, has_list, place):
    is_right = len(fields) >= len(columns) if has_list else len(fields) == len(columns)
    if not is_right or any(not isinstance(field, str) for field in fields):
        raise ValueError(
            f"{place} must give {'texts' if has_list else 'one text each'} for "
            f"{' and '.join(columns)}, in plain files separated by tabs. Received: "
            f"{list(fields)!r:.80}."
        )
    return fields


def chunks(rows, size):
    """Yields lists of up to `size` rows."""
    rows = iter(rows)
    while chunk := list(itertools.islice(rows, size)):
        yield chunk


@contextlib.contextmanager
def answers_to(path, kind):
    """Yields a function that writes an answer to standard output, or to a file.

    The file is written whole or not at all.

    Args:
        path: str, or `None` for standard output.
        kind: `"text"`, `"jsonl"`, or `"csv"`. The header of a CSV is the keys of the first answer;
            lists and objects are cells of JSON.
    """
    with contextlib.nullcontext(sys.stdout) if path is None else _writing(path) as file:
        table = None

        def write(answer, row):
            nonlocal table
            if kind != "csv":
                words = "  ".join((in_words(answer), *(" ".join(text.split()) for text in row)))
                file.write(f"{words if kind == 'text' else as_json(answer)}\n")
                return
            answer = answer if isinstance(answer, dict) else {"answer": answer}
            if table is None:
                table = csv.DictWriter(file, list(answer), lineterminator="\n")
                table.writeheader()
            table.writerow({name: _in_a_cell(value) for name, value in answer.items()})

        yield write


@contextlib.contextmanager
def _writing(path):
    # A lone surrogate is written as in JSON.
    options = {"encoding": "utf-8", "errors": "backslashreplace", "newline": ""}
    with replacing(path) as temporary, open(temporary, "w", **options) as file:
        yield file


def as_json(value):
    """Returns a value as a line of JSON."""
    return json.dumps(value, ensure_ascii=False)


def in_words(answer):
    """Returns the main part of an answer in words, or all of it as JSON if there are none."""
    if isinstance(answer, list) and answer and isinstance(answer[0], list):
        return "; ".join(
            ", ".join(f"{word} {share:.3f}" for word, share in mask) for mask in answer
        )
    if not isinstance(answer, dict):
        return as_json(answer)
    if answer.get("entities"):
        return ", ".join(f"{found['type']} {found['text']!r}" for found in answer["entities"])
    for key, none in (("label", ""), ("answer", "no answer"), ("choice", ""), ("is_next", "")):
        if key in answer:
            share = answer.get("probability")
            if share is None:
                shares = answer["probabilities"]
                share = shares[answer["index" if key == "choice" else key]]
            return f"{answer[key] if key == 'is_next' else answer[key] or none} {share:.3f}"
    if "labels" in answer:
        return ", ".join(map(str, answer["labels"])) or "no label"
    scores = answer.get("scores", [answer["score"]] if "score" in answer else None)
    return as_json(answer) if scores is None else ", ".join(f"{score:.3f}" for score in scores)


def _in_a_cell(value):
    return value if value is None or isinstance(value, (str, int, float)) else as_json(value)
