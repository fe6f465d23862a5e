"""The rows that a command reads, and the answers that it writes, one at a time."""

import codecs
import contextlib
import csv
import io
import itertools
import json
import sys

import numpy as np

from bert_keras import datasets
from bert_keras.checks import refuse_options
from bert_keras.datasets.files import UTF_16_MARKS, read_lines
from bert_keras.datasets.table import as_text, find_delimiter, find_name, read_records
from bert_keras.engine.atomic_files import writing

USE_CSV = "Leave it out, or choose --input_format csv."


def write_utf8():
    """Sets the encoding of standard output to UTF-8, except in a terminal.

    A lone surrogate, which UTF-8 cannot encode, is written as in JSON.
    """
    if isinstance(sys.stdout, io.TextIOWrapper):
        encoding = None if sys.stdout.isatty() else "utf-8"
        sys.stdout.reconfigure(encoding=encoding, errors="backslashreplace")


def rows_of_arguments(texts, columns, has_list):
    """Returns the rows in arguments: one for each if there is one column, else one for all."""
    if len(columns) == 1:
        return [((text,), {}) for text in texts]
    return [(_checked(texts, columns, has_list, "Arguments:"), {})]


def layout_of(path, kind, columns, separator=None, encoding=None):
    """Returns what begins a table that answers to another one, and what separates its columns.

    The separator is that of the other table, see `read_rows`. Excel reads UTF-8 only after a mark,
    so there is one if the other table has one, is a workbook, or is in another encoding.
    """
    if kind not in ("csv", "tsv"):
        return "\ufeff" if kind == "excel" else "", ","
    is_file = path not in (None, "-")
    head = None if is_file else io.BytesIO(sys.stdin.buffer.peek())
    with open(path, "rb") if is_file else io.BufferedReader(head) as stream:
        has_mark = stream.peek(4).startswith((codecs.BOM_UTF8, *UTF_16_MARKS))
        path = path if is_file else "standard input"
        lines = read_lines(path, stream, encoding=encoding)
        _, separator = find_delimiter(path, lines, separator, kind, columns)
        has_mark |= codecs.lookup(encoding or "utf-8").name not in ("utf-8", "ascii")
        return "\ufeff" if has_mark else "", separator


def read_rows(path, kind, columns, has_list=False, separator=None, quoting=None, encoding=None):
    """Yields the rows of a file, or of standard input.

    Args:
        path: str, or `None` or `"-"` for standard input.
        kind: a result of `format_of`. In `"text"` each line is a row, with tabs between its fields.
        columns: names of the fields.
        has_list: bool, whether the last field holds a list, or in a text file the rest of the line.
        separator: see the `delimiter` of `datasets.read_records`.
        quoting: see `datasets.read_records`.
        encoding: see `datasets.read_records`.

    Yields:
        The tuple of the fields, and a dict of all columns by name.

    Raises:
        ValueError: a row lacks a field; the message names the row and the field.
    """
    if kind not in ("csv", "tsv"):
        rule = f"--separator and --quoting are for tables, not for {kind!r}"
        refuse_options(rule, {"--separator": separator, "--quoting": quoting}, USE_CSV)
    stream = None
    if path in (None, "-"):
        path, stream = "standard input", sys.stdin.buffer
    if kind == "text":
        lines = read_lines(path, stream=stream, allow_nul=True, encoding=encoding)
        for number, line in enumerate(lines, start=1):
            line = line.rstrip("\r\n")
            fields = line.split("\t") if len(columns) > 1 else [line]
            yield _checked(fields, columns, has_list, f"{path}, line {number}:"), {}
        return
    for place, record in read_records(path, separator, quoting, columns, kind, stream, encoding):
        place = f"{path}, {place}:"
        keys = [find_name(list(record), name) for name in columns]
        missing = [name for name, found in zip(columns, keys, strict=True) if len(found) != 1]
        if missing:
            raise ValueError(
                f"{place} a row must have the fields {list(columns)}. Received: {list(record)}. "
                "Name the fields to read by --columns."
            )
        cells = list(record.values())
        fields = [cells[position] for (position,) in keys]
        if has_list and isinstance(fields[-1], list):
            fields = [*fields[:-1], *fields[-1]]
        yield _checked(fields, columns, has_list, place), record


