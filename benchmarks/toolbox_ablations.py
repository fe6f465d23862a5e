r"""What each tool of the fine-tuning toolbox is worth: each alone against the plain recipe.

    python benchmarks/toolbox_ablations.py --mrpc_dir MRPC --wnut_dir wnut17 --output results.jsonl
    python benchmarks/toolbox_ablations.py --mrpc_dir MRPC --output trial.jsonl \
        --tools plain,lora --tasks mrpc --seeds 1 --sample 64

Fine-tunes on MRPC (pairs of sentences, accuracy) and on WNUT-17 (entities, F1), with `--seeds`
seeds for each tool, and measures on the whole dev set. (RTE would be the other pair task: MiniLM
hardly leaves chance on it, with 0.55.) The plain recipe is the one below under TASKS, with what
`compile` does by default: AdamW, a warm-up of a tenth, linear decay to 0. A tool is a row of TOOLS:
what it changes in `from_preset`, `compile` and `fit`.

Each run has a process of its own, since a process never gives back its peak of memory. Its result
is a line of `--output` as soon as it ends, and the same command goes on where a killed one
stopped. The table, in Markdown, is printed and stands beside `--output`. Time is that of the
processor, of all cores together, during training and what a tool needs before it; memory is the
process's peak, which measuring on the dev set is a part of. Both are given as multiples of the
plain recipe's with the same seed, so that seeds may be run on different machines.
"""

import json
import os
import pathlib
import resource
import statistics
import subprocess
import sys
import tempfile
import time

import keras
import numpy as np
from absl import app, flags

import bert_keras
from bert_keras import datasets
from bert_keras.training import (
    FocalCrossentropy,
    GradualUnfreezing,
    SeveralMasks,
    stages_from_the_top,
)

FLAGS = flags.FLAGS
flags.DEFINE_string("mrpc_dir", None, "Folder with MRPC's train.tsv and dev.tsv.")
flags.DEFINE_string("wnut_dir", None, "Folder with WNUT-17's train and dev files.")
flags.DEFINE_string("output", "toolbox_ablations.jsonl", "File of results, one JSON object a line.")
flags.DEFINE_string("preset", "minilm_l6_en_uncased", "Registered name, folder or hf:// address.")
flags.DEFINE_list("tools", None, "Tools to run, by their names in TOOLS; all by default.")
flags.DEFINE_list("tasks", None, "Tasks to run: mrpc, wnut; those with a folder by default.")
flags.DEFINE_integer("seeds", 3, "Runs of each tool, with the seeds from 0 on.", lower_bound=1)
flags.DEFINE_integer("sample", 1000, "Examples to train on, at most.", lower_bound=1)
flags.DEFINE_integer("max_length", 128, "Longest sequence in tokens.", lower_bound=3)
flags.DEFINE_integer("epochs", None, "Times to go through them; the task's own by default.")
flags.DEFINE_integer("sort_window", 4, "Batches that are sorted by length together.", 1)
flags.DEFINE_enum(
    "dtype", "float32", ["float32", "mixed_bfloat16"], "Precision of all but the other's own row."
)
flags.DEFINE_string("run", None, "Task, tool and seed: measure this one in this process.")

# Small batches and high rates: of a thousand examples, batches of 32 are so few steps that WNUT-17
# learns no entity at all with 1e-4.
TASKS = {
    # The mean, since the checkpoint was trained with it.
    "mrpc": {
        "preset": {"pooling": "mean"},
        "compile": {"learning_rate": 1e-4},
        "fit": {"epochs": 3, "batch_size": 16},
    },
    "wnut": {
        "preset": {},
        "compile": {"learning_rate": 3e-4},
        "fit": {"epochs": 3, "batch_size": 8},
    },
}

