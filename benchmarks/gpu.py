"""Train bert-base, and predict with it, on this machine's device: speed, and share of its rate.

    KERAS_BACKEND=torch python benchmarks/gpu.py
    KERAS_BACKEND=jax python benchmarks/gpu.py --layers 2 --hidden_dim 64 --batch 2 --seconds 1

Fine-tuning (classification, 32 rows of 128 tokens), pre-training (masked tokens and next
sentences, 4 rows of 512) and prediction (classes, 32 rows of 128) by this package's `compile`,
`fit` and `predict` on the backend that KERAS_BACKEND names. The peers are KerasHub, which
pre-trains on masked tokens only, and transformers: with its fused attention, through torch.compile,
without and with CUDA graphs, and with flash_attn if that is installed. All have weights in float32
and compute in `--dtype`. Each side is a process, in turn with the others. So is the product of two
large square matrices in the same precision, by the same backend and by PyTorch: the faster of them
in a round is the device's matrix rate. A side's share of it counts the arithmetic that the task
needs, see `flops.forward`. It is the same for all sides, though transformers predicts every token.

Without an accelerator the processor computes, and the table says so.
"""

import importlib.util
import os
import statistics

import bench
import flops
import turns
from absl import app, flags
from result_tables import as_table, spread

FLAGS = flags.FLAGS
flags.DEFINE_list("jobs", ["fine_tuning", "pretraining", "prediction"], "What to do.")
flags.DEFINE_bool("padded", False, "Rows of many lengths, from a quarter of the length to all.")
flags.DEFINE_integer("layers", 12, "Encoder layers.", 1)
flags.DEFINE_integer("hidden_dim", 768, "Width; a head has 64 of it, the feed-forward 4 times.", 64)
flags.DEFINE_integer("batch", None, "Rows of a batch, in place of 32 and 4.", 1)
flags.DEFINE_integer("length", None, "Tokens of a row, in place of 128 and 512.", 16, 512)
flags.DEFINE_float("attention_dropout", 0.1, "Of all sides.", 0)
flags.DEFINE_enum("dtype", "bfloat16", ["bfloat16", "float32"], "Precision of the arithmetic.")
flags.DEFINE_float("seconds", 10, "How long a turn of a side lasts.", 0.1)
flags.DEFINE_integer("matrix_size", None, "8192 on an accelerator, 2048 on a processor.", 16)
flags.register_validator("hidden_dim", lambda width: width % 64 == 0, "must be a multiple of 64")

SHAPES = {"fine_tuning": (32, 128), "pretraining": (4, 512), "prediction": (32, 128)}
flags.register_validator("jobs", lambda names: {*names} <= {*SHAPES}, f"must be of {[*SHAPES]}")
# Several sides hold memory of the device at once, so none may take all of it.
SHARED_MEMORY = {"XLA_PYTHON_CLIENT_PREALLOCATE": "false", "TF_FORCE_GPU_ALLOW_GROWTH": "true"}


# Float32 means float32 on all sides. JAX would round the factors of its products to TF32.
NO_TF32 = {"NVIDIA_TF32_OVERRIDE": "0", "JAX_DEFAULT_MATMUL_PRECISION": "highest"}


def main(argv):
    os.environ.update(SHARED_MEMORY | (NO_TF32 if FLAGS.dtype == "float32" else {}))
    os.makedirs(FLAGS.output_dir, exist_ok=True)
    for kind in FLAGS.jobs:
        job = make_job(kind)
        job["folder"] = bench.weights(job["model"])
        results, discarded, trusted = turns.take_turns(
            *(job, sides(), FLAGS.rounds, FLAGS.threads, FLAGS.output_dir),
            ready_together=has_accelerator(),
        )
        print(as_markdown(job, results), flush=True)
        print(
            f"{discarded} rounds were discarded{'' if trusted else ', and those left are busy'}.\n"
        )


