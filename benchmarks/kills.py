"""What a file holds if its writer is killed, if it is read meanwhile, or if the disk is full.

    mkdir full && mount -t tmpfs -o size=16m tmpfs full
    KERAS_BACKEND=torch python benchmarks/kills.py --full_dir full

Model 1 is saved, then model 2 over it. All weights of model 2 are 2, and its labels contain a 2.
What the path holds afterwards counts as old (all of model 1), new (all of model 2), parts (some of
both) or none (nothing that loads). The process that saves is

- killed by SIGKILL at a random moment;
- left alone, while another process loads the file again and again;
- kept from writing files above a random size, which has the effect of a full disk;
- given a random amount of free space, on the small disk that `--full_dir` names.

In the last two cases `silent` and `crash` count the runs that left the old model without an
`OSError` that names the path and says what is there. Each backend exports the programs that it
writes itself: PyTorch ONNX, the others a SavedModel.
"""

import collections
import json
import multiprocessing
import os
import pathlib
import random
import resource
import shutil
import signal
import tempfile
import time

import keras
import numpy as np
from absl import app, flags

import bert_keras
from bert_keras.cli.text_rows import answers_to
from bert_keras.corpora.shards import read_shard, write_shard

FLAGS = flags.FLAGS
flags.DEFINE_integer("times", 60, "Of each kind and each way.", 1)
flags.DEFINE_multi_string("kind", [], "Only these kinds.")
flags.DEFINE_integer("hidden_dim", 128, "Width of the model.", 8)
flags.DEFINE_string("full_dir", None, "A mounted disk with room for two copies of a model.")

# Processes are warm, so that a kill hits the saving. Each makes its own model and this process only
# reads: TensorFlow and JAX cannot compute in a process forked from one in which they computed.
START = multiprocessing.get_context("fork")


def model_of(number):
    """Returns a classifier whose weights and labels all contain its number."""
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


def numbers_of(model):
    """Returns the numbers in a model's weights and labels."""
    weights = [array for array in model.get_weights() if array.dtype == "float32"]
    said = {float(number) for array in weights for number in (array.min(), array.max())}
    return [*said, *(float(name.split()[1]) for name in model.label_names)]


def save_shard(model, path):
    write_shard(path, {"token_ids": np.full(10**6, numbers_of(model)[0], "int32")})


def numbers_of_weights(path):
    model = model_of(3)
    model.load_weights(path)
    return numbers_of(model)[:-2]


def save_checkpoint(model, folder):
    """Saves as the callback does in a run, with one more step for each model."""
    model.optimizer.build(model.trainable_variables)
    for variable in model.optimizer.variables:
        variable.assign(np.zeros(variable.shape, variable.dtype))
    checkpoint = bert_keras.training.TrainingCheckpoint(folder, keep=1)
    checkpoint.set_model(model)
    checkpoint.step = int(numbers_of(model)[0])
    for path in checkpoint._step_folders():
        if checkpoint.step == 1:  # The old model is saved again after the new one.
            shutil.rmtree(path)
    checkpoint.save()


def numbers_in_checkpoint(folder):
    model = model_of(3)
    bert_keras.training.TrainingCheckpoint(folder).restore(model)
    return numbers_of(model)[:-2]


def save_answers(model, path):
    """Saves as `bert-keras classify --output` does; the recipes write their files the same way."""
    with answers_to(str(path), "jsonl") as write:
        for _ in range(10**5):
            write(model.label_names, [], {})


def numbers_in_answers(path):
    with open(path) as file:
        names = {name for line in file for name in json.loads(line)}
    return [float(name.split()[1]) for name in names]


def numbers_in_onnx(path):
    import onnx

    return numbers_in_matrices(map(onnx.numpy_helper.to_array, onnx.load(path).graph.initializer))


def numbers_in_openvino(path):
    import openvino

    nodes = openvino.Core().read_model(path).get_ops()
    return numbers_in_matrices(x.data for x in nodes if x.get_type_name() == "Constant")


def numbers_in_saved_model(path):
    import tensorflow as tf

    variables = tf.train.load_checkpoint(str(path / "variables" / "variables"))
    shapes = variables.get_variable_to_shape_map().items()
    return numbers_in_matrices(variables.get_tensor(name) for name, shape in shapes if len(shape))


def numbers_in_matrices(constants):
    """Returns the numbers in the float32 matrices of a program: other constants are no weights."""
    matrices = [x for x in constants if x.dtype == "float32" and x.ndim == 2]
    return {float(number) for x in matrices for number in (x.min(), x.max())}


def exported(format):
    return lambda model, path: model.export(path, format, verbose=False)


FROM_PRESET = bert_keras.TextClassifier.from_preset
# Kind of file -> how it is saved, and how a model or the numbers in it are read.
KINDS = {
    "x.keras": (lambda model, path: model.save(path), keras.models.load_model),
    "x.weights.h5": (lambda model, path: model.save_weights(path), numbers_of_weights),
    "preset": (lambda model, path: model.save_to_preset(path), FROM_PRESET),
    "huggingface": (lambda model, path: model.export_to_huggingface(path), FROM_PRESET),
    "shard": (save_shard, lambda path: np.unique(read_shard(path)["token_ids"])),
    "checkpoint": (save_checkpoint, numbers_in_checkpoint),
    "answers.jsonl": (save_answers, numbers_in_answers),
}
if keras.backend.backend() == "torch":
    KINDS["x.onnx"] = exported("onnx"), numbers_in_onnx
    KINDS["x.xml"] = exported("openvino"), numbers_in_openvino
