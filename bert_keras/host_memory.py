"""Freed memory stays with the process, where JAX or PyTorch computes on a CPU and glibc allocates.

glibc gives back what is free at the end of its heap, and maps blocks above at most 32 MiB anew each
time. The hidden states of a batch come and go with every step, so each step pays the kernel for
zeroing the same pages again. Memory that is kept costs none; docs/benchmarks.md has the times.
TensorFlow keeps memory of its own.
"""

import ctypes
import os
import sys

import keras

# The numbers of glibc's malloc.h.
TRIM_THRESHOLD, MMAP_MAX, ARENA_MAX = -1, -4, -8
# For more cores one arena for all threads is not worth their queueing for it.
FEW_CORES = 4
# Environment variables by which users set glibc's malloc; if one is there, nothing is changed.
SET_BY_USER = (
    "MALLOC_ARENA_MAX",
    "MALLOC_MMAP_MAX_",
    "MALLOC_MMAP_THRESHOLD_",
    "MALLOC_TOP_PAD_",
    "MALLOC_TRIM_THRESHOLD_",
)


def keep_freed_memory():
    """Has glibc keep freed memory for the process, instead of giving it back, on JAX and PyTorch.

    For a program that trains or answers on a CPU: call it once, right after the imports. It saves
    time where large arrays come and go with every step, see docs/benchmarks.md; the command line
    does so. Importing the package does not: this changes the whole process.

    The process then rests at its peak, and a large block that is used again for zeros must be
    zeroed. Other parts of the program use the memory again; other programs get it when this one
    ends or calls glibc's `malloc_trim(0)`.

    It concerns the memory of the main thread, from which PyTorch allocates. On JAX threads of XLA
    allocate the buffers: on up to `FEW_CORES` cores all threads that start from now on share one
    arena, the main thread's.

    Nothing is changed if `BERT_KERAS_KEEP_MEMORY` is 0 in the environment, if the user set glibc's
    malloc there, or if the C library is another one.

    Returns:
        bool, whether glibc was told.

    Example:
    ```python
    import bert_keras

    bert_keras.keep_freed_memory()
    ```
    """
    backend = keras.backend.backend()
    if backend not in ("jax", "torch") or not has_glibc() or is_set_by_user(os.environ):
        return False
    libc = ctypes.CDLL(None)
    libc.mallopt(TRIM_THRESHOLD, -1)
    libc.mallopt(MMAP_MAX, 0)
    if backend == "jax" and len(os.sched_getaffinity(0)) <= FEW_CORES:
        libc.mallopt(ARENA_MAX, 1)
    return True


def has_glibc():
    """Returns whether the C library is glibc: on Linux only, and there not if it is musl."""
    return sys.platform == "linux" and hasattr(ctypes.CDLL(None), "gnu_get_libc_version")


def is_set_by_user(environment):
    """Returns whether environment variables say how memory is to be handled.

    Args:
        environment: dict of str, such as `os.environ`.

    Returns:
        bool: `BERT_KERAS_KEEP_MEMORY` is 0, or a variable of `SET_BY_USER` is there, or one of
        glibc's tunables concerns malloc.
    """
    return (
        environment.get("BERT_KERAS_KEEP_MEMORY") == "0"
        or "glibc.malloc" in environment.get("GLIBC_TUNABLES", "")
        or any(name in environment for name in SET_BY_USER)
    )
