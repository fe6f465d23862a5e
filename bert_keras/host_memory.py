"""Memory that is freed stays with the process, where the C library is glibc.

glibc maps a large block anew each time it is asked for one, and gives it back when it is freed. A
batch's hidden states are such blocks, so each step pays for zeroing the same pages again: 190,000
page faults in a training step of MiniLM, 16 x 128, on JAX, 240,000 where PyTorch predicts
64 x 128. Kept, they cost none. docs/benchmarks.md has the figures.
"""

import ctypes
import os
import sys

import keras

# The numbers of glibc's malloc.h, and the environment's own way to set them, which is left alone.
TRIM_THRESHOLD, MMAP_THRESHOLD, ARENA_MAX = -1, -3, -8
SET_BY_USER = (
    "GLIBC_TUNABLES",
    "MALLOC_ARENA_MAX",
    "MALLOC_MMAP_THRESHOLD_",
    "MALLOC_TRIM_THRESHOLD_",
)
MOST = 2**31 - 1


def keep_freed_memory():
    """Has glibc keep freed blocks of less than 2 GiB, on JAX and PyTorch.

    It holds for the whole process, and must come before JAX has threads: each keeps the arena that
    it first allocates from. Other parts of the program use the memory again; other programs get it
    when this one ends or calls glibc's `malloc_trim(0)`. TensorFlow keeps memory of its own.
    Nothing is done with another C library, or if a variable of `SET_BY_USER` is in the environment.

    Returns:
        bool, whether it was done.
    """
    backend = keras.backend.backend()
    set_by_user = any(name in os.environ for name in SET_BY_USER)
    if backend not in ("jax", "torch") or set_by_user or not has_glibc():
        return False
    libc = ctypes.CDLL(None)
    libc.mallopt(TRIM_THRESHOLD, MOST)
    libc.mallopt(MMAP_THRESHOLD, MOST)
    if backend == "jax":
        # XLA's threads allocate its buffers, and arenas other than the first map large blocks.
        libc.mallopt(ARENA_MAX, 1)
    return True


def has_glibc():
    return sys.platform == "linux" and hasattr(ctypes.CDLL(None), "gnu_get_libc_version")