def make_job(kind):
    """Returns what the sides are told; its model's sizes are in `bench.MODELS`."""
    model = f"bert_{FLAGS.layers}x{FLAGS.hidden_dim}_{FLAGS.attention_dropout}"
    bench.MODELS[model] = {
        "num_hidden_layers": FLAGS.layers,
        "num_attention_heads": FLAGS.hidden_dim // 64,
        "hidden_size": FLAGS.hidden_dim,
        "attention_probs_dropout_prob": FLAGS.attention_dropout,
    }
    batch, length = SHAPES[kind]
    return {
        "kind": kind,
        "model": model,
        "padded": FLAGS.padded,
        "batch": FLAGS.batch or batch,
        "length": FLAGS.length or length,
        "dtype": FLAGS.dtype,
        "seconds": FLAGS.seconds,
        "by_cpu": FLAGS.by_cpu,
        "matrix_size": FLAGS.matrix_size or (8192 if has_accelerator() else 2048),
    }


def has_accelerator():
    return any(os.path.exists(path) for path in ("/dev/nvidia0", "/dev/kfd", "/dev/accel0"))


def sides():
    """Returns those of `--sides`, or all of this backend, and the products of matrices."""
    backend = os.environ.get("KERAS_BACKEND", "tensorflow")
    names = ["hugging_face", "hugging_face_compiled", "hugging_face_graphs"]
    names += [f"bert_keras-{backend}"]
    names += ["bert_keras_compiled-torch"] if backend == "torch" else []
    names += ["hugging_face_flash"] if importlib.util.find_spec("flash_attn") else []
    names += [f"keras_hub-{backend}"]
    matrices = dict.fromkeys([f"matrix_product-{backend}", "matrix_product-torch"])
    return [*(FLAGS.sides or names), *matrices]


def needed_flops(job):
    """Returns the arithmetic of a step, see `flops`: 15 % of the tokens are guessed."""
    guesses = job["batch"] * round(0.15 * job["length"]) * (job["kind"] == "pretraining")
    sizes = bench.MODELS[job["model"]]
    passes = 1 if job["kind"] == "prediction" else 3
    return passes * flops.forward(sizes, job["batch"], job["length"], guesses, pooled=True)


def matrix_rate(job, results):
    """Returns the arithmetic a second of matrix products in each round, the fastest library's."""
    found = [r for r in results if r.side.startswith("matrix_product") and r.error is None]
    seconds = zip(*([s / r.steps for s in r.seconds] for r in found), strict=True)
    return [2 * job["matrix_size"] ** 3 / min(each) for each in seconds]


def as_markdown(job, results):
    """Returns the table of a job."""
    tokens, work, rates = (
        job["batch"] * job["length"],
        needed_flops(job),
        matrix_rate(job, results),
    )
    lines = [
        f"### {job['kind']}, {job['model']}, {job['batch']} x {job['length']}, {job['dtype']}"
        f"{', padded' if job['padded'] else ''}",
        "",
        f"{work / tokens:.3g} FLOP a token. Matrix rate in TFLOP/s: "
        f"{spread([rate / 1e12 for rate in rates], '.4g')}, {job['matrix_size']} squared.",
        "",
    ]
    rows = [
        [result.side, result.error, *[""] * 5]
        if result.error
        else row(result, results[0], work, tokens, rates)
        for result in results
        if result.error or not result.side.startswith("matrix_product")
    ]
    columns = ("side", "device", "step ms (range)", "tokens/s", "of the matrix rate", "times", "MB")
    return "\n".join([*lines, as_table(columns, rows), ""])


def row(result, first, work, tokens, rates):
    steps = [seconds / result.steps for seconds in result.seconds]
    shares = [work / step / rate for step, rate in zip(steps, rates, strict=True)]
    found = zip(first.seconds, steps, strict=True)
    times = [seconds / first.steps / step for seconds, step in found]
    return (
        result.side,
        result.device or bench.processor(),
        spread([1e3 * step for step in steps], ".4g"),
        f"{tokens / statistics.median(steps):.0f}",
        f"{statistics.median(shares):.0%}",
        spread(times, ".2f"),
        f"{result.megabytes:.0f}",
    )


if __name__ == "__main__":
    app.run(main)
