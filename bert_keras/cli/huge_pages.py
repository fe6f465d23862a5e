"""Restarts a training command with huge pages: the kernel then zeroes 512 times as much at once.

glibc reads the setting only when a process starts. `keep_freed_memory` is for a process that
already runs; docs/benchmarks.md has the times of both.
"""

import contextlib
import os
import sys
from collections.abc import Mapping

from bert_keras.engine import host_memory

# A value of the environment variable GLIBC_TUNABLES for glibc 2.35 or later.
HUGE_PAGES = "glibc.malloc.hugetlb=1"
# The word in brackets says whether the kernel gives huge pages on request ("madvise") or to all.
KERNEL_GIVES = "/sys/kernel/mm/transparent_hugepage/enabled"
# The environment variable with the id of the process that has restarted.
_RESTARTED = "BERT_KERAS_RESTARTED"


def restart() -> None:
    """Restarts the process with huge pages, unless it has them or would not gain by them."""
    # Checked by process id, since the tunables may get lost.
    is_restarted = os.environ.get(_RESTARTED) == str(os.getpid())
    if is_restarted or not sys.executable or not would_gain(os.environ):
        return
    tunables = [os.environ.get("GLIBC_TUNABLES"), HUGE_PAGES]
    environment = {
        **os.environ,
        "GLIBC_TUNABLES": ":".join(filter(None, tunables)),
        _RESTARTED: str(os.getpid()),
    }
    with contextlib.suppress(OSError):  # Then the process continues without them.
        os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], environment)


def would_gain(environment: Mapping[str, str]) -> bool:
    """Returns whether a process with these environment variables should use huge pages."""
    if not host_memory.has_glibc() or host_memory.is_set_by_user(environment):
        return False
    version = os.confstr("CS_GNU_LIBC_VERSION").split()[-1]
    if tuple(int(number) for number in version.split(".")[:2]) < (2, 35):
        return False
    try:
        with open(KERNEL_GIVES, encoding="ascii") as file:
            return "[madvise]" in file.read()
    except OSError:
        return False
