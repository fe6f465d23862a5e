"""Trains on two devices: run by test_distribution.py in processes of its own, or in that of a test.

KERAS_BACKEND=jax python tests/several_devices.py FILE

On PyTorch it is started by torchrun. The first process writes what came of it to FILE, `*.npz`.
"""

import pathlib
import sys

sys.path[:0] = [
    str(pathlib.Path(__file__).parent / "tasks"),
    str(pathlib.Path(__file__).parents[1]),
]

import keras
import numpy as np
from tiny import LETTERS, tiny_backbone, tiny_classifier

import bert_keras

# An odd number of texts, so that the last batch of each epoch must be filled up.
TEXTS = [" ".join(LETTERS[i % 8 : i % 8 + 1 + i % 3]) for i in range(13)]
LABELS = [text.count("a") for text in TEXTS]


def trained():
    """Returns what a fit of 8 steps leaves, the same whatever the devices: a dict of arrays."""
    keras.utils.set_random_seed(1)
    task = tiny_classifier(tiny_backbone(dropout=0.0))
    task.compile(learning_rate=1e-2, warmup=0)
    weights = np.arange(13) % 4 + 1.0  # So that the halves of a batch do not weigh the same.
    history = task.fit(TEXTS, LABELS, sample_weight=weights, batch_size=4, epochs=2, verbose=0)
    scores = task.evaluate(TEXTS, LABELS, batch_size=4, verbose=0, return_dict=True)
    return {
        "weights": np.concatenate([keras.ops.convert_to_numpy(w).ravel() for w in task.weights]),
        "history": np.concatenate([history.history[name] for name in ("loss", "accuracy")]),
        "accuracy": np.array(scores["accuracy"]),
        "logits_of_one": task.predict(TEXTS[:1], verbose=0),
        "probabilities": np.array(list(task.classify(TEXTS[0])["probabilities"].values())),
    }


if __name__ == "__main__":
    bert_keras.distribution.initialize(2)
    found = trained()
    if bert_keras.distribution.process()[0] == 0:
        np.savez(sys.argv[1], **found)