else:
    KINDS["saved_model"] = exported("tf_saved_model"), numbers_in_saved_model


def found_at(path, load):
    """Returns which model is there: "old", "new", "parts" or "none"."""
    try:
        found = load(path)
        found = set(numbers_of(found) if isinstance(found, keras.Model) else found)
    except Exception:
        return "none"
    return {(1.0,): "old", (2.0,): "new"}.get(tuple(found), "parts")


def begun(work, *numbers):
    """Returns a process that has made its models, and a function that starts `work` on them."""
    is_ready, may_go_on = START.Event(), START.Event()

    def run():
        models = [model_of(number) for number in numbers]
        is_ready.set()
        may_go_on.wait()
        work(*models)

    process = START.Process(target=run)
    process.start()
    if not is_ready.wait(120):
        raise RuntimeError("A process did not make its model within 120 s.")
    return process, may_go_on.set


def save_old(save, path):
    """Saves model 1 and returns the seconds it took."""
    process, go_on = begun(lambda model: save(model, path), 1)
    started = time.perf_counter()
    go_on()
    process.join()
    if process.exitcode:
        raise RuntimeError(f"The old model was not saved: exit code {process.exitcode}.")
    return time.perf_counter() - started


def killed(save, load, path):
    """Yields what is left by a kill."""
    durations, found = [], None
    for _ in range(FLAGS.times + 3):
        if found != "old":
            save_old(save, path)
        process, go_on = begun(lambda model: save(model, path), 2)
        start = time.perf_counter()
        go_on()
        if len(durations) < 3:
            process.join()
            durations.append(time.perf_counter() - start)
            continue
        time.sleep(random.uniform(0, 1.2 * max(durations)))
        process.kill()
        process.join()
        found = found_at(path, load)
        yield found
    save_old(save, path)
    yield f"leftovers {len(list(path.parent.glob('.*')))}"


def read_beside(save, load, path):
    """Yields what a reader finds while a writer is at work."""

    reader = os.getpid()

    def write(old, new):
        while os.getppid() == reader:
            save(new, path)
            save(old, path)

    seconds = save_old(save, path)
    process, go_on = begun(write, 1, 2)
    go_on()
    for _ in range(FLAGS.times):
        time.sleep(random.uniform(0, max(0.1, seconds / 2)))
        yield found_at(path, load)
    process.kill()
    process.join()


def kept_short(save, load, path):
    """Yields what is left where files may not grow, see the module."""

    def limit(share, size):
        most = int(share * max(file.stat().st_size for file in files_of(path)))
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))

    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    yield from refused(save, load, path, limit)


def on_a_full_disk(save, load, path):
    """Yields what is left where the disk has a random rest, see the module."""
    path = pathlib.Path(FLAGS.full_dir, path.name)
    filler = path.with_name("filler")

    def limit(share, size):
        free = os.statvfs(FLAGS.full_dir)
        rest = int(free.f_bavail * free.f_bsize - share * size)
        os.posix_fallocate(os.open(filler, os.O_CREAT | os.O_WRONLY), 0, max(rest, 1))

    yield from refused(save, load, path, limit, filler)
    for left in path.parent.iterdir():
        shutil.rmtree(left) if left.is_dir() else left.unlink()


def files_of(path):
    return [file for file in (path, *path.rglob("*")) if file.is_file()]


def refused(save, load, path, limit, filler=None):
    """Yields what is left by a process that `limit(share, size)` keeps from writing all."""

    def write(model):
        limit(share, size)
        try:
            save(model, path)
        except OSError as error:
            names_it = pathlib.Path(str(error.filename)).is_relative_to(path)
            is_said = any(now in str(error) for now in ("still there", "Nothing is there now"))
            os._exit(3 if names_it and is_said else 4)

    found = None
    for _ in range(FLAGS.times):
        if found != "old":
            save_old(save, path)
        size = sum(file.stat().st_size for file in files_of(path))
        share = random.uniform(0, 0.95)
        process, go_on = begun(write, 2)
        go_on()
        process.join()
        if filler is not None:
            filler.unlink()
        found = found_at(path, load)
        if found == "old" and process.exitcode != 3:
            found = "crash" if process.exitcode < 0 else "silent"
        yield found


def main(_):
    random.seed(0)
    for kind in FLAGS.kind or KINDS:
        save, load = KINDS[kind]
        ways = [killed, read_beside, kept_short, *([on_a_full_disk] if FLAGS.full_dir else [])]
        for way in ways:
            if kind == "checkpoint" and way is read_beside:  # The folder belongs to a single run.
                continue
            with tempfile.TemporaryDirectory() as folder:
                counts = collections.Counter(way(save, load, pathlib.Path(folder, kind)))
            found = [f"{name} {count}" for name, count in sorted(counts.items())]
            print(f"{kind:13} {way.__name__:14}", *found, flush=True)


if __name__ == "__main__":
    app.run(main)