# What each tool changes: arguments of from_preset, compile and fit; `rate` and `batch` times the
# learning rate and the batch size; callbacks, a function of the model; tasks, where it is not for
# both; `masks`, arguments of `SeveralMasks`; `cached`, whether the encoder reads each text once;
# `adapt`, masked language modelling before, arguments of compile and fit.
TOOLS = {
    "plain": {},
    "constant rate, no warm-up": {"compile": {"decay": "constant", "warmup": 0}},
    "cosine decay": {"compile": {"decay": "cosine"}},
    "quadratic decay": {"compile": {"decay": "polynomial", "decay_power": 2.0}},
    # It moves a kernel by a share of its norm, and a new head begins small.
    "LAMB, head x 10": {"compile": {"optimizer": "lamb", "head_multiplier": 10.0}, "rate": 10},
    "layer-wise decay 0.9": {"compile": {"layer_decay": 0.9}},
    "head x 10": {"compile": {"head_multiplier": 10.0}},
    "frozen embeddings": {"preset": {"frozen": "embeddings"}},
    "frozen first 3 layers": {"preset": {"frozen": 3}},
    "gradual unfreezing": {
        "callbacks": lambda model: [
            GradualUnfreezing(stages_from_the_top(model.backbone, layers_per_stage=3))
        ]
    },
    "label smoothing 0.1": {"compile": {"label_smoothing": 0.1}},
    "focal loss": {"compile": {"loss": FocalCrossentropy()}},
    "class weights": {"balanced": True},
    "R-Drop": {"masks": {"consistency": 1.0}},
    "multi-sample dropout": {"masks": {"dropout_samples": 5}, "tasks": ("mrpc",)},
    "EMA 0.9": {"compile": {"ema_momentum": 0.9}},
    # Half the batch, so that an update sees as many examples.
    "gradient accumulation 2": {"compile": {"gradient_accumulation_steps": 2}, "batch": 0.5},
    # Of these two, the one that the plain recipe has anyway is left out.
    "bfloat16": {"preset": {"dtype": "mixed_bfloat16"}},
    "float32": {"preset": {"dtype": "float32"}},
    "remat": {"preset": {"backbone": {"remat": True}}},
    "LoRA rank 8": {"preset": {"lora_rank": 8}, "rate": 5},
    "task-adaptive pre-training": {
        "adapt": {"compile": {"learning_rate": 1e-4}, "fit": {"epochs": 3}}
    },
    "frozen encoder": {"preset": {"frozen": "backbone"}, "rate": 30},
    "frozen encoder, cached": {
        "preset": {"frozen": "backbone"},
        "rate": 30,
        "cached": True,
    },
    "CRF": {"preset": {"crf": True}, "tasks": ("wnut",)},
}
# For the command line, where a name with spaces is a burden.
SHORT = {
    name.replace(",", "").replace(" ", "_").replace("-", "_").lower(): name for name in TOOLS
} | {
    "lora": "LoRA rank 8",
    "lamb": "LAMB, head x 10",
    "crf": "CRF",
    "ema": "EMA 0.9",
    "r_drop": "R-Drop",
}


def main(argv):
    if FLAGS.run:
        print(json.dumps(measure(*json.loads(FLAGS.run))), flush=True)
        return
    tasks = FLAGS.tasks or [task for task in TASKS if FLAGS[f"{task}_dir"].value]
    tools = [tool_named(name) for name in FLAGS.tools or TOOLS]
    check_folders(tasks)
    # Seeds outside: where it is stopped early, each tool has been run as often.
    runs = [
        (task, tool, seed)
        for seed in range(FLAGS.seeds)
        for task in tasks
        for tool in tools
        if task in TOOLS[tool].get("tasks", TASKS)
        and TOOLS[tool].get("preset") != {"dtype": FLAGS.dtype}
    ]
    known = read_results()
    done = {(row["task"], row["tool"], row["seed"]) for row in known}
    print(f"{len(runs)} runs, of which {sum(run in done for run in runs)} were made before.")
    failed = []
    for number, run in enumerate(runs, 1):
        if run in done:
            continue
        print(f"{number}/{len(runs)} {run}", end=": ", flush=True)
        row = in_own_process(run)
        if row is None:
            failed.append(run)
            continue
        with open(FLAGS.output, "a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")
        print(f"{row['metric']:.4f}, {row['seconds']:.0f} s, {row['megabytes']:.0f} MB", flush=True)
    text = table([row for row in read_results() if row["seed"] < FLAGS.seeds])
    pathlib.Path(FLAGS.output).with_suffix(".md").write_text(text, encoding="utf-8")
    print(f"\n{text}", end="")
    if failed:
        print(f"Failed, and to be run again by the same command: {failed}")
        sys.exit(1)


def tool_named(name):
    """Returns a tool's name in TOOLS from that or its short form, such as `lora`."""
    found = name if name in TOOLS else SHORT.get(name.lower())
    if found is None:
        raise SystemExit(f"Unknown tool {name!r}. There are: {', '.join(SHORT)}.")
    return found


def check_folders(tasks):
    for task in tasks:
        if task not in TASKS:
            raise SystemExit(f"Unknown task {task!r}. There are: {', '.join(TASKS)}.")
        if not FLAGS[f"{task}_dir"].value:
            raise SystemExit(f"The task {task} needs --{task}_dir.")
    if not tasks:
        raise SystemExit("Pass --mrpc_dir, --wnut_dir or both.")


