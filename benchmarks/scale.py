"""A cost model of pre-training: the tables of docs/design/scale.md, compared with measurements.

python benchmarks/scale.py --price 4 --network 50e9 --share 0.3
"""

import flops
from absl import app, flags
from result_tables import as_table

FLAGS = flags.FLAGS
# Assumptions of the plans; the first is the H100's dense bfloat16 rate by its data sheet.
flags.DEFINE_float("matrix_rate", 989e12, "Arithmetic a second of a device.")
flags.DEFINE_float("share", 0.22, "Share of it that training reaches.")
flags.DEFINE_float("price", 2.5, "Money for an hour of a device.")
flags.DEFINE_integer("machine", 8, "Devices of a machine.")
flags.DEFINE_float("inside", 200e9, "Bytes a second between the devices of a machine.")
flags.DEFINE_float("network", 12.5e9, "Bytes a second between machines.")
flags.DEFINE_float("disk", 1e9, "Bytes a second of a checkpoint.")
flags.DEFINE_float("between_failures", 50_000, "Hours of one device between two failures.")
flags.DEFINE_float("restart", 600, "Seconds until a run that failed trains again.")


def main(argv):
    print("\n\n".join(tables()))


# The model


def training_flops(sizes, length, mask_rate=0.15):
    """Returns the arithmetic of training on a token; in gated models, 1 layer in 3 is global."""
    if sizes.get("gated"):
        share = -(-sizes["num_hidden_layers"] // 3) / sizes["num_hidden_layers"]
        sizes = sizes | {"context": share * length + (1 - share) * min(length, 128)}
    decoded = round(mask_rate * length)
    return 3 * flops.forward(sizes, 1, length, decoded, pooled="gated" not in sizes) / length


def wire_bytes(parameters, devices):
    """Returns the bytes each device sends per step, for float32 gradients summed in a ring."""
    return 2 * (devices - 1) / devices * 4 * parameters


def best_interval(write, between):
    """Returns Young's seconds between checkpoints, and the share of time that is lost then.

    Writing takes `write / t`; a failure costs half an interval and a restart.
    """
    interval = (2 * write * between) ** 0.5
    return interval, write / interval + (interval / 2 + FLAGS.restart) / between


BERT, MINI, MINILM = (
    {"num_hidden_layers": layers, "hidden_size": width}
    for layers, width in ((12, 768), (4, 256), (6, 384))
)
MODERN = {"num_hidden_layers": 22, "hidden_size": 768, "intermediate_size": 1152, "gated": True}
MODERN |= {"vocab_size": 50368}
BERT_128, MODERN_1024 = training_flops(BERT, 128), training_flops(MODERN, 1024, 0.3)
# Plan -> parameters, tokens per batch, (tokens, arithmetic per token) of its phases.
PLANS = {
    "BERT-base": (
        110_106_428,
        256 * 128,
        [(0.9e6 * 256 * 128, BERT_128), (0.1e6 * 256 * 512, training_flops(BERT, 512))],
    ),
    "ModernBERT-base": (
        149_655_232,
        4608 * 1024,
        [(1.7e12, MODERN_1024), (0.3e12, training_flops(MODERN, 8192, 0.3))],
    ),
}

# Measured, by what the page says, and published by others.

# What trained -> sizes, rows of 128 tokens, guesses a row, seconds, matrix rate of the same rounds.
STEPS = {
    "bert-mini's size, fine-tuning": (MINI, 16, 0, 0.615, 85.0e9),
    "bert-mini's size, pre-training": (MINI, 16, 19, 0.870, 88.56e9),
    "MiniLM's size, fine-tuning": (MINILM, 16, 0, 1.770, 88.05e9),
    "MiniLM's size, pre-training": (MINILM, 16, 19, 2.150, 83.62e9),
    "BERT-base, fine-tuning": (BERT, 4, 0, 4.120, 87.49e9),
}
WIRE_PARAMETERS = 13_395_458
# 33 English books of 44 MB, 30,522 pieces, rows of 128.
BYTES_A_TOKEN, BYTES_A_SECOND, SHARD_BYTES, TOKENS_READ = 4.147, 5.912e6, 2.105, 7.571e6
# Run -> hours, devices, matrix rate of a device, tokens, arithmetic of each.
PUBLISHED = {
    "MosaicBERT's BERT-base, 8 A100": (11.5, 8, 312e12, 70_000 * 4096 * 128, BERT_128),
    "ModernBERT-base, 8 H100": (194, 8, 989e12, 1.7e12, MODERN_1024),
}
# What -> what the model says, what was found.
FOUND = {
    # What 1.9 and 43.8 MB took makes 0.45 s, and 1 s for 6.3 MB.
    "seconds of a core for the examples of 26 MB": (0.452 + 25.98 / 6.296, 4.582),
    "bytes a process sends, float32": (wire_bytes(WIRE_PARAMETERS, 2), 53_739_848),
    "bytes a process sends, mixed_bfloat16": (wire_bytes(WIRE_PARAMETERS, 2), 53_736_113),
    "bytes of memory a parameter, PyTorch, float32": (16, 16.353),
    "bytes of memory a parameter, PyTorch, mixed_bfloat16": (18, 17.874),
    "bytes of memory a parameter, JAX, float32": (16, 16.062),
    "bytes of memory a parameter, JAX, mixed_bfloat16": (16, 15.088),
    "the same while a checkpoint is written, PyTorch, float32": (28, 29.350),
    "the same while a checkpoint is written, JAX, float32": (24, 23.141),
    "bytes of a checkpoint a parameter": (12, 12.000),
}


def tables():
    """Returns the tables of the page."""
    return [check_table(), memory_table(), text_table(), plan_table()]


def check_table():
    rows, share = {}, None
    for name, (sizes, batch, guesses, seconds, rate) in STEPS.items():
        work = 3 * flops.forward(sizes, batch, 128, batch * guesses, pooled=True)
        share = share or work / seconds / rate
        rows[f"seconds of a step, {name}"] = (work / rate / share, seconds)
    rows |= FOUND
    for name, (hours, devices, rate, tokens, each) in PUBLISHED.items():
        rows[f"hours, {name}"] = (tokens * each / (3600 * devices * rate * FLAGS.share), hours)
    lines = [(name, f"{a:,.5g}", f"{b:,.5g}", f"{b / a:.2f}") for name, (a, b) in rows.items()]
    return as_table(["what", "the model says", "found", "ratio"], lines)


def memory_table():
    n = FLAGS.machine
    strategies = {"all on each device": 16, "moments shared out (ZeRO-1)": 8 + 8 / n}
    strategies |= {"gradients too (ZeRO-2)": 4 + 12 / n, "weights too (FSDP, ZeRO-3)": 16 / n}
    rows = []
    for name, each in strategies.items():
        sizes = (f"{each * parameters / 1e9:.2f} GB" for parameters, _, _ in PLANS.values())
        rows.append((name, f"{each:g}", *sizes, f"{40 / each:.3g} x 10^9"))
    return as_table(["strategy", "bytes a parameter", *PLANS, "most parameters in 40 GB"], rows)


def text_table():
    rows = []
    for name, tokens in (("BERT-base", 16e9 / BYTES_A_TOKEN), ("ModernBERT-base", 2e12)):
        text, eaten = tokens * BYTES_A_TOKEN, FLAGS.share * FLAGS.matrix_rate / PLANS[name][2][0][1]
        hours, cells = text / BYTES_A_SECOND / 3600, f"{text / 1e9:,.0f} GB | {tokens / 1e9:,.1f}"
        cells += (
            f" x 10^9 | {hours:,.1f} | {60 * hours / 64:,.0f} | {SHARD_BYTES * tokens / 1e9:,.0f}"
        )
        rows.append((name, f"{cells} GB | {eaten:,.0f} | {eaten / TOKENS_READ:.0%}"))
    columns = ["plan", "text", "tokens", "core hours", "minutes on 64 cores", "shards"]
    return as_table([*columns, "tokens/s a device trains", "of a core to read them"], rows)


def plan_table():
    sizes = {"BERT-base": (1, 8, 64), "ModernBERT-base": (8, 64, 256)}
    rows = [plan(n, d, share) for n in sizes for share in (FLAGS.share, 0.45) for d in sizes[n]]
    columns = ["plan", "devices", "share", "tokens/s", "waits for the wire", "hours", "money"]
    return as_table([*columns, "failures", "steps between checkpoints", "lost to failures"], rows)


def plan(name, devices, share):
    """Returns a row: how long a plan takes on this many devices, and how much time is lost."""
    parameters, batch, phases = PLANS[name]
    tokens, work = sum(count for count, _ in phases), sum(count * each for count, each in phases)
    computing = batch / tokens * work / (devices * share * FLAGS.matrix_rate)
    speed = FLAGS.inside if devices <= FLAGS.machine else FLAGS.network
    step = computing + wire_bytes(parameters, devices) / speed
    between = 3600 * FLAGS.between_failures / devices
    interval, lost = best_interval(12 * parameters / FLAGS.disk, between)
    hours = tokens / batch * step / (1 - lost) / 3600
    numbers = f"{batch / step:,.0f} | {1 - computing / step:.0%} | {hours:,.1f}"
    numbers += f" | {hours * devices * FLAGS.price:,.0f} | {hours * 3600 / between:.2f}"
    return name, devices, f"{share:.0%}", numbers, f"{interval / step:,.0f}", f"{lost:.2%}"


if __name__ == "__main__":
    app.run(main)
