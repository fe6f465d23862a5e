"""Detects a forked process, in which the backend would deadlock, and raises.

Why: the backends' threads do not exist in a forked process, and an operation waits for them
forever.

Goes when `test_a_forked_process_waits_for_threads_that_it_lacks` fails.
"""

import os

import keras

_is_noted = is_forked = False


def note_process():
    """Makes any process that is forked from this one, after a model was made, know that it was."""
    global _is_noted
    if not _is_noted and hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=_note_fork)
        _is_noted = True


def _note_fork():
    global is_forked
    is_forked = True


def check_not_forked():
    """Raises `RuntimeError` in a process that was forked after a model was made.

    PyTorch with a single thread is allowed: it needs no other thread.
    """
    # A flag rather than the process's id, which `torch.compile` cannot ask for.
    if not is_forked or _has_one_thread():
        return
    raise RuntimeError(
        "A process that was forked after a model was made cannot compute: it lacks the threads of "
        f"{keras.backend.backend()}. Received: a model in a forked process. Start the process by "
        "multiprocessing.get_context('spawn') and pass it the model, which can be pickled. (On "
        "PyTorch, `torch.set_num_threads(1)` in the process also works.) Threads may share a model."
    )


def _has_one_thread():
    if keras.backend.backend() != "torch":
        return False
    import torch

    return torch.get_num_threads() == 1
