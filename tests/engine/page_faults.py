"""Counts the page faults of a block of memory as large as one that was freed just before.

python tests/engine/page_faults.py BACKEND

It prints the shares of the block's pages that fault on the main thread and on another one, and both
again after `keep_freed_memory`. It does without Keras, whose import takes seconds. Run by
test_malloc.py; the counts themselves are used by test_imports.py too.
"""

import ctypes
import importlib.util
import pathlib
import resource
import sys
import threading
import types

PAGES = 16384
libc = ctypes.CDLL(None)


def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    size = ctypes.c_size_t(PAGES * resource.getpagesize())
    block = ctypes.c_void_p(libc.malloc(size))
    libc.memset(block, 1, size)
    libc.free(block)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before


def shares_of_two_threads():
    """Returns the shares for the main thread and for another one."""
    libc.prctl(41, 1, 0, 0, 0)  # PR_SET_THP_DISABLE: a fault a page.
    libc.malloc.restype = ctypes.c_void_p
    found = []

    def count():
        faults()
        found.append(faults() / PAGES)

    count()
    thread = threading.Thread(target=count)
    thread.start()
    thread.join()
    return found


def main(backend):
    sys.modules["keras"] = types.SimpleNamespace(
        backend=types.SimpleNamespace(backend=lambda: backend)
    )
    path = pathlib.Path(__file__).resolve().parents[2] / "bert_keras" / "engine" / "malloc.py"
    spec = importlib.util.spec_from_file_location("malloc", path)
    host_memory = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(host_memory)
    # On JAX the number of heaps must be set before there are threads.
    before = shares_of_two_threads() if backend != "jax" else []
    assert host_memory.keep_freed_memory()
    print(*before, *shares_of_two_threads())


if __name__ == "__main__":
    main(sys.argv[1])
