"""Freed memory stays with the process on JAX and PyTorch, where glibc is the C library."""

import os
import subprocess
import sys

import keras
import pytest

from bert_keras import host_memory

PAGES = 16384
# Page faults of a block as large as one that was freed just before.
FAULTS = """
import resource
import sys
import bert_keras

def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    b"x" * size
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

size = int(sys.argv[1]) * resource.getpagesize()
faults()
print(faults())
"""
needs_glibc = pytest.mark.skipif(
    not host_memory.has_glibc(), reason="the setting is one of glibc's, which this system lacks"
)


def faults_where(**variables):
    environment = {k: v for k, v in os.environ.items() if k not in host_memory.SET_BY_USER}
    done = subprocess.run(
        [sys.executable, "-c", FAULTS, str(PAGES)],
        env=environment | variables,
        check=True,
        capture_output=True,
        text=True,
    )
    return int(done.stdout.split()[-1])


@needs_glibc
def test_a_block_freed_is_used_again_without_a_page_fault():
    if keras.backend.backend() == "tensorflow":  # It keeps memory of its own.
        assert faults_where() > 0.9 * PAGES
    else:
        assert faults_where() < 0.1 * PAGES


@needs_glibc
def test_what_the_user_set_is_left_alone():
    assert faults_where(MALLOC_TRIM_THRESHOLD_="131072") > 0.9 * PAGES


def test_nothing_is_done_with_another_c_library(monkeypatch):
    monkeypatch.setattr(host_memory, "has_glibc", lambda: False)
    assert not host_memory.keep_freed_memory()
