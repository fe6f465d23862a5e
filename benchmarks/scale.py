"""A cost model of pre-training: the tables of docs/design/scale.md, and what it is held against.

    python benchmarks/scale.py
    KERAS_BACKEND=torch python benchmarks/scale.py --measure memory --dtype mixed_bfloat16
    KERAS_BACKEND=torch unshare -n \\
        sh -c 'ip link set lo up; python benchmarks/scale.py --measure wire'
    KERAS_BACKEND=torch python benchmarks/scale.py --measure examples --vocabulary vocab.txt \\
        --input 'books/*'
"""

import glob
import json
import os
import pathlib
import resource
import subprocess
import sys
import tempfile
import time

import numpy as np
from absl import app, flags

FLAGS = flags.FLAGS
flags.DEFINE_enum("measure", None, ["memory", "wire", "examples", "run"], "What, not the tables.")
flags.DEFINE_integer("layers", 2, "Of `run`, a training in this process, layers of 512.")
flags.DEFINE_integer("steps", 2, "Of `run`: its steps.")
flags.DEFINE_string("dtype", "float32", "Policy of the model.")
flags.DEFINE_string("input", None, "Text files for `examples`, a pattern.")
flags.DEFINE_string("vocabulary", None, "vocab.txt for `examples`.")


def main(argv):
    ways = {
        "memory": measure_memory,
        "wire": measure_wire,
        "examples": measure_examples,
        "run": run,
    }
    print(json.dumps(ways[FLAGS.measure]()) if FLAGS.measure else "\n".join(tables()))


# What is measured


def measure_memory():
    """Returns bytes of memory and of a checkpoint a parameter, of what 8 layers add to 2."""
    small, large = (in_processes(1, layers, 3) for layers in (2, 10))
    more = {name: large[name] - small[name] for name in small}
    return {name: value / more["parameters"] for name, value in more.items()}


def measure_wire():
    """Returns bytes that each of two processes of torchrun sends a step, and the formula's."""
    sent = []
    for steps in (2, 12):
        before = loopback_bytes()
        found = in_processes(2, 4, steps)
        sent.append(loopback_bytes() - before)
    # Two fits, of ten steps more each.
    return {"sent": (sent[1] - sent[0]) / 20 / 2, "formula": wire_bytes(found["parameters"], 2)}


def loopback_bytes():
    line = next(x for x in pathlib.Path("/proc/net/dev").read_text().splitlines() if "lo:" in x)
    return int(line.split()[1])


def in_processes(count, layers, steps):
    """Returns what `run` prints in the first of some processes."""
    options = ["--measure=run", f"--layers={layers}", f"--steps={steps}", f"--dtype={FLAGS.dtype}"]
    launcher = ["-m", "torch.distributed.run", "--standalone", f"--nproc_per_node={count}"]
    command = [sys.executable, *(launcher if count > 1 else []), __file__, *options]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return next(json.loads(line) for line in done.stdout.splitlines() if line[:2] == '{"')


def run():
    """Trains here; returns the parameters, the most memory, and the bytes of a checkpoint."""
    import bert_keras

    bert_keras.distribution.initialize() if bert_keras.distribution.is_launched() else None
    sizes = {"num_layers": FLAGS.layers, "num_heads": 8, "hidden_dim": 512}
    backbone = bert_keras.BertBackbone(
        1000, **sizes, intermediate_dim=2048, max_sequence_length=16, dtype=FLAGS.dtype
    )
    model = bert_keras.TextClassifier(backbone)
    model.compile(bert_keras.AdamW(1e-4))
    inputs, labels = {"token_ids": np.ones((2 * FLAGS.steps, 8), "int32")}, [0, 1] * FLAGS.steps
    found = {"parameters": model.count_params()}
    with tempfile.TemporaryDirectory() as folder:
        saved = bert_keras.training.TrainingCheckpoint(folder, every=2 * FLAGS.steps)
        for name, callbacks in (("peak", []), ("peak_with_checkpoint", [saved])):
            model.fit(inputs, np.array(labels), batch_size=2, verbose=0, callbacks=callbacks)
            found[name] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        found["checkpoint"] = sum(x.stat().st_size for x in pathlib.Path(folder).rglob("*.npz"))
    return found


def measure_examples():
    """Returns what one core makes of text in a second of its own time, and reads of it again."""
    from bert_keras import WordPieceTokenizer
    from bert_keras.preprocessing import Masking, PretrainingBatches, create_pretraining_data

    files, found = sorted(glob.glob(FLAGS.input)), {}
    with tempfile.TemporaryDirectory() as folder:
        started = time.process_time()
        manifest = create_pretraining_data(
            files,
            WordPieceTokenizer.load(FLAGS.vocabulary),
            folder,
            documents="file",
            num_workers=1,
        )
        found["bytes_a_second"] = manifest["counts"]["bytes"] / (time.process_time() - started)
        found["bytes_a_token"] = manifest["counts"]["bytes"] / manifest["counts"]["tokens"]
        shards = sum(os.path.getsize(path) for path in glob.glob(f"{folder}/examples-*"))
        found["shard_bytes_a_token"] = shards / manifest["statistics"]["example_tokens"]
        batches = PretrainingBatches(folder, batch_size=32, masking=Masking())
        started = time.process_time()
        rows = [batches[number][0]["padding_mask"].sum() for number in range(200)]
        found["tokens_read_a_second"] = int(sum(rows)) / (time.process_time() - started)
    return found


def wire_bytes(parameters, devices, bytes_each=4):
    """Returns what each device sends a step: a ring adds up and hands round all gradients."""
    return 2 * (devices - 1) / devices * bytes_each * parameters


def tables():
    return []


if __name__ == "__main__":
    app.run(main)
