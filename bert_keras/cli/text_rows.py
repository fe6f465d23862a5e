"""The rows that a command reads, and the answers that it writes, one by one."""

import contextlib
import csv
import io
import itertools
import json
import os
import sys

from bert_keras.engine.atomic_files import reading, replacing

# How a file's rows are written, by the end of its name.
FORMATS = {".jsonl": "jsonl", ".json": "jsonl", ".csv": "csv", ".tsv": "tsv", ".txt": "text"}


# In a TSV a quotation mark is a letter like any other.
_TABLES = {"csv": {}, "tsv": {"delimiter": "\t", "quoting": csv.QUOTE_NONE}}
# Larger than any field; `csv` refuses those above 128 KiB else.
_LONGEST_FIELD = 2**31 - 1


def read_and_write_utf8():
    """Has standard input and output, but a terminal's, in UTF-8, whatever the system's encoding.

    What UTF-8 cannot hold, a lone surrogate, is written as JSON has it, and read as a mistake.
    """
    options = (
        {"encoding": "utf-8-sig", "errors": "strict", "newline": ""},
        {"encoding": "utf-8", "errors": "backslashreplace"},
    )
    for stream, given in zip((sys.stdin, sys.stdout), options, strict=True):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(**({"errors": given["errors"]} if stream.isatty() else given))


def format_of(path, default):
    """Returns how a file's rows are written: `"text"`, `"jsonl"`, `"csv"` or `"tsv"`."""
    return FORMATS.get(os.path.splitext(path or "")[1].lower(), default)


def rows_of_arguments(texts, columns, has_list):
    """Returns arguments as rows: of one column each is a row, of more all of them are one."""
    if len(columns) == 1:
        return [(text,) for text in texts]
    return [_checked(tuple(texts), columns, has_list, "The arguments")]


def read_rows(path, kind, columns, has_list=False):
    """Yields the rows of a file, or of standard input, as tuples of fields.

    Args:
        path: str, or `None` or `"-"` for standard input.
        kind: what `format_of` returns. Of `"text"` each line is a row, its fields apart by tabs.
        columns: names of the fields.
        has_list: bool, whether the last of them holds a list, or all that is left of a line.

    Raises:
        ValueError: a row lacks a field; it says which.
    """
    is_file = path not in (None, "-")
    source = open(path, encoding="utf-8-sig", newline="") if is_file else sys.stdin  # noqa: SIM115
    shown = path if is_file else "standard input"
    with source if is_file else contextlib.nullcontext(source) as file, reading(shown):
        if kind in ("csv", "tsv"):
            csv.field_size_limit(_LONGEST_FIELD)
            lines = csv.DictReader(file, strict=True, **_TABLES[kind])
            header = dict.fromkeys(lines.fieldnames or columns)
            _fields_of(header, columns, f"The header of {shown}")
        else:
            lines = (line.rstrip("\r\n") for line in file)
        for number, line in enumerate(lines, 1):
            where = f"Row {number} of {shown}"
            if kind == "text":
                fields = tuple(line.split("\t")) if len(columns) > 1 else (line,)
            elif line:  # Blank lines of JSON lines are none.
                fields = _fields_of(line, columns, where)
                if has_list and isinstance(fields[-1], list):
                    fields = (*fields[:-1], *fields[-1])
            else:
                continue
            yield _checked(fields, columns, has_list, where)


def _fields_of(row, columns, where):
    try:
        found = row if isinstance(row, dict) else json.loads(row)
        return tuple(found[name] for name in columns)
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        known = f"keys {list(row)}" if isinstance(row, dict) else repr(row[:80])
        raise ValueError(
            f"{where} must have the fields {list(columns)}. Received: {known}. Name yours by "
            "--columns."
        ) from error


def _checked(fields, columns, has_list, where):
    is_right = len(fields) >= len(columns) if has_list else len(fields) == len(columns)
    if not is_right or any(not isinstance(field, str) for field in fields):
        raise ValueError(
            f"{where} must give {'texts' if has_list else 'one text each'} for "
            f"{' and '.join(columns)}, in plain files with tabs between. Received: "
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
    """Yields a function that writes an answer to a file, whole in the end, or to standard output.

    Args:
        path: str, or `None` for standard output.
        kind: `"text"`, `"jsonl"`, or `"csv"`, whose header is the keys of the first answer, and
            where what is more than one value is a cell of JSON.
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
    # A lone surrogate is written as JSON has it.
    options = {"encoding": "utf-8", "errors": "backslashreplace", "newline": ""}
    with replacing(path) as temporary, open(temporary, "w", **options) as file:
        yield file


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
