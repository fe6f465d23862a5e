"""Trains on several devices. Run by test_distribution.py, in other processes and in its own.

KERAS_BACKEND=jax python tests/several_devices.py FILE

On PyTorch torchrun calls `main` in two processes. The first process writes the results to FILE,
`*.npz`, and saves the task next to it, `*.keras`.
"""

import os
import pathlib
import sys

TESTS = pathlib.Path(__file__).parent
sys.path[:0] = [str(TESTS / "tasks"), str(TESTS.parent)]

if __name__ == "__main__":  # Keras would import them for its plots and wrappers.
    sys.modules |= dict.fromkeys(("matplotlib", "sklearn"))
    if os.environ["KERAS_BACKEND"] != "tensorflow":
        sys.modules["tensorflow"] = None  # Keras would import it to save a file.

import keras
import numpy as np
from tiny import LETTERS, tiny_backbone, tiny_classifier

import bert_keras

# An odd number of texts, so that the last batch of each epoch is padded.
TEXTS = [" ".join(LETTERS[i % 8 : i % 8 + 1 + i % 3]) for i in range(13)]
LABELS = [text.count("a") for text in TEXTS]


def trained():
    """Returns a task after a fit of 8 steps, and the results, a dict of arrays."""
    keras.utils.set_random_seed(1)
    task = tiny_classifier(tiny_backbone(dropout=0.0))
    task.compile(learning_rate=1e-2, warmup=0)
    weights = np.arange(13) % 4 + 1.0  # The two halves of a batch have different weights.
    history = task.fit(TEXTS, LABELS, sample_weight=weights, batch_size=4, epochs=2, verbose=0)
    scores = task.evaluate(TEXTS, LABELS, batch_size=4, verbose=0, return_dict=True)
    return task, {
        # The loss is Keras's mean over batches, in which rows of padding count.
        "accuracies": np.array([*history.history["accuracy"], scores["accuracy"]]),
        "logits_of_one": task.predict(TEXTS[:1], verbose=0),
        "probabilities": np.array(list(task.classify(TEXTS[0])["probabilities"].values())),
    }


def shard_weights():
    """On JAX two pairs of devices share each batch, and the devices of a pair the weights."""
    mesh = keras.distribution.DeviceMesh((2, 2), ("batch", "model"))
    layouts = bert_keras.distribution.layout_map(tiny_backbone(), mesh)
    parallel = keras.distribution.ModelParallel(layout_map=layouts, batch_dim_name="batch")
    keras.distribution.set_distribution(parallel)


def main(path):
    bert_keras.distribution.initialize(4 if keras.backend.backend() == "jax" else 2)
    if keras.backend.backend() == "jax":
        shard_weights()
    task, found = trained()
    if bert_keras.distribution.process()[0] == 0:
        task.save(pathlib.Path(path).with_suffix(".keras"))
        np.savez(path, **found)


if __name__ == "__main__":
    main(sys.argv[1])
