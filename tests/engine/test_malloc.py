"""Freed memory stays with the process on JAX and PyTorch, where glibc is the C library."""

import importlib
import os
import pathlib
import signal
import subprocess
import sys

import keras
import pytest
from checks import cases

from bert_keras.cli import bootstrap
from bert_keras.engine import malloc

pytestmark = pytest.mark.once

PAGE_FAULTS = pathlib.Path(__file__).with_name("page_faults.py")


@pytest.mark.each_backend
def test_a_block_freed_is_used_again_without_a_page_fault():
    backend = keras.backend.backend()
    if not malloc.has_glibc() or backend == "tensorflow":
        assert not malloc.keep_freed_memory()
        return
    environment = {k: v for k, v in os.environ.items() if not malloc.is_set_by_user({k: v})}
    command = [sys.executable, str(PAGE_FAULTS), backend]
    done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    *before, main, thread = map(float, done.stdout.split())
    assert main < 0.1 and all(share > 0.9 for share in before)
    if backend == "jax" and len(os.sched_getaffinity(0)) <= malloc.FEW_CORES:
        assert thread < 0.1
    else:
        assert thread > 0.9


@cases(
    ("BERT_KERAS_KEEP_MEMORY", "0", True),
    ("MALLOC_MMAP_THRESHOLD_", "131072", True),
    ("GLIBC_TUNABLES", "glibc.malloc.trim_threshold=131072", True),
    ("GLIBC_TUNABLES", "glibc.pthread.rseq=0", False),
    ("BERT_KERAS_KEEP_MEMORY", "1", False),
)
def test_the_user_s_settings_and_other_c_libraries_are_left_alone(monkeypatch, name, value, is_set):
    monkeypatch.setattr(os, "environ", {name: value})
    assert malloc.keep_freed_memory() == (not is_set and malloc.has_glibc())
    monkeypatch.setattr(malloc, "has_glibc", lambda: False)
    assert not malloc.keep_freed_memory()


@pytest.fixture
def keras_stays(monkeypatch):
    """`info` begins without Keras, and so would the tests that follow."""
    monkeypatch.setitem(sys.modules, "keras", sys.modules["keras"])
    handler = signal.getsignal(signal.SIGINT)
    yield
    signal.signal(signal.SIGINT, handler)


@pytest.mark.usefixtures("keras_stays")
@cases((None, "1"), ("0", "0"))
def test_the_command_asks_tensorflow_for_onednn_unless_the_user_chose(monkeypatch, chosen, used):
    monkeypatch.setattr(os, "environ", {"TF_ENABLE_ONEDNN_OPTS": chosen} if chosen else {})
    monkeypatch.setattr(sys, "argv", ["bert-keras", "info", "x", "--traceback"])
    bootstrap.prepare()
    assert os.environ["TF_ENABLE_ONEDNN_OPTS"] == used


@pytest.mark.usefixtures("keras_stays")
def test_the_command_imports_keras_without_packages_for_its_wrappers_and_plots(monkeypatch):
    for name in ("keras", "matplotlib", "sklearn"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setenv("TF_ENABLE_ONEDNN_OPTS", "1")
    found = []

    def noted(name):
        found.append((name, [sys.modules[x] for x in ("matplotlib", "sklearn")]))

    monkeypatch.setattr(importlib, "import_module", noted)
    monkeypatch.setattr(sys, "argv", ["bert-keras", "classify", "x", "--traceback"])
    bootstrap.prepare()
    assert found == [("keras", [None, None])]
    assert not {"matplotlib", "sklearn"} & sys.modules.keys()
