"""Detects a forked process, in which the backend would deadlock, and raises.

Why: the backends' threads do not exist in a forked process, and an operation waits for them
forever.

Remove when `test_a_forked_process_waits_for_threads_that_it_lacks` fails.
"""

import os

import keras

_is_registered = is_forked = False


def note_process():
    """Registers a hook that sets `is_forked` in each process forked from this one from now on."""
    global _is_registered
    if not _is_registered and hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=_note_fork)
        _is_registered = True


def _note_fork():
    global is_forked
    is_forked = True


def check_not_forked():
    """Raises `RuntimeError` in a process that was forked after a model was made.

    PyTorch with a single thread is allowed: it needs no other thread.
    """
    # A flag rather than the process's id, which `torch.compile` cannot read.
    if not is_forked:
        return
    if keras.backend.backend() == "torch":
        import torch

        if torch.get_num_threads() == 1:
            return
    raise RuntimeError(
        "A process that was forked after a model was made cannot compute: it lacks the threads of "
        f"{keras.backend.backend()}. Received: a model in a forked process. Start the process by "
        "multiprocessing.get_context('spawn') and pass it the model, which can be pickled. (On "
        "PyTorch, `torch.set_num_threads(1)` in the process also works.) Threads may share a model."
    )
