"""Every task of `train` on a slice of real data, on each backend, each in a process of its own.

    python tests/run_recipes.py --data_dir datasets
    python tests/run_recipes.py --data_dir datasets --backends jax --tasks multiple_choice

`--data_dir` holds a folder for each data set of TASKS, in its original layout. Not a part of
`make test`, which has no such data: for a clone of a commit that is to be released. Prints a line a
run, with seconds and the metrics, and fails where a run fails or prints no metrics.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

from absl import app, flags

ROOT = pathlib.Path(__file__).resolve().parent.parent
# Task -> its data set, and further flags.
TASKS = {
    "text_classification": ("rte", "--dataset=RTE", "--learning_rate=5e-5,3e-5"),
    "long_text_classification": ("sst2", "--dataset=SST-2", "--combine=max"),
    "token_classification": ("wnut17", "--crf"),
    "question_answering": ("squad_v1",),
    "multiple_choice": ("swag_sample",),
    "text_embedding": ("stsb",),
}

FLAGS = flags.FLAGS
flags.DEFINE_string("data_dir", None, "Folder of data sets, each in its original layout.")
flags.DEFINE_list("backends", ["torch", "jax", "tensorflow"], "Backends to run on.")
flags.DEFINE_list("tasks", list(TASKS), "Tasks to train.")
flags.DEFINE_string("preset", None, "Preset to train, of any family; by default `train`'s own.")
flags.DEFINE_integer("sample", 64, "Examples to train on.", 1)
flags.mark_flag_as_required("data_dir")


def main(argv):
    failed = []
    for backend in FLAGS.backends:
        for task in FLAGS.tasks:
            started = time.perf_counter()
            done = run(task, backend)
            seconds = time.perf_counter() - started
            try:
                said = json.dumps(json.loads(done.stdout.splitlines()[-1]))
            except (IndexError, json.JSONDecodeError):
                said = f"no metrics; {done.stderr[-1000:]}"
            if done.returncode or said.startswith("no metrics"):
                failed.append((backend, task))
            outcome = "failed" if done.returncode else "passed"
            print(f"{backend} {task} {outcome} in {seconds:.0f} s: {said}", flush=True)
    if failed:
        sys.exit(f"Failed: {failed}")


def run(task, backend):
    data, *options = TASKS[task]
    options.append(f"--data_dir={os.path.join(os.path.abspath(FLAGS.data_dir), data)}")
    if FLAGS.preset:
        options.append(f"--preset={FLAGS.preset}")
    with tempfile.TemporaryDirectory() as folder:
        command = [
            *(sys.executable, "-m", "bert_keras", "train", task, *options, "--epochs=1"),
            *(f"--sample={FLAGS.sample}", f"--output_dir={folder}"),
        ]
        environment = {**os.environ, "KERAS_BACKEND": backend, "TF_CPP_MIN_LOG_LEVEL": "3"}
        environment["PYTHONPATH"] = str(ROOT)
        return subprocess.run(
            command, env=environment, capture_output=True, text=True, errors="replace", check=False
        )


if __name__ == "__main__":
    app.run(main)
