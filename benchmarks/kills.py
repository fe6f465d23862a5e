"""What is left of files whose writer is killed, is read beside, or meets a full disk.

    KERAS_BACKEND=torch python benchmarks/kills.py

Model 1 is saved, and model 2 over it: all its weights are 2, and its labels are called so. What is
then at the place counts as old (all of model 1), new (all of model 2), parts (of both), or none
(nothing that loads). The process that saves is

- killed by SIGKILL at a random moment;
- left in peace, while another loads what it saves again and again;
- kept from writing files above a random size, which ends like a full disk. Counted as `silent` and
  `crash` is what left the old model, but without an `OSError` that names the path.
"""

import collections
import functools
import json
import multiprocessing
import os
import pathlib
import random
import resource
import signal
import tempfile
import time

import keras
import numpy as np
from absl import app, flags

import bert_keras
from bert_keras.datasets.shards import open_shard, write_shard
from bert_keras.files import of_one_state
from bert_keras.presets.safetensors_io import read_safetensors

FLAGS = flags.FLAGS
flags.DEFINE_integer("times", 60, "Of each kind and each way.", 1)
flags.DEFINE_multi_string("kind", [], "Only these kinds.")
flags.DEFINE_integer("hidden_dim", 128, "Width of the model.", 8)

START = multiprocessing.get_context("fork")  # A warm process, so that a kill meets the saving.


def model_of(number):
    """Returns a classifier that says everywhere which one it is."""
    tokenizer = bert_keras.WordPieceTokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a"])
    sizes = {"num_layers": 2, "num_heads": 2, "intermediate_dim": 4 * FLAGS.hidden_dim}
    model = bert_keras.TextClassifier(
        bert_keras.BertBackbone(6, hidden_dim=FLAGS.hidden_dim, **sizes),
        preprocessor=bert_keras.TextPreprocessor(tokenizer, max_length=16),
        label_names=[f"no {number}", f"yes {number}"],
    )
    fill(model, number)
    return model


def fill(model, number):
    for weight in model.weights:
        weight.assign(np.full(weight.shape, number, "float32"))


def with_adapters(model):
    plain = model_of(0).get_config()
    config = {**plain, "label_names": model.label_names, "lora_rank": 4}
    adapted = bert_keras.TextClassifier.from_config(config)
    fill(adapted, numbers_of(model)[0])
    return adapted


def numbers_of(model):
    """Returns the numbers that a model's weights and labels say."""
    weights = [array for array in model.get_weights() if array.dtype == "float32"]
    said = {float(number) for array in weights for number in (array.min(), array.max())}
    return [*said, *(float(name.split()[1]) for name in model.label_names)]


@of_one_state
def numbers_in_adapters(_, path):
    """Reads like `load_adapters`, which takes those of equal labels only."""
    tensors = read_safetensors(path)
    names = json.loads(tensors.metadata["bert_keras_adapters"])["label_names"]
    return [*(tensors[name].max() for name in tensors), *(float(name.split()[1]) for name in names)]


def save_shard(model, path):
    write_shard(path, {"token_ids": np.full(10**6, numbers_of(model)[0], "int32")})


def numbers_of_weights(path):
    model = model_of(3)
    model.load_weights(path)
    return numbers_of(model)[:-2]


KINDS = {
    "x.keras": (lambda model, path: model.save(path), keras.models.load_model),
    "x.weights.h5": (lambda model, path: model.save_weights(path), numbers_of_weights),
    "preset": (lambda m, path: m.save_to_preset(path), bert_keras.TextClassifier.from_preset),
    "huggingface": (
        lambda model, path: model.export_to_huggingface(path),
        bert_keras.TextClassifier.from_preset,
    ),
    "adapters": (
        lambda model, path: model.save_adapters(path),
        functools.partial(numbers_in_adapters, None),
    ),
    "shard": (save_shard, lambda path: np.unique(open_shard(path)[0]["token_ids"])),
}


def found_at(path, load):
    """Returns which model is there: "old", "new", "parts" or "none"."""
    try:
        found = load(path)
        found = set(numbers_of(found) if isinstance(found, keras.Model) else found)
    except Exception:
        return "none"
    return {(1.0,): "old", (2.0,): "new"}.get(tuple(found), "parts")


def killed(save, load, models, path):
    """Yields what is left by a kill."""
    durations = []
    for _ in range(FLAGS.times + 3):
        save(models[0], path)
        process = START.Process(target=save, args=(models[1], path))
        start = time.perf_counter()
        process.start()
        if len(durations) < 3:
            process.join()
            durations.append(time.perf_counter() - start)
            continue
        time.sleep(random.uniform(0, 1.2 * max(durations)))
        process.kill()
        process.join()
        yield found_at(path, load)
    save(models[0], path)
    yield f"leftovers {len(list(path.parent.glob('.*')))}"


def read_beside(save, load, models, path):
    """Yields what a reader finds while a writer is at work."""

    reader = os.getpid()

    def write():
        while os.getppid() == reader:
            save(models[1], path)
            save(models[0], path)

    save(models[0], path)
    process = START.Process(target=write)
    process.start()
    for _ in range(FLAGS.times):
        time.sleep(random.uniform(0, 0.1))
        yield found_at(path, load)
    process.kill()
    process.join()


def kept_short(save, load, models, path):
    """Yields what is left where files may not grow, see the module."""

    def write(limit):
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
        try:
            save(models[1], path)
        except OSError as error:
            os._exit(3 if error.filename == str(path) and "still there" in str(error) else 4)

    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    save(models[0], path)
    files = [path, *path.glob("*")] if path.is_dir() else [path]
    largest = max(file.stat().st_size for file in files if file.is_file())
    for _ in range(FLAGS.times):
        save(models[0], path)
        process = START.Process(target=write, args=(random.randrange(largest),))
        process.start()
        process.join()
        found = found_at(path, load)
        if found == "old" and process.exitcode != 3:
            found = "crash" if process.exitcode < 0 else "silent"
        yield found


def main(_):
    random.seed(0)
    plain = [model_of(1), model_of(2)]
    for kind in FLAGS.kind or KINDS:
        save, load = KINDS[kind]
        models = [*map(with_adapters, plain)] if kind == "adapters" else plain
        for way in (killed, read_beside, kept_short):
            with tempfile.TemporaryDirectory() as folder:
                counts = collections.Counter(way(save, load, models, pathlib.Path(folder, kind)))
            print(f"{kind:12} {way.__name__:11}", *(f"{k} {v}" for k, v in sorted(counts.items())))


if __name__ == "__main__":
    app.run(main)
