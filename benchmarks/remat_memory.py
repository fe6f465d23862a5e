"""Measure the memory and the time of a training step with and without `remat=True`.

    KERAS_BACKEND=jax python benchmarks/remat_memory.py

Each setting trains in a process of its own, since a process never gives back its peak. A third
process trains on a batch of one row, two tokens long: what the backend, the weights and the
optimizer take. What a setting adds to that is the memory of its activations.
"""

import json
import os
import resource
import subprocess
import sys
import time

from absl import app, flags

FLAGS = flags.FLAGS
flags.DEFINE_integer("num_layers", 12, "Encoder layers.")
flags.DEFINE_integer("hidden_dim", 256, "Width of the hidden states.")
flags.DEFINE_integer("num_heads", 4, "Attention heads.")
flags.DEFINE_integer("batch_size", 16, "Rows of a batch.")
flags.DEFINE_integer("seq_len", 256, "Tokens of a row.")
flags.DEFINE_integer("steps", 3, "Steps, of which the fastest counts.")
flags.DEFINE_enum("jit_compile", "auto", ["auto", "true", "false"], "Whether XLA compiles.")
flags.DEFINE_enum("measure", None, ["baseline", "kept", "remat"], "One setting, in this process.")


def main(argv):
    if FLAGS.measure:
        print(json.dumps(measure(FLAGS.measure)), flush=True)
        return
    results = {name: in_own_process(name) for name in ("baseline", "kept", "remat")}
    baseline, kept, remat = (results[name]["peak_mb"] for name in results)
    results["share_of_activations"] = round((remat - baseline) / (kept - baseline), 3)
    results["share_of_time"] = round(results["remat"]["step_s"] / results["kept"]["step_s"], 2)
    print(json.dumps(results), flush=True)


def in_own_process(name):
    command = [sys.executable, *sys.argv, f"--measure={name}"]
    output = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    return json.loads(output.splitlines()[-1])


def measure(name):
    """Returns the peak memory of this process and the time of a step, after training."""
    import keras
    import numpy as np

    import bert_keras

    backbone = bert_keras.BertBackbone(
        vocabulary_size=1000,
        num_layers=FLAGS.num_layers,
        num_heads=FLAGS.num_heads,
        hidden_dim=FLAGS.hidden_dim,
        intermediate_dim=4 * FLAGS.hidden_dim,
        remat=name == "remat",
    )
    model = bert_keras.TextClassifier(backbone)
    jit_compile = {"auto": "auto", "true": True, "false": False}[FLAGS.jit_compile]
    model.compile(bert_keras.AdamW(1e-4), jit_compile=jit_compile)
    shape = (1, 2) if name == "baseline" else (FLAGS.batch_size, FLAGS.seq_len)
    rng = np.random.default_rng(0)
    inputs = {"token_ids": rng.integers(1, 1000, shape).astype("int32")}
    labels = rng.integers(0, 2, shape[0]).astype("int32")
    seconds = []
    for _ in range(FLAGS.steps):
        start = time.perf_counter()
        model.train_on_batch(inputs, labels)
        seconds.append(time.perf_counter() - start)
    # Linux counts in KiB, macOS in bytes.
    unit = 1 if sys.platform == "darwin" else 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
    return {
        "backend": keras.backend.backend(),
        "peak_mb": round(peak / 1e6),
        "step_s": round(min(seconds), 2),
        "threads": os.cpu_count(),
    }


if __name__ == "__main__":
    app.run(main)
