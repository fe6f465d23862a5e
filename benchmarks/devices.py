"""Hold `fit` on several devices against `fit` on one: the same texts, the same steps.

    python benchmarks/devices.py
    python benchmarks/devices.py --only torchrun

Each row of the table trains a small classifier on raw texts, of which each batch has as many as its
name says, for 20 steps without dropout; on a machine without accelerators the processor counts as
several devices. Printed is the largest difference of a logit and of a weight to one device's. Every
way runs in processes of its own.
"""

import json
import os
import pathlib
import socket
import subprocess
import sys
import tempfile

import numpy as np
from absl import app, flags

FLAGS = flags.FLAGS
flags.DEFINE_string("only", "", "Part of the names of the ways to run.")
flags.DEFINE_integer("steps", 20, "Batches to train on.", 2)
flags.DEFINE_enum("task", "classify", ["classify", "masked"], "What is trained.")

# Way -> backend, processes, devices of each process.
WAYS = {
    "jax, one device": ("jax", 1, 1),
    "jax, DataParallel over 2": ("jax", 1, 2),
    "jax, DataParallel over 8": ("jax", 1, 8),
    "jax, ModelParallel (1, 2)": ("jax", 1, 2),
    "jax, 2 processes": ("jax", 2, 1),
    "torch, one device": ("torch", 1, 1),
    "torch, torchrun with 2": ("torch", 2, 1),
    "tensorflow, one device": ("tensorflow", 1, 1),
    "tensorflow, MirroredStrategy over 2": ("tensorflow", 1, 2),
}
LETTERS = "abcdefgh"


def main(argv):
    """Runs the ways, or in a process that one of them started, trains."""
    if len(argv) > 1:
        train(argv[1], argv[2])
        return
    folder = pathlib.Path(tempfile.mkdtemp())
    alone = {}
    print(f"| way | largest difference of a logit | of a weight, of {FLAGS.steps} steps |")
    print("|---|---|---|")
    for way, (backend, processes, devices) in WAYS.items():
        is_alone = processes * devices == 1
        wanted = [name for name in WAYS if WAYS[name][0] == backend and FLAGS.only in name]
        if way not in wanted and not (is_alone and wanted):
            continue
        run(way, folder)
        found = dict(np.load(folder / "first.npz"))
        if is_alone:
            alone[backend] = found
        differences = [np.abs(found[k] - alone[backend][k]).max() for k in ("logits", "weights")]
        print(f"| {way} | {differences[0]:.1e} | {differences[1]:.1e} |", flush=True)


def run(way, folder):
    """Trains in processes of a way; the first of them writes `first.npz`."""
    backend, processes, _ = WAYS[way]
    with socket.socket() as free:
        free.bind(("localhost", 0))
        address = f"localhost:{free.getsockname()[1]}"
    environment = {
        **os.environ,
        "KERAS_BACKEND": backend,
        "TF_CPP_MIN_LOG_LEVEL": "2",
        "PYTHONPATH": str(pathlib.Path(__file__).resolve().parents[1]),
    }
    program = [__file__, f"--steps={FLAGS.steps}", f"--task={FLAGS.task}", way, str(folder)]
    if backend == "torch" and processes > 1:
        launcher = ["-m", "torch.distributed.run", "--standalone", f"--nproc_per_node={processes}"]
        subprocess.run([sys.executable, *launcher, *program], env=environment, check=True)
        return
    started = []
    for number in range(processes):
        own = dict(environment)
        if processes > 1:
            own |= {
                "KERAS_DISTRIBUTION_JOB_ADDRESSES": address,
                "KERAS_DISTRIBUTION_NUM_PROCESSES": str(processes),
                "KERAS_DISTRIBUTION_PROCESS_ID": str(number),
            }
        started.append(subprocess.Popen([sys.executable, *program], env=own))
    if any(process.wait() for process in started):
        raise RuntimeError(f"{way}: a process failed.")


def train(way, folder):
    """Trains on the devices of a way, and writes what came of it."""
    import keras

    import bert_keras

    _, processes, devices = WAYS[way]
    keras.utils.set_random_seed(0)
    if processes * devices > 1:
        bert_keras.distribution.initialize(processes * devices)
    if "ModelParallel" in way:
        shape = json.loads(way.split("ModelParallel ")[1].replace("(", "[").replace(")", "]"))
        mesh = keras.distribution.DeviceMesh(shape, ["batch", "model"])
        layouts = bert_keras.distribution.layout_map(make_task().backbone, mesh)
        parallel = keras.distribution.ModelParallel(layout_map=layouts, batch_dim_name="batch")
        keras.distribution.set_distribution(parallel)
        keras.utils.set_random_seed(0)
    task = make_task()
    # Rows of many lengths, and a last batch that no number of devices can share.
    rng = np.random.default_rng(0)
    texts = [" ".join(rng.choice(list(LETTERS), n)) for n in rng.integers(1, 15, 75)]
    labels = None if FLAGS.task == "masked" else [text.count("a") % 2 for text in texts]
    task.compile(learning_rate=1e-3)
    task.fit(texts, labels, batch_size=16, epochs=FLAGS.steps // 5, verbose=0)
    if FLAGS.task == "masked":
        logits = np.concatenate([np.ravel(x) for x in task.score(texts[:5])])
    else:
        logits = task.predict(texts[:5], verbose=0)
    if bert_keras.distribution.process()[0] == 0:
        weights = np.concatenate([keras.ops.convert_to_numpy(w).ravel() for w in task.weights])
        np.savez(pathlib.Path(folder) / "first.npz", logits=logits, weights=weights)


def make_task():
    """Returns a small task for texts of letters."""
    import bert_keras

    roles = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    tokenizer = bert_keras.WordPieceTokenizer([*roles, *LETTERS, "##a", "##b", "##c"])
    sizes = {"num_layers": 2, "num_heads": 4, "hidden_dim": 32, "intermediate_dim": 64}
    backbone = bert_keras.BertBackbone(16, **sizes, max_sequence_length=16, dropout=0.0)
    preprocessor = bert_keras.TextPreprocessor(tokenizer, max_length=16)
    if FLAGS.task == "masked":
        return bert_keras.MaskedLM(backbone, preprocessor=preprocessor)
    return bert_keras.TextClassifier(backbone, preprocessor=preprocessor)


if __name__ == "__main__":
    app.run(main)
