"""Rows of results in a file, a line of JSON each, so that a killed run continues where it was."""

import json
import pathlib


def read_rows(path):
    """Returns the rows of a file; none where there is no file."""
    if not path or not pathlib.Path(path).exists():
        return []
    return [json.loads(line) for line in pathlib.Path(path).read_text("utf-8").splitlines()]


def add_row(path, row):
    """Prints a row, and adds it to the file if there is to be one."""
    line = json.dumps(row)
    print(line, flush=True)
    if path:
        with open(path, "a", encoding="utf-8") as file:
            file.write(line + "\n")
