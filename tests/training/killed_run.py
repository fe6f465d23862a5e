"""Runs `bert-keras pretrain` in a process that kills itself. Used by test_checkpoint.py."""

import contextlib
import multiprocessing
import os
import signal

import keras
import numpy as np

from bert_keras.cli import pretrain
from bert_keras.training import training_checkpoint as checkpoint


def pretrain_until(where, step, printed, *flags):
    """Runs the command and writes what it prints to a file.

    It kills itself at a step, `batch` (in the middle of an epoch), `writing` (a checkpoint's file
    is half written) or `deleting` (both the new and the old checkpoint exist), or `never`.
    """
    if keras.backend.backend() == "torch":
        import torch

        torch.set_num_threads(1)  # Threads of the parent are not there.
    keras.utils.set_random_seed(step + 1)  # Nothing may depend on the numbers drawn before.
    pretrain.training.TrainingCheckpoint = killed_at(where, step)
    with open(printed, "w") as file, contextlib.redirect_stdout(file):
        pretrain.main(flags)


def in_a_process(*arguments):
    """Calls `pretrain_until` in a process of its own; returns its exit code."""
    # Imports take longer than a run. Other backends have threads, which a fork has not.
    context = multiprocessing.get_context("fork" if keras.backend.backend() == "torch" else "spawn")
    process = context.Process(target=pretrain_until, args=arguments)
    process.start()
    process.join()
    return process.exitcode


def kill_myself():
    os.kill(os.getpid(), signal.SIGKILL)


def killed_at(where, step):
    class Killed(checkpoint.TrainingCheckpoint):
        def on_train_batch_end(self, batch, logs=None):
            super().on_train_batch_end(batch, logs)
            if where == "batch" and self.step + batch + 1 == step:
                kill_myself()

        def save(self):
            if where == "writing" and self.step == step:
                np.savez = half_written
            super().save()

        def _delete(self, folder):
            if where == "deleting" and self.step == step:
                kill_myself()
            super()._delete(folder)

    return Killed


def half_written(file, savez=np.savez, **arrays):
    savez(file, **arrays)
    file.flush()
    os.truncate(file.fileno(), file.tell() // 2)
    kill_myself()
