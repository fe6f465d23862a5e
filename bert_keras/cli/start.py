"""What has to happen before the command imports Keras, and so before all else of the package."""

import contextlib
import os
import signal
import sys

from bert_keras.engine import host_memory
from bert_keras.export.runtime import is_exported

# The process that has begun anew.
_BEGUN = "BERT_KERAS_BEGUN_ANEW"


def prepare():
    """Silences libraries, and leaves Keras out where an exported folder is to answer.

    The package calls it when its command imports it, `bert-keras` or `python -m bert_keras`. Until
    `started` Ctrl-C ends the process at once.
    """
    if sys.argv[1:2] in (["train"], ["pretrain"]):
        _begin_with_huge_pages()
    if "--traceback" not in sys.argv:
        _let_python_alone_tell()
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            # Ctrl-C while Keras is imported would be told by a traceback of that.
            with contextlib.suppress(ValueError):  # Another thread may not.
                signal.signal(signal.SIGINT, signal.SIG_DFL)
    # Where flags come first, Keras is imported in vain: texts and files are no sources.
    command, source = (*sys.argv[1:3], "", "")[:2]
    if command == "serve":
        # Threads that wait for work would take the time in which requests are read.
        os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    if command not in ("convert", "serve") and is_exported(source):
        sys.modules["keras"] = None


def started():
    """Has Ctrl-C raise `KeyboardInterrupt` again."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _begin_with_huge_pages():
    """Begins the process anew where glibc would save time, and must be told so from the start."""
    begun = os.environ.get(_BEGUN) == str(os.getpid())  # It may be that the tunables get lost.
    if begun or not sys.executable or not host_memory.would_gain_by_huge_pages(os.environ):
        return
    tunables = [os.environ.get("GLIBC_TUNABLES"), host_memory.HUGE_PAGES]
    environment = {
        **os.environ,
        "GLIBC_TUNABLES": ":".join(filter(None, tunables)),
        _BEGUN: str(os.getpid()),
    }
    with contextlib.suppress(OSError):  # Then it goes on as it is.
        os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], environment)


def _let_python_alone_tell():
    """Keeps libraries off standard error: no setting silences the start of TensorFlow or JAX."""
    with contextlib.suppress(AttributeError, OSError):  # There may be none.
        told = os.dup(2)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        sys.stderr = open(told, "w", 1, sys.stderr.encoding, "backslashreplace")  # noqa: SIM115
