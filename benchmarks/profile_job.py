"""Where the time of a benchmark's job goes, on one core: a table with a row for each backend.

    python benchmarks/profile_job.py --kind train_step --model minilm --batch 16 --length 128
    python benchmarks/profile_job.py --kind text --sst2_dir SST-2
    python benchmarks/profile_job.py --kind cold_start

Seconds are the median of three runs. Shares are of the wall-clock time of one more run, under the
backend's own profiler. XLA fuses: on JAX what is fused with a matrix product counts as one, and
random numbers and the optimizer count as elementwise work. On PyTorch attention's softmax counts
as a matrix product where one kernel has both. "rest" is what no kernel took: Python, tokenizing,
waiting. The columns of `cold_start` are seconds of a process's phases, on all cores.
"""

import glob
import importlib
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time

import bench
import turns
from absl import app, flags

FLAGS = flags.FLAGS
flags.DEFINE_enum(
    "kind",
    "train_step",
    ["inference", "train_step", "pretraining_step", "text", "cold_start"],
    "What to profile.",
)
flags.DEFINE_enum("model", "minilm", list(bench.MODELS), "Model whose sizes are used.")
flags.DEFINE_integer("batch", 16, "Rows of a batch.", 1)
flags.DEFINE_integer("length", 128, "Tokens of a row, but for texts.", 1)
flags.DEFINE_list("backends", list(bench.BACKENDS), "Backends, or hugging_face.")

# Kind of work -> what the kernels' names hold; the first that fits counts, else elementwise work.
KINDS = {
    "matrix products": r"matmul|\bdot|ynn_fusion|convolution|::(badd)?bmm|::mm|addmm|scaled_dot",
    "copies, zeroing": r"copy|transpose|clone|fill|zero|concat|::cat|stack|slice|\bpad|pack",
    "random numbers": r"random|bernoulli",
    "optimizer": r"adam|applygradient",
}
# Spans that hold the kernels of others, or wait for them.
NO_KERNEL = re.compile(
    r"^end: |ThunkExecutor|ThreadpoolListener|ExecutorState|Await|wait|KernelAndDeviceFunc|"
    r"FunctionRun|Eager|PjRt|PjitFunction|TFE_|^\$|Execute|Handle inputs|ParseArguments|DevicePut|"
    r"tf\.constant|one_step_on_data|convert_to_tensor|Validate|XlaCompile|Iterator"
)
# In a process that has imported nothing else.
PHASES = """
import json, sys, time
clock = [time.perf_counter()]
import keras
clock.append(time.perf_counter())
import bert_keras
clock.append(time.perf_counter())
classifier = keras.models.load_model(sys.argv[1])
clock.append(time.perf_counter())
for _ in range(2):
    classifier.classify("It was a joy.")
    clock.append(time.perf_counter())
names = "import keras", "import bert_keras", "load_model", "first answer", "second answer"
print(json.dumps({f"{n}, seconds": b - a for n, a, b in zip(names, clock, clock[1:])}))
"""


def main(argv):
    if unknown := {*FLAGS.backends} - {*bench.BACKENDS, "hugging_face"}:
        raise SystemExit(f"Unknown backends {sorted(unknown)}.")
    if FLAGS.kind == "cold_start":
        rows = [(backend, cold_start(backend)) for backend in FLAGS.backends]
    else:
        length = None if FLAGS.kind == "text" else FLAGS.length
        job = {"kind": FLAGS.kind, "model": FLAGS.model, "batch": FLAGS.batch, "length": length}
        job |= {"text_set": "sst2"} if FLAGS.kind == "text" else {}
        arguments = ["child", json.dumps(job | bench.files_of(job))]
        rows = [
            (backend, told_by([__file__, *arguments, backend], backend, 1))
            for backend in FLAGS.backends
        ]
    columns = list(rows[0][1])
    print(f"| {' | '.join(['backend', *columns])} |\n{'|---' * (len(columns) + 1)}|")
    for backend, row in rows:
        cells = [f"{v:.2f}" if "second" in k else f"{v:.0%}" for k, v in row.items()]
        print(f"| {' | '.join([backend, *cells])} |")


