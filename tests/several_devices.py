"""Trains on several devices: run by test_distribution.py, in processes of its own and in its own.

KERAS_BACKEND=jax python tests/several_devices.py FILE

On PyTorch it is started by torchrun. The first process writes what came of it to FILE, `*.npz`,
and saves the task beside it, `*.keras`.
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
    """Returns a task after a fit of 8 steps, and what came of it, a dict of arrays."""
    keras.utils.set_random_seed(1)
    task = tiny_classifier(tiny_backbone(dropout=0.0))
    task.compile(learning_rate=1e-2, warmup=0)
    weights = np.arange(13) % 4 + 1.0  # So that the halves of a batch do not weigh the same.
    history = task.fit(TEXTS, LABELS, sample_weight=weights, batch_size=4, epochs=2, verbose=0)
    # Read by the next `fit` too, from variables of which each device has a copy.
    task.optimizer.freeze("embeddings")
    frozen = task.optimizer.frozen_paths
    task.optimizer.unfreeze("embeddings")
    scores = task.evaluate(TEXTS, LABELS, batch_size=4, verbose=0, return_dict=True)
    return task, {
        # The loss is Keras's mean over batches, in which rows that fill one up count.
        "accuracies": np.array([*history.history["accuracy"], scores["accuracy"]]),
        "frozen": np.array([len(frozen), len(task.optimizer.frozen_paths)]),
        "logits_of_one": task.predict(TEXTS[:1], verbose=0),
        "probabilities": np.array(list(task.classify(TEXTS[0])["probabilities"].values())),
    }


def cut_weights():
    """Lets JAX share batches among two pairs of devices, and weights within each pair."""
    mesh = keras.distribution.DeviceMesh((2, 2), ("batch", "model"))
    layouts = bert_keras.distribution.layout_map(tiny_backbone(), mesh)
    parallel = keras.distribution.ModelParallel(layout_map=layouts, batch_dim_name="batch")
    keras.distribution.set_distribution(parallel)


if __name__ == "__main__":
    bert_keras.distribution.initialize(4 if keras.backend.backend() == "jax" else 2)
    if keras.backend.backend() == "jax":
        cut_weights()
    task, found = trained()
    if bert_keras.distribution.process()[0] == 0:
        task.save(pathlib.Path(sys.argv[1]).with_suffix(".keras"))
        np.savez(sys.argv[1], **found)
