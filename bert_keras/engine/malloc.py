"""Keeps large arrays in memory between steps, for JAX and PyTorch on a CPU with glibc.

Why: glibc returns free memory at the end of its heap to the kernel, and maps blocks above at most
32 MiB anew each time. The hidden states of a batch are freed and allocated at every step, so at
every step the kernel zeroes the same pages again. docs/benchmarks.md has the times, also of huge
pages.

Kept memory costs memory: XLA takes all it needs for a step as one block, and if something small was
allocated inside the block of the last step, the next block is taken beside it. TensorFlow keeps
memory by itself.

Remove when `tests/test_imports.py::test_the_import_is_light_and_returns_freed_memory` fails.
"""

import ctypes
import os
import sys
from collections.abc import Mapping

# Numbers from glibc's malloc.h.
TRIM_THRESHOLD, MMAP_MAX, ARENA_MAX = -1, -4, -8
# With more cores, waiting for one shared arena costs more than it saves.
FEW_CORES = 4


def keep_freed_memory() -> bool:
    """Makes glibc keep freed memory in the process, on JAX and PyTorch.

    For a program that trains or predicts on a CPU: call it once, right after the imports. It saves
    time if large arrays are allocated and freed at every step, see docs/benchmarks.md. Importing
    the package does not call it, because it changes the whole process. If Python starts with
    `GLIBC_TUNABLES=glibc.malloc.hugetlb=1` in the environment, there is nothing left to save. The
    commands `train` and `pretrain` call it.

    The process then stays at its peak size, and a large block that is reused for zeros must be
    zeroed. Other parts of the program reuse the memory; other programs get it when this one ends or
    calls glibc's `malloc_trim(0)`.

    The setting applies to the memory of the main thread, from which PyTorch allocates. On JAX,
    threads of XLA allocate the buffers: on up to `FEW_CORES` cores, all threads that start later
    share one arena, the main thread's.

    Nothing is changed if `BERT_KERAS_KEEP_MEMORY` is 0 in the environment, if the user set up
    glibc's malloc there, or if the C library is another one.

    Returns:
        bool, whether glibc was set up.

    Example:
    ```python
    import bert_keras

    bert_keras.keep_freed_memory()
    ```
    """
    import keras

    backend = keras.backend.backend()
    if backend not in ("jax", "torch") or not has_glibc() or is_set_by_user(os.environ):
        return False
    libc = ctypes.CDLL(None)
    libc.mallopt(TRIM_THRESHOLD, -1)
    libc.mallopt(MMAP_MAX, 0)
    if backend == "jax" and len(os.sched_getaffinity(0)) <= FEW_CORES:
        libc.mallopt(ARENA_MAX, 1)
    return True


def has_glibc() -> bool:
    """Returns whether the C library is glibc: on Linux only, and there not if it is musl."""
    return sys.platform == "linux" and hasattr(ctypes.CDLL(None), "gnu_get_libc_version")


def is_set_by_user(environment: Mapping[str, str]) -> bool:
    """Returns whether environment variables set up memory allocation.

    Args:
        environment: dict of str, such as `os.environ`.

    Returns:
        bool: `BERT_KERAS_KEEP_MEMORY` is 0, a variable `MALLOC_...` is set, or one of glibc's
        tunables concerns malloc.
    """
    return (
        environment.get("BERT_KERAS_KEEP_MEMORY") == "0"
        or "glibc.malloc" in environment.get("GLIBC_TUNABLES", "")
        or any(name.startswith("MALLOC_") for name in environment)
    )
