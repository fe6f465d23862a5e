"""From which length on are local layers faster in blocks than by a mask over the square?

    KERAS_BACKEND=jax taskset -c 0 python benchmarks/local_attention.py

A ModernBERT with random weights computes the same rows in both ways, in turn, on one thread. Of
each the fastest time counts, in seconds of the processor, which other processes lengthen least. A
batch has the same number of tokens at each length. Prints a JSON line a length.
"""

import json
import time

import keras
import numpy as np
from absl import app, flags

import bert_keras
from bert_keras.engine import kernels as backends

FLAGS = flags.FLAGS
flags.DEFINE_integer("num_layers", 3, "Encoder layers, of which each third is global.")
flags.DEFINE_integer("hidden_dim", 256, "Width of the hidden states.")
flags.DEFINE_integer("num_heads", 4, "Attention heads.")
flags.DEFINE_integer("local_attention", 128, "Width of the window.")
flags.DEFINE_list("lengths", ["256", "512", "1024", "2048", "4096", "8192"], "Tokens of a row.")
flags.DEFINE_integer("tokens", 8192, "Tokens of a batch, and the longest row.")
flags.DEFINE_integer("rounds", 5, "Times each way is measured.")
flags.DEFINE_bool("train", False, "Measure a step of training instead of the outputs.")

# How many blocks there must be for blocks to be taken.
WAYS = {"square": 10**9, "blocks": 0}


def main(argv):
    for length in map(int, FLAGS.lengths):
        print(json.dumps(measured(length)), flush=True)


def measured(length):
    """Returns the processor's seconds of both ways, and how far their outputs are apart."""
    rng = np.random.default_rng(0)
    shape = (FLAGS.tokens // length, length)
    inputs = {
        "token_ids": rng.integers(1, 1000, shape).astype("int32"),
        "padding_mask": np.ones(shape, "int32"),
    }
    labels = rng.integers(0, 2, shape[0]).astype("int32")
    tasks = {way: make_task() for way in WAYS}
    seconds, outputs = {way: [] for way in WAYS}, {}
    for _ in range(1 + FLAGS.rounds):
        for way, task in tasks.items():
            backends.LEAST_BLOCKS[keras.backend.backend()] = WAYS[way]
            start = time.process_time()
            if FLAGS.train:
                outputs[way] = task.train_on_batch(inputs, labels)
            else:
                outputs[way] = task.predict(inputs, batch_size=shape[0], verbose=0)
            seconds[way].append(time.process_time() - start)
    # The first time is that of compiling.
    square, blocks = (min(seconds[way][1:]) for way in WAYS)
    return {
        "backend": keras.backend.backend(),
        "length": length,
        "square_s": round(square, 3),
        "blocks_s": round(blocks, 3),
        "times": round(square / blocks, 2),
        "difference": float(np.abs(np.subtract(*map(np.asarray, outputs.values()))).max()),
    }


def make_task():
    keras.utils.set_random_seed(0)
    backbone = bert_keras.ModernBertBackbone(
        vocabulary_size=1000,
        num_layers=FLAGS.num_layers,
        num_heads=FLAGS.num_heads,
        hidden_dim=FLAGS.hidden_dim,
        intermediate_dim=FLAGS.hidden_dim * 3 // 2,
        local_attention=FLAGS.local_attention,
        max_sequence_length=FLAGS.tokens,
    )
    return bert_keras.TextClassifier(backbone, pooling="mean")


if __name__ == "__main__":
    app.run(main)
