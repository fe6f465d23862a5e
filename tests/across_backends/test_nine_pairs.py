"""A file saved on any backend works on any other, and training resumes as if uninterrupted."""

import contextlib
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
# Each backend loads every family and every task from one of the others, and from both others those
# whose optimizer keeps more than weights and moments. Some of the tasks saved in the middle of
# training are also loaded in a fresh process of the same backend. With ALL_PAIRS=1 everything is
# loaded in all nine directions.
AROUND = {("tensorflow", "jax"), ("jax", "torch"), ("torch", "tensorflow")}


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
def workers(folder):
    """A worker for each backend, which has saved every case."""
    with contextlib.ExitStack() as opened:
        workers = {}
        for backend in BACKENDS:
            (folder / backend).mkdir()
            workers[backend] = Worker(backend, folder / f"{backend}.errors")
            opened.callback(workers[backend].process.communicate)
            workers[backend].run("save", folder / backend)
        yield workers


def cases_of(saver, loader):
    if (saver, loader) in AROUND or "ALL_PAIRS" in os.environ:
        return "all"
    return "own" if saver == loader else "nine"


@pytest.fixture(scope="module", params=BACKENDS)
def loader(request, folder, workers):
    """A backend that has loaded the files of all three in a fresh process."""
    arguments = []
    for saver in BACKENDS:
        arguments += [folder / saver, cases_of(saver, request.param)]
    workers[request.param].run("load", *arguments)
    return request.param


@pytest.mark.parametrize("saver", BACKENDS)
def test_files_of_one_backend_give_the_same_numbers_on_another(folder, saver, loader):
    cases = cases_of(saver, loader)
    expected = np.load(folder / saver / "answers.npz")
    actual = np.load(folder / saver / f"{loader}.npz")
    assert len(actual) == {"all": len(expected), "own": 8, "nine": 6}[cases]
    differences = {name: np.abs(actual[name] - expected[name]).max() for name in actual}
    print(f"{saver} to {loader}: " + ", ".join(f"{k} {v:.1e}" for k, v in differences.items()))
    # An activation between two steps of int8 may be rounded to either; float16 has 11 bits.
    bounds = {name: 5e-3 if name in ("quantized", "float16") else 1e-5 for name in differences}
    if saver != loader:
        for name in ("dropout", "float16"):
            differences.pop(f"{name}, trained on", None)
    for name, difference in differences.items():
        assert difference <= (0 if saver == loader else bounds[name]), name
    for name in (name for name in actual if f"{name}, trained on" in actual):
        moved = np.abs(actual[f"{name}, trained on"] - actual[name]).max()
        assert moved > 1e-3, f"{name} would pass without further training"