def _checked(fields, columns, has_list, place):
    """Returns a row of texts; raises `ValueError` if one is missing or is no text."""
    is_right = len(fields) >= len(columns) if has_list else len(fields) == len(columns)
    if not is_right:
        raise ValueError(
            f"{place} a row must give {'texts' if has_list else 'one text each'} for "
            f"{' and '.join(columns)}, in plain files separated by tabs. Received: "
            f"{list(fields)!r:.80}."
        )
    return tuple(as_text(field, place.rstrip(":")) for field in fields)


def chunks(rows, size):
    """Yields lists of up to `size` rows."""
    rows = iter(rows)
    while chunk := list(itertools.islice(rows, size)):
        yield chunk


@contextlib.contextmanager
def answers_to(path, kind, mark="", separator=","):
    """Yields a function that writes an answer to standard output, or to a file.

    The file is written whole or not at all.

    Args:
        path: str, or `None` for standard output.
        kind: `"text"`, `"csv"`, or `"jsonl"` or `"json"` for JSON lines. The header of a CSV is the
            columns of the first row and the keys of its answer, with `answer_` before keys that are
            columns too; lists and objects are cells of JSON. A class has its probability beside it.
        mark: str, what a CSV begins with.
        separator: str, what separates the columns of a CSV.
    """
    with contextlib.nullcontext(sys.stdout) if path is None else writing(path) as file:
        if path is not None:
            file.reconfigure(errors="backslashreplace")  # A lone surrogate is written as in JSON.
        table, columns = None, ()

        def write(answer, row, record):
            nonlocal table, columns
            if kind != "csv":
                texts = (text.split() if isinstance(text, str) else text for text in row)
                words = "  ".join((in_words(answer), *map(" ".join, texts)))
                file.write(f"{words if kind == 'text' else as_json(answer)}\n")
                return
            answer = dict(answer) if isinstance(answer, dict) else {"answer": answer}
            if "label" in answer and "probabilities" in answer:
                label = answer["label"]
                answer = {"label": label, "probability": answer["probabilities"][label], **answer}
            columns = columns or tuple(record)
            answer = {f"answer_{x}" if x in columns else x: value for x, value in answer.items()}
            answer = {**record, **answer}
            if table is None:
                file.write(mark)
                options = {"lineterminator": "\n", "extrasaction": "ignore"}
                table = csv.DictWriter(file, list(answer), delimiter=separator, **options)
                table.writeheader()
            table.writerow({name: in_a_cell(value) for name, value in answer.items()})

        yield write


def as_json(value):
    """Returns a value as a line of JSON."""
    return json.dumps(value, ensure_ascii=False, default=np.ndarray.tolist)


def in_words(answer):
    """Returns the main part of an answer in words, or all of it as JSON if there are none."""
    if isinstance(answer, list) and answer and isinstance(answer[0], list):  # Masks.
        return "; ".join(
            ", ".join(f"{token} {probability:.3f}" for token, probability in mask)
            for mask in answer
        )
    if not isinstance(answer, dict):
        return as_json(answer)
    if answer.get("entities"):
        return ", ".join(f"{entity['type']} {entity['text']!r}" for entity in answer["entities"])
    for key in ("label", "answer", "choice", "is_next"):
        if key in answer:
            probability = answer.get("probability")
            if probability is None:
                probability = answer["probabilities"][answer.get("index", answer[key])]
            text = "no answer" if answer[key] == "" else answer[key]
            return f"{text} {probability:.3f}"
    if "labels" in answer:
        return ", ".join(map(str, answer["labels"])) or "no label"
    scores = answer.get("scores", [answer["score"]] if "score" in answer else None)
    return as_json(answer) if scores is None else ", ".join(f"{score:.3f}" for score in scores)


def in_a_cell(value):
    """Returns a value as it is in a cell of a CSV: lists, arrays and dicts as JSON, dates as text.

    A date in a list is text too.
    """
    value = value.tolist() if isinstance(value, np.ndarray) else value
    is_json = isinstance(value, (list, tuple, dict))
    return json.dumps(value, ensure_ascii=False, default=str) if is_json else value


def rows_of_tagged(path):
    """Yields the sentences of a file of tagged words, without the tags."""
    for words in datasets.read_conll(path, may_lack_tags=True).words:
        yield (words,), {"text": " ".join(words)}
