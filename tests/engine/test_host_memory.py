"""Freed memory stays with the process on JAX and PyTorch, where glibc is the C library."""

import os
import pathlib
import subprocess
import sys

import keras
import pytest

from bert_keras.cli import start
from bert_keras.engine import host_memory

pytestmark = pytest.mark.once

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGES, HUGE_PAGES = 16384, host_memory.HUGE_PAGES
# Page faults of a block as large as one that was freed just before, on the main thread and another:
# once the package is imported, and once it is asked to keep freed memory.
FAULTS = """
import ctypes, resource, sys, threading
import bert_keras

libc = ctypes.CDLL(None)
libc.prctl(41, 1, 0, 0, 0)  # PR_SET_THP_DISABLE: a fault a page.
libc.malloc.restype = ctypes.c_void_p
size = int(sys.argv[1]) * resource.getpagesize()

def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    block = ctypes.c_void_p(libc.malloc(ctypes.c_size_t(size)))
    libc.memset(block, 1, ctypes.c_size_t(size))
    libc.free(block)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

def twice():
    faults()
    print(faults())

def on_two_threads():
    twice()
    thread = threading.Thread(target=twice)
    thread.start()
    thread.join()

for phase in sys.argv[2:]:
    if phase == "keep":
        bert_keras.keep_freed_memory()
    on_two_threads()
"""


@pytest.fixture(scope="module")
def shares_of_faults():
    """Page faults of the main thread and of another, as shares of the block's pages."""
    environment = {k: v for k, v in os.environ.items() if not host_memory.is_set_by_user({k: v})}
    # On JAX the number of heaps is set before there are threads.
    phases = ["import", "keep"] if keras.backend.backend() == "torch" else ["keep"]
    done = subprocess.run(
        [sys.executable, "-c", FAULTS, str(PAGES), *phases],
        env=environment | {"PYTHONPATH": str(ROOT)},
        check=True,
        capture_output=True,
        text=True,
    )
    return [int(line) / PAGES for line in done.stdout.split()[-2 * len(phases) :]]


@pytest.mark.each_backend
def test_a_block_freed_is_used_again_without_a_page_fault(request):
    if not host_memory.has_glibc() or keras.backend.backend() == "tensorflow":
        assert not host_memory.keep_freed_memory()
        return
    main, other = request.getfixturevalue("shares_of_faults")[-2:]
    assert main < 0.1
    if keras.backend.backend() == "jax" and len(os.sched_getaffinity(0)) <= host_memory.FEW_CORES:
        assert other < 0.1
    else:
        assert other > 0.9


def test_importing_the_package_changes_nothing(shares_of_faults):
    if host_memory.has_glibc():
        assert min(shares_of_faults[:2]) > 0.9


def test_the_user_s_settings_are_left_alone(monkeypatch):
    monkeypatch.setenv("BERT_KERAS_KEEP_MEMORY", "0")
    assert not host_memory.keep_freed_memory()


def test_the_switch_and_glibc_s_variables_count_and_no_others():
    for name, value in (
        ("BERT_KERAS_KEEP_MEMORY", "0"),
        ("MALLOC_MMAP_THRESHOLD_", "131072"),
        ("GLIBC_TUNABLES", "glibc.malloc.trim_threshold=131072"),
    ):
        assert host_memory.is_set_by_user({name: value})
    assert not host_memory.is_set_by_user({"GLIBC_TUNABLES": "glibc.pthread.rseq=0"})
    assert not host_memory.is_set_by_user({"BERT_KERAS_KEEP_MEMORY": "1"})


@pytest.mark.each_backend
def test_nothing_is_done_with_another_c_library(monkeypatch):
    for name in (*host_memory.SET_BY_USER, "BERT_KERAS_KEEP_MEMORY", "GLIBC_TUNABLES"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(keras.backend, "backend", lambda: "torch")
    assert host_memory.keep_freed_memory() == host_memory.has_glibc()
    monkeypatch.setattr(host_memory, "has_glibc", lambda: False)
    assert not host_memory.keep_freed_memory()


@pytest.mark.parametrize(
    ("options", "gains"),
    [
        ({}, True),
        ({"glibc": "glibc 3.0"}, True),
        ({"glibc": "glibc 2.34"}, False),
        ({"kernel": "[always] madvise never"}, False),  # They come unasked.
        ({"kernel": "always madvise [never]"}, False),
        # What the user said stays, and a process that has begun anew does not again.
        ({"BERT_KERAS_KEEP_MEMORY": "0"}, False),
        ({"GLIBC_TUNABLES": HUGE_PAGES}, False),
    ],
)
def test_huge_pages_are_asked_for_where_kernel_and_glibc_give_them(
    options, gains, write, monkeypatch
):
    found = {"kernel": "always [madvise] never", "glibc": "glibc 2.36", **options}
    monkeypatch.setattr(host_memory, "KERNEL_GIVES", write("enabled", found.pop("kernel")))
    glibc = found.pop("glibc")
    monkeypatch.setattr(host_memory, "has_glibc", lambda: True)
    monkeypatch.setattr(os, "confstr", lambda name: glibc, raising=False)
    assert host_memory.would_gain_by_huge_pages(found) == gains


@pytest.fixture
def keras_stays(monkeypatch):
    """`info` begins without Keras, and so would the tests that follow."""
    monkeypatch.setitem(sys.modules, "keras", sys.modules["keras"])


@pytest.mark.usefixtures("keras_stays")
@pytest.mark.parametrize(("chosen", "used"), [(None, "1"), ("0", "0")])
def test_the_command_asks_tensorflow_for_onednn_unless_the_user_chose(chosen, used, monkeypatch):
    monkeypatch.setattr(os, "environ", {"TF_ENABLE_ONEDNN_OPTS": chosen} if chosen else {})
    monkeypatch.setattr(sys, "argv", ["bert-keras", "info", "--traceback"])
    start.prepare()
    assert os.environ["TF_ENABLE_ONEDNN_OPTS"] == used


@pytest.mark.usefixtures("keras_stays")
@pytest.mark.parametrize(("command", "begins"), [("train", True), ("info", False)])
def test_training_commands_restart_with_their_own_arguments(command, begins, monkeypatch):
    calls = []
    monkeypatch.setattr(host_memory, "would_gain_by_huge_pages", lambda environment: True)
    monkeypatch.setattr(os, "execve", lambda *arguments: calls.append(arguments))
    monkeypatch.setattr(sys, "argv", ["bert-keras", command, "--traceback"])
    monkeypatch.setattr(sys, "orig_argv", ["python", "-X", "dev", "-m", "bert_keras", command])
    monkeypatch.setattr(os, "environ", {**os.environ, "GLIBC_TUNABLES": "glibc.pthread.rseq=0"})
    start.prepare()
    if not begins:
        assert not calls
        return
    ((program, arguments, environment),) = calls
    assert [program, *arguments] == [sys.executable] * 2 + sys.orig_argv[1:]
    # Where another program takes the tunables out, it begins no third time.
    monkeypatch.setattr(os, "environ", {**environment, "GLIBC_TUNABLES": ""})
    start.prepare()
    assert len(calls) == 1
    assert environment["GLIBC_TUNABLES"] == f"glibc.pthread.rseq=0:{HUGE_PAGES}"
