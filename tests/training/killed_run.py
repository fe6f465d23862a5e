"""Runs `bert-keras pretrain` and kills itself. Run by test_checkpoint.py in another process.

python tests/training/killed_run.py RUNS

RUNS is a JSON list of runs, one after the other: [WHERE, STEP, *flags of pretrain]. WHERE is
`batch` (in the middle of an epoch), `writing` (a checkpoint's file is half written), `deleting`
(both the new and the old checkpoint exist) or `never`.
"""

import json
import os
import pathlib
import signal
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))
if os.environ["KERAS_BACKEND"] != "tensorflow":
    sys.modules["tensorflow"] = None  # Keras would import it to save a preset.

import numpy as np

from bert_keras.cli import pretrain
from bert_keras.training import training_checkpoint as checkpoint


def kill_myself():
    os.kill(os.getpid(), signal.SIGKILL)


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


def half_written(file, savez=np.savez, **arrays):
    savez(file, **arrays)
    file.flush()
    os.truncate(file.fileno(), file.tell() // 2)
    kill_myself()


pretrain.training.TrainingCheckpoint = Killed
for run in json.loads(sys.argv[1]):
    where, step, *flags = run
    pretrain.main(flags)
