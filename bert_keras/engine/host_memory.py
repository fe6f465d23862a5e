"""Large arrays that come and go, where JAX or PyTorch computes on a CPU and glibc allocates.

glibc gives back what is free at the end of its heap, and maps blocks above at most 32 MiB anew each
time. The hidden states of a batch come and go with every step, so each step pays the kernel for
zeroing the same pages again. Two ways out; docs/benchmarks.md has their times:

- Huge pages, which the kernel zeroes 512 times as many bytes at once of. glibc asks for them if it
  was told so when the process began (`HUGE_PAGES`); `train` and `pretrain` begin anew with it.
- Memory that is kept, `keep_freed_memory`, for a process that runs already. It costs memory: XLA
  takes all it needs for a step as one block, and where something small has come to lie in the block
  of the last step, the next one is taken beside it.

TensorFlow keeps memory of its own.
"""

import ctypes
import os
import sys
from collections.abc import Mapping

# In the environment variable GLIBC_TUNABLES when the process begins; glibc has it from 2.35 on.
HUGE_PAGES = "glibc.malloc.hugetlb=1"
# Says in brackets whether the kernel gives huge pages to all who ask ("madvise"), or unasked.
KERNEL_GIVES = "/sys/kernel/mm/transparent_hugepage/enabled"
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


def keep_freed_memory() -> bool:
    """Has glibc keep freed memory for the process, instead of giving it back, on JAX and PyTorch.

    For a program that trains or answers on a CPU: call it once, right after the imports. It saves
    time where large arrays come and go with every step, see docs/benchmarks.md. Importing the
    package does not call it: this changes the whole process. With
    `GLIBC_TUNABLES=glibc.malloc.hugetlb=1` in the environment when Python starts, as the commands
    `train` and `pretrain` have it, there is nothing left to save.

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


def would_gain_by_huge_pages(environment: Mapping[str, str]) -> bool:
    """Returns whether a process that begins with that environment should begin with `HUGE_PAGES`.

    Args:
        environment: dict of str, such as `os.environ`.
    """
    if not has_glibc() or is_set_by_user(environment):
        return False
    version = os.confstr("CS_GNU_LIBC_VERSION").split()[-1]
    if tuple(int(number) for number in version.split(".")[:2]) < (2, 35):
        return False
    try:
        with open(KERNEL_GIVES, encoding="ascii") as file:
            return "[madvise]" in file.read()
    except OSError:
        return False


def has_glibc() -> bool:
    """Returns whether the C library is glibc: on Linux only, and there not if it is musl."""
    return sys.platform == "linux" and hasattr(ctypes.CDLL(None), "gnu_get_libc_version")


def is_set_by_user(environment: Mapping[str, str]) -> bool:
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
