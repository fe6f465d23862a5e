"""Damaged files end in our own errors, soon, in little memory, and nothing in them is executed.

`worker.py` says what counts as a finding, and how to fuzz for longer. The files in `corpus/`, each
of which was once read wrongly, come first.
"""

import json
import os
import pathlib
import re
import subprocess
import sys

import pytest

FOLDER = pathlib.Path(__file__).parent
# The keys of `targets.TARGETS`, which makes models when it is imported.
# fmt: off
READERS = [
    "keras", "own_preset", "hugging_face", "keras_hub", "tf1", "backbone", "safetensors",
    "torch_pickle", "tokenizer_json", "byte_pair_json", "vocabulary", "merges", "sentence_pieces",
    "pretraining", "masked_pretraining", "tfrecord", "training", "adapters", "csv", "tsv",
    "json_lines", "conll", "conllu", "squad", "multiple_choice", "documents", "command_json",
    "command_csv",
]
# fmt: on


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """What the worker found, by reader. A reader that ends the process is reported too."""
    keep, found, left = tmp_path_factory.mktemp("kept"), {}, READERS
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
@pytest.mark.parametrize("reader", READERS)
def test_damaged_files_are_refused_by_our_own_errors(results, reader):
    assert results[reader]["findings"] == []
    assert results[reader]["files"] > 0


@pytest.mark.once
def test_every_reader_is_fuzzed():
    text = (FOLDER / "targets.py").read_text().split("TARGETS = {")[1].split("\n}")[0]
    assert sorted(re.findall(r'(?m)^    "(\w+)": ', text)) == sorted(READERS)
