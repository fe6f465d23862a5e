"""The rows that a command reads, and the answers that it writes, one by one."""

import contextlib
import csv
import itertools
import json
import os
import sys

from bert_keras.files import reading, writing

# How a file's rows are written, by the end of its name.
FORMATS = {".jsonl": "jsonl", ".json": "jsonl", ".csv": "csv", ".tsv": "tsv", ".txt": "text"}


def format_of(path, default):
    """Returns how a file's rows are written: `"text"`, `"jsonl"`, `"csv"` or `"tsv"`."""
    return FORMATS.get(os.path.splitext(path or "")[1].lower(), default)


def rows_of_arguments(texts, columns):
    """Returns arguments as rows: of one column each is a row, of more all of them are one."""
    if len(columns) == 1:
        return [(text,) for text in texts]
    return [_checked(tuple(texts), columns, "The arguments")]


def read_rows(path, kind, columns):
    """Yields the rows of a file, see `_rows`, and tells what it cannot read by the file's name."""
    try:
        yield from _rows(path, kind, columns)
    except (UnicodeDecodeError, csv.Error) as error:
        shown = "Standard input" if path in (None, "-") else path
        raise ValueError(
            f"{shown} must be {kind} in UTF-8. Received what is not: {error}."
        ) from error


def _rows(path, kind, columns):
    """Yields the rows of a file, or of standard input, as tuples of fields.

    Args:
        path: str, or `None` or `"-"` for standard input.
        kind: what `format_of` returns. Of `"text"` each line is a row, its fields apart by tabs.
        columns: names of the fields, which of the last may hold a list.

    Raises:
        ValueError: a row lacks a field; it says which.
    """
    is_file = path not in (None, "-")
    source = open(path, encoding="utf-8", newline="") if is_file else sys.stdin  # noqa: SIM115
    shown = path if is_file else "standard input"
    with source if is_file else contextlib.nullcontext(source) as file, reading(shown):
        if kind in ("csv", "tsv"):
            lines = csv.DictReader(file, delimiter="," if kind == "csv" else "\t")
        else:
            lines = (line.rstrip("\r\n") for line in file)
        for number, line in enumerate(lines, 1):
            where = f"Row {number} of {shown}"
            if kind == "text":
                fields = tuple(line.split("\t")) if len(columns) > 1 else (line,)
                yield _checked(fields, columns, where)
                continue
            try:
                row = json.loads(line) if kind == "jsonl" else line
                fields = [row[name] for name in columns]
            except (ValueError, KeyError, TypeError) as error:
                known = f"keys {list(row)}" if isinstance(line, dict) else repr(line[:80])
                raise ValueError(
                    f"{where} must have the fields {list(columns)}. Received: {known}. Name yours "
                    "by --columns."
                ) from error
            *fields, last = fields
            fields = (*fields, *(last if isinstance(last, list) else [last]))
            yield _checked(fields, columns, where)


def _checked(fields, columns, where):
    if len(fields) < len(columns) or any(not isinstance(field, str) for field in fields):
        raise ValueError(
            f"{where} must give texts for {' and '.join(columns)}, in plain files with tabs "
            f"between. Received: {list(fields)!r:.80}."
        )
    return fields


def chunks(rows, size):
    """Yields lists of up to `size` rows."""
    rows = iter(rows)
    while chunk := list(itertools.islice(rows, size)):
        yield chunk


@contextlib.contextmanager
def answers_to(path, kind):
    """Yields a function that writes an answer to a file, whole in the end, or to standard output.

    Args:
        path: str, or `None` for standard output.
        kind: `"text"`, `"jsonl"`, or `"csv"`, whose header is the keys of the first answer.
    """
    with contextlib.nullcontext(sys.stdout) if path is None else writing(path) as file:
        table = None

        def write(answer, row):
            nonlocal table
            if kind != "csv":
                line = (
                    in_words(answer) + "  " + "  ".join(row) if kind == "text" else as_json(answer)
                )
                file.write(line + "\n")
                return
            answer = answer if isinstance(answer, dict) else {"answer": answer}
            if table is None:
                table = csv.DictWriter(file, list(answer), lineterminator="\n")
                table.writeheader()
            table.writerow({name: _in_a_cell(value) for name, value in answer.items()})

        yield write


def as_json(value):
    """Returns a value in a line of JSON."""
    return json.dumps(value, ensure_ascii=False)


def in_words(answer):
    """Returns what a person wants to know first of an answer; what it has no words for as JSON."""
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