def cold_start(backend):
    """Returns the median seconds of each phase from Python's first line to the second answer."""
    if backend not in bench.BACKENDS:
        raise SystemExit("cold_start is of bert_keras's backends alone.")
    folder = os.path.abspath(bench.weights("minilm"))
    file = os.path.join(folder, "bert_keras.keras")
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "TF_CPP_MIN_LOG_LEVEL": "3"}
    error = None if os.path.exists(file) else bench.save("bert_keras", folder, environment)
    if error:
        sys.exit(error)
    runs = [told_by(["-c", PHASES, file], backend, FLAGS.threads) for _ in range(3)]
    return {name: statistics.median(run[name] for run in runs) for name in runs[0]}


def told_by(arguments, backend, threads):
    """Runs Python with the arguments; returns what it prints last, a dict of numbers by column."""
    done = subprocess.run(
        [sys.executable, *arguments],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
        env={
            **os.environ,
            "HF_HUB_OFFLINE": "1",
            "TF_CPP_MIN_LOG_LEVEL": "3",
            "JAX_PLATFORMS": "cpu",
            "CUDA_VISIBLE_DEVICES": "",
            **dict.fromkeys(turns.THREADS, str(threads)),
            "KERAS_BACKEND": backend if backend in bench.BACKENDS else "torch",
        },
    )
    return json.loads(done.stdout.splitlines()[-1])


def child(job, backend):
    """Returns a row of the table."""
    if hasattr(os, "sched_setaffinity"):  # oneDNN asks no variable.
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    side = importlib.import_module(
        f"sides.{'bert_keras' if backend in bench.BACKENDS else backend}"
    )
    run = getattr(side, job["kind"])(job)
    run(), run()
    seconds = statistics.median(seconds_of(run) for _ in range(3))
    read = {"jax": by_jax, "tensorflow": by_tensorflow}.get(backend, by_torch)
    with tempfile.TemporaryDirectory() as folder:
        wall, events = read(run, folder)
    shares = dict.fromkeys([*KINDS, "elementwise work"], 0.0)
    for kernel, taken in events:
        name = re.sub(r"\.clone|\.\d+", "", kernel).lower()
        kind = next((k for k, names in KINDS.items() if re.search(names, name)), None)
        shares[kind or "elementwise work"] += taken / wall
    if sum(shares.values()) > 1.02:
        sys.exit(f"The kernels of one core took {sum(shares.values()):.2f} of the time: {backend}.")
    return {"seconds": seconds, **shares, "rest": 1 - sum(shares.values())}


def seconds_of(run):
    started = time.perf_counter()
    run()
    return time.perf_counter() - started


def by_jax(run, folder):
    import jax

    options = jax.profiler.ProfileOptions()
    options.python_tracer_level = 0
    with jax.profiler.trace(folder, profiler_options=options):
        wall = seconds_of(run)
    return wall, kernels(folder)


def by_tensorflow(run, folder):
    import tensorflow as tf

    options = tf.profiler.experimental.ProfilerOptions(python_tracer_level=0)
    tf.profiler.experimental.start(folder, options)
    wall = seconds_of(run)
    tf.profiler.experimental.stop()
    return wall, kernels(folder)


def by_torch(run, folder):
    import torch

    with torch.profiler.profile() as profile:
        wall = seconds_of(run)
    spans = profile.key_averages()
    return wall, [(e.key, e.self_cpu_time_total / 1e6) for e in spans if e.key.startswith("aten::")]


def kernels(folder):
    """Returns name and seconds of each kernel of a trace, less those of kernels within it."""
    import jax  # It reads TensorFlow's traces too.

    (path,) = glob.glob(os.path.join(folder, "**", "*.xplane.pb"), recursive=True)
    found = []
    for plane in jax.profiler.ProfileData.from_file(path).planes:
        for line in plane.lines:
            spans = sorted((e.start_ns, -e.duration_ns, e.name) for e in line.events)
            around = []
            for start, negative, name in spans:
                # TensorFlow calls a span by the operation's name and type.
                span = [start - negative, name.rpartition(":")[2] or name, -negative / 1e9]
                if NO_KERNEL.search(name):
                    continue
                while around and around[-1][0] <= start + 1:
                    around.pop()
                if around:
                    around[-1][2] -= span[2]
                around.append(span)
                found.append(span)
    return [(name, seconds) for _, name, seconds in found]


if __name__ == "__main__":
    if sys.argv[1:2] == ["child"]:
        print(json.dumps(child(json.loads(sys.argv[2]), sys.argv[3])))
    else:
        app.run(main)
