"""A file saved on any backend works on any other, and training goes on as if nothing happened."""

import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest

WORKER = pathlib.Path(__file__).parent / "worker.py"
ROOT = pathlib.Path(__file__).resolve().parents[2]
BACKENDS = ("tensorflow", "jax", "torch")


def work(backend, *arguments):
    environment = {**os.environ, "KERAS_BACKEND": backend, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-W", "error::UserWarning:keras", str(WORKER), *arguments]
    result = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr[-3000:]


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    for backend in BACKENDS:
        work(backend, "save", str(folder / f"{backend}.keras"))
    return folder


@pytest.mark.parametrize("loader", BACKENDS)
@pytest.mark.parametrize("saver", BACKENDS)
def test_a_file_of_one_backend_gives_the_same_numbers_on_another(files, saver, loader):
    path = str(files / f"{saver}.keras")
    out = str(files / f"{saver}-{loader}.npz")
    work(loader, "load", path, out)
    expected, actual = np.load(path + ".npz"), np.load(out)
    print(f"{saver} to {loader}: {np.abs(actual['before'] - expected['before']).max():.1e}")
    np.testing.assert_allclose(actual["before"], expected["before"], rtol=0, atol=1e-5)
    np.testing.assert_allclose(actual["after"], expected["after"], rtol=0, atol=1e-5)
