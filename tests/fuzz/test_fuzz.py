"""Damaged files end in our own errors, soon, in little memory, and nothing in them is executed.

`worker.py` says what counts as a finding, and how to fuzz for longer. The files in `corpus/`, each
of which was once read wrongly, come first.
"""

import json
import os
import pathlib
import subprocess
import sys

import pytest
from targets import TARGETS

FOLDER = pathlib.Path(__file__).parent


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """What the worker found, by reader. A reader that ends the process is reported too."""
    keep, found, left = tmp_path_factory.mktemp("kept"), {}, list(TARGETS)
    while left:
        command = [sys.executable, str(FOLDER / "worker.py"), "--keep", str(keep), *left]
        environment = {**os.environ, "KERAS_BACKEND": "torch"}
        done = subprocess.run(
            command, env=environment, check=False, text=True, capture_output=True, timeout=1200
        )
        for line in done.stdout.splitlines():
            if line.startswith("{"):
                result = json.loads(line)
                found[result["reader"]] = result
        if done.returncode:
            assert (keep / "running.json").is_file(), done.stderr[-3000:]
            name, count = json.loads((keep / "running.json").read_text())
            ended = f"The process ended with {done.returncode}: {done.stderr[-1000:]}"
            found[name] = {"files": count, "findings": [[ended, count]]}
        left = [name for name in left if name not in found]
    return found


@pytest.mark.once
@pytest.mark.parametrize("reader", TARGETS)
def test_damaged_files_are_refused_by_our_own_errors(results, reader):
    assert results[reader]["findings"] == []
    assert results[reader]["files"] > 0
