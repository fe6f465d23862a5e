"""Damaged files end in our own errors, soon, in little memory, and nothing in them is executed.

`worker.py` says what counts as a finding, and how to fuzz for longer. The files in `corpus/`, each
of which was once read wrongly, come first.
"""

import json
import multiprocessing
import sys

import pytest
import torch
import transformers.models.bert.modeling_bert  # noqa: F401 (Forked processes have it.)
from fuzz import worker
from targets import TARGETS


def work(names, keep):
    """Fuzzes readers in a process of its own."""
    torch.set_num_threads(1)  # Threads of the parent are not there.
    with (keep / "results.jsonl").open("a", buffering=1) as file:
        for result in worker.run(names, keep, worker.SECONDS):
            file.write(json.dumps(result) + "\n")


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """What the worker found, by reader. A reader that ends the process is reported too."""
    keep, found, left = tmp_path_factory.mktemp("kept"), {}, list(TARGETS)
    while left:
        # Forked, since imports take longer than all readers, unless TensorFlow's threads run here.
        method = "spawn" if "tensorflow" in sys.modules else "fork"
        process = multiprocessing.get_context(method).Process(target=work, args=(left, keep))
        process.start()
        process.join(1200)
        process.kill()  # It may wait for something.
        process.join()
        lines = (keep / "results.jsonl").read_text().splitlines()
        found |= {result["reader"]: result for result in map(json.loads, lines)}
        if process.exitcode:
            name, count = json.loads((keep / "running.json").read_text())
            assert name in left, "The process ended before it read a file."
            ended = f"The process ended with {process.exitcode}."
            found[name] = {"files": count, "findings": [[ended, count]]}
        left = [name for name in left if name not in found]
    return found


@pytest.mark.once
@pytest.mark.parametrize("reader", TARGETS)
def test_damaged_files_are_refused_by_our_own_errors(results, reader):
    assert results[reader]["findings"] == []
    assert results[reader]["files"] > 0
