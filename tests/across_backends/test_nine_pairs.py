"""A file saved on any backend works on any other, and training resumes as if uninterrupted."""

import collections
import contextlib
import itertools
import json
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest

WORKER = pathlib.Path(__file__).parent / "worker.py"
ROOT = pathlib.Path(__file__).resolve().parents[2]
BACKENDS = ("tensorflow", "jax", "torch")
LESS_EXACT = "dropout_in_float16"
NUM_NAMES = 34  # Of answers: two of each case that is trained on.


class Worker:
    """A process that has imported a backend. Each job runs in a fork of it, see worker.py."""

    def __init__(self, backend, errors):
        paths = os.pathsep.join(str(ROOT / name) for name in ("", "tests", "tests/tasks"))
        environment = {**os.environ, "KERAS_BACKEND": backend, "PYTHONPATH": paths}
        command = [sys.executable, "-W", "error::UserWarning:keras", str(WORKER)]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        self.errors = errors
        with errors.open("w") as file:
            self.process = subprocess.Popen(command, env=environment, stderr=file, **pipes)

    def run(self, *arguments):
        print(json.dumps([*map(str, arguments)]), file=self.process.stdin, flush=True)
        assert self.process.stdout.readline() == "0\n", self.errors.read_text()[-3000:]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("files")


@pytest.fixture(scope="module")
def loaded(folder):
    """(saver, loader) -> the answers of the files that one backend saved and the other loaded.

    The workers save and load the cases that worker.py chooses for each pair.
    """
    with contextlib.ExitStack() as opened:
        workers = {}
        for backend in BACKENDS:
            (folder / backend).mkdir()
            workers[backend] = Worker(backend, folder / f"{backend}.errors")
            opened.callback(workers[backend].process.communicate)
            workers[backend].run("save", folder / backend)
        for backend in BACKENDS:
            workers[backend].run("load", *(folder / saver for saver in BACKENDS))
    pairs = itertools.product(BACKENDS, repeat=2)
    return {(a, b): dict(np.load(folder / a / f"{b}.npz")) for a, b in pairs}


def test_each_case_is_loaded_on_two_other_backends_at_least(loaded):
    pairs = [names for (saver, loader), names in loaded.items() if saver != loader]
    numbers = collections.Counter(itertools.chain.from_iterable(pairs))
    assert len(numbers) == NUM_NAMES
    assert min(numbers.values()) >= 2


@pytest.mark.parametrize("saver, loader", [*itertools.product(BACKENDS, repeat=2)])
def test_files_of_one_backend_give_the_same_numbers_on_another(folder, loaded, saver, loader):
    actual = loaded[saver, loader]
    expected = np.load(folder / saver / "answers.npz")
    assert len(actual) >= (6 if saver == loader else 7)
    differences = {name: np.abs(actual[name] - expected[name]).max() for name in actual}
    print(f"{saver} to {loader}: " + ", ".join(f"{k} {v:.1e}" for k, v in differences.items()))
    # An activation between two steps of int8 may be rounded to either; float16 has 11 bits.
    bounds = {name: 5e-3 if name in ("quantized", LESS_EXACT) else 1e-5 for name in differences}
    if saver != loader:
        differences.pop(f"{LESS_EXACT}, trained on", None)
    for name, difference in differences.items():
        assert difference <= (0 if saver == loader else bounds[name]), name
    for name in (name for name in actual if f"{name}, trained on" in actual):
        moved = np.abs(actual[f"{name}, trained on"] - actual[name]).max()
        assert moved > 1e-3, f"{name} would pass without further training"
