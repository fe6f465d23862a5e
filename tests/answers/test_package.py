"""The package can be copied: NumPy and the standard library are all that it needs."""

import doctest
import importlib
import pathlib
import shutil
import subprocess
import sys

import pytest

from bert_keras import answers

FOLDER = pathlib.Path(answers.__file__).parent
MODULES = sorted(path.stem for path in FOLDER.glob("*.py") if path.stem != "__init__")


@pytest.mark.once
def test_a_copy_imports_only_numpy(tmp_path):
    shutil.copytree(FOLDER, tmp_path / "copied", ignore=shutil.ignore_patterns("__pycache__"))
    code = (
        "import sys, numpy, numpy.typing; before = {*sys.modules, *sys.stdlib_module_names}\n"
        f"import {', '.join(f'copied.{name}' for name in MODULES)}\n"
        "new = {name.partition('.')[0] for name in sys.modules.keys() - before}\n"
        "print(sorted(new - {'copied', 'numpy', *sys.stdlib_module_names}))"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=True)
    assert done.stdout == "[]\n"


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings_hold(name):
    assert doctest.testmod(importlib.import_module(f"bert_keras.answers.{name}")).failed == 0
