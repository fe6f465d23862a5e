"""A process forked off a model's own: where it would wait for ever, it is told so."""

import os

import keras

_process = None


def note_process():
    """Notes, when a model is made, in which process the backend's threads are."""
    global _process
    _process = _process or os.getpid()


def check_not_forked():
    """Raises `RuntimeError` in a process that was forked after a model had been made.

    Threads do not live on in it, and the backend would wait for them without end; but PyTorch with
    a single thread has none.
    """
    if _process in (None, os.getpid()) or _has_one_thread():
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
