"""Files that the tests of the readers write."""

import json

import pytest


@pytest.fixture
def write(tmp_path):
    """Returns a function that writes a file and returns its path.

    Its content is bytes, a str, a JSON object, or a list of objects, one per line.
    """

    def write_file(name, content):
        if isinstance(content, list):
            content = "".join(json.dumps(record) + "\n" for record in content)
        elif isinstance(content, dict):
            content = json.dumps(content)
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write_file
