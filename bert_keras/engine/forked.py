"""A process forked off a model's own: where it would wait for ever, it is told so."""

import os

import keras

_is_noted = is_forked = False


def note_process():
    """Notes, when a model is made, that a fork of this process lacks the backend's threads."""
    global _is_noted
    if not _is_noted and hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=_note_fork)
        _is_noted = True


def _note_fork():
    global is_forked
    is_forked = True


def check_not_forked():
    """Raises `RuntimeError` in a process that was forked after a model had been made.

    Threads do not live on in it, and the backend would wait for them without end; but PyTorch with
    a single thread has none.
    """
    # A flag rather than a process's number, which `torch.compile` cannot ask for.
    if not is_forked or _has_one_thread():
        return
    raise RuntimeError(
        "A process that was forked after a model had been made cannot compute: the threads of "
        f"{keras.backend.backend()} are not in it. Received: a model in a forked process. Start it "
        "by multiprocessing.get_context('spawn') and hand it the model, which can be pickled. (On "
        "PyTorch `torch.set_num_threads(1)` in the process will do.) Threads may share a model."
    )


def _has_one_thread():
    if keras.backend.backend() != "torch":
        return False
    import torch

    return torch.get_num_threads() == 1