def settings_of(task, tool="plain"):
    """Returns what a run is made with, seed left out; rows with other settings do not count."""
    return {
        "backend": keras.backend.backend(),
        "preset": FLAGS.preset,
        "sample": FLAGS.sample,
        "max_length": FLAGS.max_length,
        "sort_window": FLAGS.sort_window,
        "dtype": FLAGS.dtype,
        **TASKS[task]["compile"],
        **TASKS[task]["fit"],
        **({"epochs": FLAGS.epochs} if FLAGS.epochs else {}),
        # As JSON, so that a row that was read is equal to one that is not written yet.
        **json.loads(json.dumps({"tool": TOOLS[tool]}, default=lambda value: type(value).__name__)),
    }


def read_results():
    """Returns the rows of `--output` that were made with these settings."""
    if not os.path.exists(FLAGS.output):
        return []
    with open(FLAGS.output, encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    rows = [row for row in rows if row["task"] in TASKS and row["tool"] in TOOLS]
    return [row for row in rows if row["settings"] == settings_of(row["task"], row["tool"])]


def in_own_process(run):
    """Returns the row that `measure` gives for a run, `None` where it failed."""
    command = [sys.executable, *sys.argv, f"--run={json.dumps(run)}"]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    if done.returncode:
        print(f"failed with the exit code {done.returncode}:\n{done.stderr[-2000:]}", flush=True)
        return None
    return json.loads(done.stdout.splitlines()[-1])


# One run


def measure(task, tool, seed):
    """Fine-tunes once and returns a row of results."""
    bert_keras.keep_freed_memory()
    change = TOOLS[tool]
    plain = TASKS[task]
    compile_arguments = {**plain["compile"], **change.get("compile", {})}
    compile_arguments["learning_rate"] *= change.get("rate", 1)
    fit_arguments = {**plain["fit"], "sort_window": FLAGS.sort_window, **change.get("fit", {})}
    fit_arguments["batch_size"] = int(fit_arguments["batch_size"] * change.get("batch", 1))
    if FLAGS.epochs:
        fit_arguments["epochs"] = FLAGS.epochs
    data = load(task)
    keras.utils.set_random_seed(seed)
    start = processor_seconds()
    with tempfile.TemporaryDirectory() as folder:
        preset = adapted(data["texts"], folder, change["adapt"]) if "adapt" in change else None
        task_class = data["class"]
        if "masks" in change:
            task_class = type("Regularized", (SeveralMasks, task_class), {})
        model = task_class.from_preset(
            preset or FLAGS.preset,
            label_names=data["label_names"],
            max_length=FLAGS.max_length,
            **{"dtype": FLAGS.dtype, **plain["preset"], **change.get("preset", {})},
            **change.get("masks", {}),
        )
        model.compile(**compile_arguments)
        if "callbacks" in change:
            fit_arguments["callbacks"] = change["callbacks"](model)
        if change.get("balanced"):
            fit_arguments["class_weight"] = data["class_weight"]
        trained, examples = model, data["train"]
        if change.get("cached"):
            examples = (bert_keras.encode_features(model, *examples, verbose=0),)
            trained = bert_keras.HeadTask(model)
        trained.fit(*examples, verbose=0, **fit_arguments)
        seconds = processor_seconds() - start
        return {
            "task": task,
            "tool": tool,
            "seed": seed,
            "metric": data["measure"](model),
            "seconds": round(seconds, 1),
            "megabytes": round(peak_bytes() / 1e6),
            "file_megabytes": round(size_of_file(model, folder) / 1e6, 2),
            "trained_weights": sum(int(np.prod(v.shape)) for v in model.trainable_variables),
            "settings": settings_of(task, tool),
            "versions": {"keras": keras.__version__, "bert_keras": bert_keras.__version__},
            "time": time.strftime("%Y-%m-%d %H:%M:%S"),
        }


def load(task):
    """Returns what a run needs to know of a task, its training set cut to `--sample`."""
    return load_mrpc(FLAGS.mrpc_dir) if task == "mrpc" else load_wnut(FLAGS.wnut_dir)


def load_mrpc(folder):
    train, dev = (datasets.load_glue("mrpc", folder, part) for part in ("train", "dev"))
    train = sampled(train)
    return {
        "class": bert_keras.TextClassifier,
        "label_names": list(train.label_names),
        "train": (train.texts, train.labels),
        "texts": [*train.texts[0], *train.texts[1]],
        "class_weight": balanced(train.labels, len(train.label_names)),
        "measure": lambda model: accuracy(model, dev),
    }


def accuracy(model, examples):
    return model.evaluate(examples.texts, examples.labels, verbose=0, return_dict=True)["accuracy"]


def load_wnut(folder):
    train, dev = (datasets.read_conll(file_of(part, folder)) for part in ("train", "dev"))
    names = datasets.tag_names(train, dev)
    train = sampled(train)
    numbers = [names.index(tag) for tags in train.tags for tag in tags]
    return {
        "class": bert_keras.TokenClassifier,
        "label_names": list(names),
        "train": (train.words, train.tags),
        "texts": [" ".join(words) for words in train.words],
        "class_weight": balanced(numbers, len(names)),
        "measure": lambda model: model.evaluate_tags(dev.words, dev.tags)["f1"],
    }


def balanced(labels, num_classes):
    """Returns class weights: the root of how much rarer than the mean a class is."""
    counts = np.maximum(np.bincount(labels, minlength=num_classes), 1)
    return dict(enumerate(np.sqrt(counts.mean() / counts).tolist()))


def file_of(part, folder):
    """Returns the file with `train` or `dev` in its name."""
    found = sorted(path for path in pathlib.Path(folder).iterdir() if part in path.name)
    if not found:
        raise FileNotFoundError(f"{folder} must hold a file with {part!r} in its name.")
    return str(found[0])


def sampled(examples):
    """Returns at most `--sample` examples, the same for each tool and seed."""
    order = np.random.default_rng(0).permutation(len(examples))
    return examples.take(order[: FLAGS.sample])


def adapted(texts, folder, adapt):
    """Returns a preset that was trained on the task's texts, without their labels, beforehand."""
    model = bert_keras.MaskedLM.from_preset(FLAGS.preset, dtype=FLAGS.dtype)
    model.compile(**adapt["compile"])
    model.fit(texts, verbose=0, **adapt["fit"])
    model.save_to_preset(os.path.join(folder, "adapted"))
    return os.path.join(folder, "adapted")


def size_of_file(model, folder):
    """Returns the bytes of what one would keep of a model: its adapters, or all of it."""
    path = os.path.join(folder, "model.keras")
    if model.get_config().get("lora_rank"):
        model.save_adapters(path)
    else:
        model.compile()  # Without the old optimizer, whose moments are twice the model's size.
        model.save(path)
    return os.path.getsize(path)


def processor_seconds():
    return sum(os.times()[:2])


def peak_bytes():
    """Returns the most memory that this process held. Linux counts in KiB, macOS in bytes."""
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


# The table


def table(rows):
    """Returns a table in Markdown for each task: means over seeds, differences to `plain`."""
    lines = []
    for task in TASKS:
        of_task = [row for row in rows if row["task"] == task]
        if not of_task:
            continue
        settings = ", ".join(f"{k} {v}" for k, v in settings_of(task).items() if k != "tool")
        metric = "accuracy" if task == "mrpc" else "entity F1"
        lines += [
            f"{task}: {settings}",
            "",
            f"| tool | {metric} | to plain | seeds | time | memory | file MB |",
            "|---|---|---|---|---|---|---|",
            *(line_of(tool, of_task) for tool in TOOLS if any_of(tool, of_task)),
            "",
        ]
    return "\n".join(lines)


def any_of(tool, rows):
    return [row for row in rows if row["tool"] == tool]


def line_of(tool, rows):
    """Returns a tool's line: mean and standard deviation over its seeds.

    What is said of it and the plain recipe is over the seeds that both have been run with. The
    plain recipe's line has seconds and megabytes.
    """
    own = {row["seed"]: row for row in any_of(tool, rows)}
    plain = {row["seed"]: row for row in any_of("plain", rows)}
    size = statistics.mean(row["file_megabytes"] for row in own.values())
    if tool == "plain":
        gain, seconds, memory = (
            "",
            f"{mean_of('seconds', own)} s",
            f"{mean_of('megabytes', own)} MB",
        )
    else:
        gain = compared("metric", own, plain, lambda a, b: a - b, "+.4f", with_error=True)
        seconds, memory = (
            compared(name, own, plain, lambda a, b: a / b, ".2f")
            for name in ("seconds", "megabytes")
        )
    metric = spread([row["metric"] for row in own.values()])
    return f"| {tool} | {metric} | {gain} | {len(own)} | {seconds} | {memory} | {size:.1f} |"


def mean_of(name, rows):
    return f"{statistics.mean(row[name] for row in rows.values()):.0f}"


def compared(name, own, plain, compare, spec, with_error=False):
    """Returns the mean of a comparison over the seeds of both, as text; empty without any.

    With its standard error where asked, from two seeds on.
    """
    values = [compare(own[seed][name], plain[seed][name]) for seed in own if seed in plain]
    if not values:
        return ""
    mean = format(statistics.mean(values), spec)
    if not with_error or len(values) == 1:
        return mean
    return f"{mean} ± {statistics.stdev(values) / len(values) ** 0.5:.4f}"


def spread(values):
    mean = f"{statistics.mean(values):.4f}"
    return mean if len(values) == 1 else f"{mean} ± {statistics.stdev(values):.4f}"


if __name__ == "__main__":
    app.run(main)
