"""Time this package and its peers side by side, on the same weights and inputs.

    python benchmarks/bench.py --suite smoke
    python benchmarks/bench.py --suite inference --rounds 5
    python benchmarks/bench.py --suite all --sst2_dir SST-2 --mrpc_dir MRPC --imdb_dir aclImdb

Each side runs in its own process, in turn with the others. The answers are compared. A side whose
answers differ from those of the first gets no times: the bound is 1e-5 for ours in float32, unless
the job says otherwise, and 0.05 for others. Prints a table for each job: median and range of the
seconds; "times", the median over the rounds of the first side's time divided by this one's; for
ours also that of KerasHub's on the same backend; memory; and the share of the machine's speed in
the fastest matrix product of all backends. Writes results.json and results.md again after each job.
`smoke` takes minutes, `processor` most of an hour; both also print one table of the ratios to
transformers.

Peers that are not installed are named and left out: transformers, sentence-transformers, keras-hub,
onnxruntime, tensorflow-text; transformers' Trainer needs accelerate.
"""

import importlib.metadata
import importlib.util
import json
import os
import pathlib
import platform
import statistics
import subprocess
import sys
import time

import flops
import numpy as np
import turns
from absl import app, flags
from result_tables import as_table, spread
from sides.matrix_product import FLOPS

FLAGS = flags.FLAGS

BACKENDS = ("jax", "tensorflow", "torch")
OURS, THEIRS = (
    [f"{name}-{backend}" for backend in BACKENDS] for name in ("bert_keras", "keras_hub")
)
COMPILED = ["bert_keras-torch", "bert_keras_compiled-torch"]
REMAT = ["bert_keras_remat-tensorflow", "bert_keras_remat-torch"]
FOR_TEXTS = ["hugging_face_sorted", "sentence_transformers", *OURS, *THEIRS, "onnx_runtime"]
FOR_EPOCHS = ["hugging_face_random", *OURS]
PIPELINE_TOO = [*OURS, "hugging_face"]
FOR_ONE_TEXT = ["sentence_transformers", *OURS, "onnx_runtime"]
PRECISIONS = ("bert_keras_float32", "bert_keras", "bert_keras_mixed")
ATTENTION = ("bert_keras_explicit", "bert_keras_fused")
DENSE = ("keras_layers", "bert_keras")
FOR_ARRAYS = ["bert_keras-tensorflow", "keras_hub-tensorflow", "keras_hub_eager-tensorflow"]
FOR_TOKENS = [*FOR_ARRAYS, "onnx_runtime", "tensorflow_text-tensorflow"]
MODELS = {
    "bert_base": {"num_hidden_layers": 12, "num_attention_heads": 12, "hidden_size": 768},
    "minilm": {"num_hidden_layers": 6, "num_attention_heads": 12, "hidden_size": 384},
    # So small that a step's time is what the calls of layers cost.
    "narrow": {"num_hidden_layers": 12, "num_attention_heads": 2, "hidden_size": 24},
}
VERSIONS = (
    *("keras", "jax", "tensorflow", "torch", "transformers", "tokenizers", "keras-hub"),
    *("tensorflow-text", "onnxruntime", "sentence-transformers"),
)
# Texts to classify: sentences, pairs, and documents.
TEXTS = {"sst2": {}, "mrpc": {}, "imdb": {"num_texts": 256, "max_length": 256}}
# One training step; users run many in a row.
STEPS = ("inference", "train_step", "pretraining_step")


def jobs_of(kind, model, shapes, sides, first="hugging_face", **options):
    """Returns a list of (job, sides), one for each shape; the first side is the reference."""
    options = {"warm_up": kind in STEPS, **options}
    return [
        (
            {"kind": kind, "model": model, "batch": batch, "length": length, **options},
            [first, *sides],
        )
        for batch, length in shapes
    ]


def on_each_backend(kind, model, shapes, first, *sides, backends=BACKENDS, **options):
    """Returns the same for sides that are compared with `first` on each backend."""
    return [
        job
        for name in backends
        for job in jobs_of(
            kind, model, shapes, [f"{side}-{name}" for side in sides], f"{first}-{name}", **options
        )
    ]


LENGTHS = (64, 128, 512)
# Batches of texts in their natural lengths.
BATCHES = [(32, None)]
SST2 = {"text_set": "sst2"}
ONE_TEXT = {**SST2, "title": "one text", "num_texts": 1, "warm_up": True, "calls": 20}
BFLOAT16 = {"batches": 2, "dtype": "bfloat16", "tolerance": 0.3}
BESIDE_FLOAT32 = BFLOAT16 | {"title": "inference, bert_base, 8 x 128, bfloat16 beside float32"}
SUITES = {
    # For a first look: minutes, and a table of ratios at the end.
    "smoke": [
        *jobs_of("train_step", "minilm", [(32, 32), (16, 128)], OURS),
        *jobs_of("text", "minilm", BATCHES, OURS, "hugging_face_sorted", num_texts=256, **SST2),
        *jobs_of("text", "minilm", [(1, None)], PIPELINE_TOO, "hugging_face_sorted", **ONE_TEXT),
        *jobs_of("inference", "narrow", [(8, 16)], OURS, batches=16),
        *jobs_of("train_step", "narrow", [(8, 16)], OURS, calls=10),
    ],
    # The jobs by which processors are compared.
    "processor": [
        *jobs_of("train_step", "minilm", [(32, 32), (16, 128), (32, 128)], [*OURS, *THEIRS]),
        *jobs_of("text", "minilm", BATCHES, FOR_TEXTS, **SST2),
        *jobs_of("text", "minilm", [(1, None)], FOR_ONE_TEXT, "hugging_face_sorted", **ONE_TEXT),
        *jobs_of("epoch", "minilm", BATCHES, FOR_EPOCHS, num_texts=2560, text_set="sst2_train"),
    ],
    "inference": [
        *jobs_of("inference", "bert_base", [(8, 128)], [*OURS, *THEIRS, "onnx_runtime"], batches=2),
        *jobs_of("inference", "bert_base", [(8, 512), (1, 128)], [*OURS, "onnx_runtime"]),
    ],
    "bfloat16": [
        *jobs_of("inference", "bert_base", [(8, 128)], OURS, **BFLOAT16),
        *on_each_backend("inference", "bert_base", [(8, 128)], *PRECISIONS, **BESIDE_FLOAT32),
    ],
    # The explicit formula is the reference, so "times" is what `ops.dot_product_attention` gains.
    # The layer itself chooses one of the two, see layers/attention.py.
    "attention": on_each_backend("attention", "bert_base", [(8, n) for n in LENGTHS], *ATTENTION),
    "text": [
        job
        for texts, options in TEXTS.items()
        for job in jobs_of("text", "minilm", BATCHES, FOR_TEXTS, text_set=texts, **options)
    ],
    "train_step": jobs_of("train_step", "minilm", [(32, 32), (16, 128)], [*OURS, *THEIRS]),
    # By default both sort a quarter of these batches by length together.
    "epoch": jobs_of("epoch", "minilm", BATCHES, OURS, num_texts=1536, text_set="sst2_train"),
    "epoch_of_pairs": jobs_of(
        "epoch", "minilm", BATCHES, OURS, num_texts=512, text_set="mrpc_train"
    ),
    "pretraining_step": jobs_of("pretraining_step", "bert_base", [(4, 128)], OURS),
    "arrays": jobs_of("arrays", "minilm", BATCHES, FOR_ARRAYS, **SST2),
    "tokens": jobs_of("tokens", "minilm", BATCHES, FOR_TOKENS, **SST2),
    "torch_compile": [
        *jobs_of("inference", "minilm", [(8, 128)], COMPILED, batches=2),
        *jobs_of("text", "minilm", BATCHES, COMPILED, **SST2),
    ],
    # JAX is left out with remat: on the CPU its compiler undoes it.
    "memory": [
        *jobs_of("train_step", "minilm", [(32, 128)], [*OURS, *REMAT]),
        # All sides at once would need more than 24 GiB.
        *(job for side in OURS for job in jobs_of("train_step", "minilm", [(32, 384)], [side])),
    ],
    # Our dense layer beside Keras's, where it computes in its own way.
    "dense": on_each_backend(
        "dense", "minilm", [(16, 128)], *DENSE, backends=["jax"], dtype="bfloat16"
    ),
    "length": jobs_of("inference", "minilm", [(8, n) for n in (*LENGTHS, 256)], OURS, batches=2),
    "batch": jobs_of("inference", "minilm", [(n, 128) for n in (1, 4, 16, 64)], OURS),
    "int8": jobs_of(
        "text", "minilm", BATCHES, [*OURS, "onnx_runtime"], dtype="int8", tolerance=0.05, **SST2
    ),
}

flags.DEFINE_list("suite", ["inference"], f"Of {', '.join(SUITES)}, cold_start; or all, but smoke.")
flags.DEFINE_list("sides", None, "Sides to run, of those that a job has; all without it.")
flags.DEFINE_integer("rounds", 5, "Rounds to keep.", 1)
flags.DEFINE_integer("threads", os.cpu_count(), "Threads of each side.", 1)
flags.DEFINE_bool("by_cpu", False, "Whether to count the processor's seconds: on a busy machine.")
flags.DEFINE_string("sst2_dir", None, "Folder of SST-2; without it the repository's sentences.")
flags.DEFINE_string("mrpc_dir", None, "Folder of MRPC, for the texts that are pairs.")
flags.DEFINE_string("imdb_dir", None, "Folder of IMDB, for the texts that are documents.")
flags.DEFINE_string("output_dir", "output/bench", "Folder for weights, logs and results.")


def main(argv):
    names = [*SUITES, "cold_start"][1:] if FLAGS.suite == ["all"] else FLAGS.suite
    if unknown := [name for name in names if name not in (*SUITES, "cold_start")]:
        raise SystemExit(f"Unknown suites {unknown}. There are: {', '.join(SUITES)}, cold_start.")
    os.makedirs(FLAGS.output_dir, exist_ok=True)
    dtypes = [] if names == ["smoke"] else dtypes_of(names)
    ceilings = {dtype: measure_ceilings(dtype) for dtype in dtypes}
    tables = []
    for table in tables_of(names, ceilings):
        tables.append(table)
        write(tables, ceilings)
    if FLAGS.suite in (["smoke"], ["processor"]):
        print(ratio_table(tables))
    print(f"Wrote {os.path.join(FLAGS.output_dir, 'results.md')}.")
    wrong = [
        f"{table['title']}: {row['side']} {row['error']}"
        for table in tables
        for row in table["rows"]
        if row["error"] and "bert_keras" in row["side"]
    ]
    if wrong:
        sys.exit("\n".join(wrong))


def tables_of(names, ceilings):
    """Yields the table of each job when it is measured."""
    for name in names:
        if name == "cold_start":
            yield cold_start()
            continue
        for job, sides in SUITES[name]:
            text_set = job.get("text_set", "").partition("_")[0]
            if text_set in ("mrpc", "imdb") and not folder_of(text_set):
                print(f"{title_of(job)}: left out, it needs --{text_set}_dir.")
                continue
            sides = [side for side in sides if FLAGS.sides is None or side in FLAGS.sides]
            if sides:
                yield measure({**job, **files_of(job), "by_cpu": FLAGS.by_cpu}, sides, ceilings)


def dtypes_of(names):
    jobs = [job for name in names if name in SUITES for job, _ in SUITES[name]]
    return sorted({job.get("dtype", "float32") for job in jobs if job["kind"] in STEPS} - {"int8"})


def measure_ceilings(dtype):
    """Returns GFLOP/s of the matrix product by backend."""
    job = {"kind": "ceiling", "dtype": dtype}
    sides = [f"matrix_product-{backend}" for backend in BACKENDS]
    results, _, _ = turns.take_turns(job, sides, FLAGS.rounds, FLAGS.threads, FLAGS.output_dir)
    return {
        result.side.rpartition("-")[2]: FLOPS / min(result.seconds) / 1e9
        for result in results
        if result.seconds
    }


def measure(job, sides, ceilings):
    """Returns the table of one job: a dict."""
    title = title_of(job)
    print(f"{title}", flush=True)
    results, discarded, trusted = turns.take_turns(
        job, sides, FLAGS.rounds, FLAGS.threads, FLAGS.output_dir
    )
    first = results[0]
    for result in results:
        found = difference(first, result)
        if found is not None and not found <= tolerance(job, result.side):
            result.error, result.seconds = f"answers otherwise: differs by {found:.1e}", []
    rows = []
    for result in results:
        row = {"side": result.side, "error": result.error}
        if result.seconds:
            row |= {
                "seconds": result.seconds,
                "texts_a_second": texts_a_second(job, result),
                **ratios("times", first, result),
                **ratios("times_keras_hub", same_backend(results, "keras_hub", result), result),
                "load_s": result.load_seconds,
                "first_s": result.first_seconds,
                "megabytes": result.megabytes,
                "difference": difference(first, result),
                "of_ceiling": share_of_ceiling(job, result, ceilings),
                "shapes": result.shapes,
            }
        rows.append(row)
    table = {"title": title, "rows": rows, "discarded": discarded, "trusted": trusted}
    print(as_markdown(table), flush=True)
    return table


def tolerance(job, side):
    """Returns how far a side's answers may be from those of the first."""
    return job.get("tolerance", 1e-5 if side.startswith("bert_keras") else 0.05)


def texts_a_second(job, result):
    if "texts" not in job:
        return None
    with open(job["texts"], encoding="utf-8") as file:
        return len(json.load(file)[0]) / statistics.median(result.seconds)


def ratios(name, first, result):
    """Returns `first`'s time divided by `result`'s in each round, under a name."""
    if first is None or not first.seconds:
        return {}
    return {name: [a / b for a, b in zip(first.seconds, result.seconds, strict=True)]}


def same_backend(results, name, result):
    """Returns the result of side `name` on the backend of one of ours, or `None`."""
    side = f"{name}-{result.side.partition('-')[2]}"
    is_ours = result.side.startswith("bert_keras-")
    return next((other for other in results if is_ours and other.side == side), None)


def title_of(job):
    if "title" in job:
        return job["title"]
    size = f"{job['batch']} x {job['length']}" if job["length"] else f"batches of {job['batch']}"
    texts = f" of {name_of_texts(job)}" if "text_set" in job else ""
    dtype = job.get("dtype", "float32")
    dtype += " (hugging_face in float32)" if dtype == "int8" else ""
    return f"{job['kind']}{texts}, {job['model']}, {size}, {dtype}"


def name_of_texts(job):
    return job["text_set"] if folder_of(job["text_set"]) else "repository's sentences"


def folder_of(text_set):
    return FLAGS[f"{text_set.partition('_')[0]}_dir"].value


def difference(first, result):
    """Returns the largest difference of the answers, `None` where there are none."""
    if first.output is None or result.output is None:
        return None
    one, other = np.load(first.output), np.load(result.output)
    return float(np.abs(one - other).max()) if one.shape == other.shape else float("inf")


def share_of_ceiling(job, result, ceilings):
    """Returns the matrix products' arithmetic per second, as a share of a matrix product's alone.

    A training step counts as three forward passes.
    """
    dtype = "float32" if "float32" in result.side else job.get("dtype", "float32")
    ceiling = max(ceilings.get(dtype, {}).values(), default=None)
    if job["kind"] not in ("inference", "train_step", "pretraining_step") or not ceiling:
        return None
    rows, decoded = job["batch"] * job.get("batches", 1), 0
    if job["kind"] == "pretraining_step":
        # transformers decodes every token, we only the masked ones.
        share = 1 if result.side == "hugging_face" else 0.15
        decoded = job["batch"] * round(share * job["length"])
    skips = job["kind"] == "train_step" and result.side.startswith("bert_keras")
    forward = flops.forward(
        MODELS[job["model"]], rows, job["length"], decoded, first_token_only=skips
    )
    times = 1 if job["kind"] == "inference" else 3
    return times * forward / statistics.median(result.seconds) / 1e9 / ceiling


def files_of(job):
    """Returns the job's folder of weights and its file of texts, made where they are missing."""
    files = {"folder": weights(job["model"])}
    if not job["length"]:
        name = f"{name_of_texts(job)}-{job.get('num_texts', 'all')}.json"
        files["texts"] = os.path.join(FLAGS.output_dir, name)
        columns = [column[: job.get("num_texts")] for column in read_texts(job["text_set"])]
        with open(files["texts"], "w", encoding="utf-8") as file:
            json.dump(columns, file)
    return files


SENTENCES = str(
    pathlib.Path(__file__).resolve().parent.parent / "examples/data/sentiment_labelled_sentences"
)
# In a process of their own: they would load a backend into this one. Each prints columns of texts.
READERS = {
    "sst2": "columns = [datasets.load_glue('SST-2', folder, 'dev').texts]",
    "sst2_train": "columns = [datasets.load_glue('SST-2', folder, 'train').texts]",
    "mrpc": "columns = datasets.load_glue('MRPC', folder, 'dev').texts",
    "mrpc_train": "columns = datasets.load_glue('MRPC', folder, 'train').texts",
    "imdb": "import pathlib; paths = sorted(pathlib.Path(folder).glob('test/*/*_*.txt')); "
    "columns = [[path.read_text('utf-8') for path in paths]]",
    None: f"columns = [datasets.load_sentiment_sentences({SENTENCES!r})[0].texts]",
}


def read_texts(name):
    """Returns columns of texts, a list of lists of str."""
    folder = folder_of(name)
    reader = READERS[name if folder else None]
    code = (
        f"import json, sys; from bert_keras import datasets; folder = sys.argv[1]; {reader}; "
        "print(json.dumps([list(column) for column in columns]))"
    )
    command = [sys.executable, "-c", code, folder or ""]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return json.loads(done.stdout.splitlines()[-1])


def weights(model):
    """Returns a folder in Hugging Face's layout: MiniLM's own weights, or random ones."""
    folder = os.path.join(FLAGS.output_dir, model)
    if not os.path.exists(os.path.join(folder, "config.json")):
        code = (
            "import sys, json, transformers as t; t.set_seed(0); "
            "folder, model, sizes = sys.argv[1:]; "
            "from bert_keras.presets.resolve import resolve; "
            "source = resolve('minilm_l6_en_uncased'); sizes = json.loads(sizes); "
            "m = t.AutoModelForSequenceClassification.from_pretrained(source, num_labels=2) "
            "if model == 'minilm' else t.BertForSequenceClassification("
            "t.BertConfig(**sizes, intermediate_size=4 * sizes['hidden_size'])); "
            "m.save_pretrained(folder); t.AutoTokenizer.from_pretrained(source)"
            ".save_pretrained(folder); "
            "import shutil, os; shutil.copy(os.path.join(source, 'vocab.txt'), folder)"
        )
        sizes = json.dumps(MODELS[model])
        subprocess.run([sys.executable, "-c", code, folder, model, sizes], check=True)
    return folder


# What a fresh process needs until the first answer. `sys.argv[1]` is the folder of the files that
# SAVED makes.
FIRST_ANSWERS = {
    "hugging_face": (
        "from transformers import pipeline; p = pipeline('text-classification', sys.argv[1]); "
        "p('It was a joy.')"
    ),
    "onnx_runtime": (
        "import numpy, onnxruntime, os, tokenizers; folder = sys.argv[1]; "
        "options = onnxruntime.SessionOptions(); "
        "options.intra_op_num_threads = int(os.environ['OMP_NUM_THREADS']); "
        "session = onnxruntime.InferenceSession(folder + '/logits-3-inputs.onnx', options); "
        "tokenizer = tokenizers.Tokenizer.from_file(folder + '/tokenizer.json'); "
        "row = tokenizer.encode('It was a joy.'); "
        "inputs = zip(session.get_inputs(), (row.ids, row.attention_mask, row.type_ids)); "
        "session.run(None, {x.name: numpy.array([ids]) for x, ids in inputs})"
    ),
    "bert_keras": (
        "import bert_keras, keras; "
        "keras.models.load_model(sys.argv[1] + '/bert_keras.keras').classify('It was a joy.')"
    ),
    "bert_keras, load only": (
        "import bert_keras, keras; keras.models.load_model(sys.argv[1] + '/bert_keras.keras')"
    ),
    "keras_hub": (
        "import keras, keras_hub; "
        "keras.models.load_model(sys.argv[1] + '/keras_hub.keras').predict(['It was a joy.'])"
    ),
    "import bert_keras": "import bert_keras",
    "import keras": "import keras",
}
WITHOUT_BACKEND = ("hugging_face", "onnx_runtime")
MEMORY = (
    "; import resource; print('peak', resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000)"
)
# What makes the files of a side, by its name; run beside this file, since it imports the sides.
SAVED = {
    "onnx_runtime": "from sides import onnx_runtime; onnx_runtime.make_files(job)",
    "bert_keras": (
        "from sides import bert_keras; "
        "bert_keras.make_classifier(job).save(job['folder'] + '/bert_keras.keras')"
    ),
    "keras_hub": (
        "from sides import keras_hub; "
        "keras_hub.make_classifier(job).save(job['folder'] + '/keras_hub.keras')"
    ),
}


def cold_start():
    """Returns the table of seconds and memory from the start of Python to the first answer."""
    title = "from the start of Python to the first answer, minilm"
    print(title, flush=True)
    folder = os.path.abspath(weights("minilm"))
    environment = os.environ | turns.QUIET | dict.fromkeys(turns.THREADS, str(FLAGS.threads))
    errors = {name: save(name, folder, environment) for name in SAVED}
    results = [
        turns.Result(side, error=errors.get(name.partition(",")[0]))
        for name in FIRST_ANSWERS
        for side in ([name] if name in WITHOUT_BACKEND else [f"{name}-{b}" for b in BACKENDS])
    ]
    for _ in range(FLAGS.rounds):
        for result in results:
            if result.error is None:
                first_answer(result, folder, environment)
    rows = [
        {
            "side": result.side,
            "error": result.error,
            "seconds": result.seconds,
            "megabytes": result.megabytes,
            **({} if result.error else ratios("times", results[0], result)),
        }
        for result in results
    ]
    table = {"title": title, "rows": rows}
    print(as_markdown(table), flush=True)
    return table


def first_answer(result, folder, environment):
    """Runs a side once in a fresh process, and adds its time and memory to the result."""
    name, _, backend = result.side.partition("-")
    command = [sys.executable, "-c", "import sys; " + FIRST_ANSWERS[name] + MEMORY, folder]
    environment = {**environment, "KERAS_BACKEND": backend or "torch"}
    started = time.perf_counter()
    done = subprocess.run(command, check=False, env=environment, capture_output=True, text=True)
    result.seconds.append(time.perf_counter() - started)
    result.error = error_of(done)
    if result.error is None:
        peak = float(done.stdout.rpartition("peak")[-1])
        result.megabytes = max(result.megabytes or 0, peak)


def save(name, folder, environment):
    """Makes a side's files for `cold_start`; returns why it could not, or `None`."""
    code = f"job = {{'kind': 'text', 'folder': {folder!r}}}; {SAVED[name]}"
    done = subprocess.run(
        [sys.executable, "-c", code],
        check=False,
        env={**environment, "KERAS_BACKEND": "torch"},
        cwd=pathlib.Path(__file__).parent,
        capture_output=True,
        text=True,
    )
    return error_of(done)


def error_of(done):
    """Returns the last line that a failed process wrote, or `None` if it did not fail."""
    lines = done.stderr.splitlines() or [f"exit code {done.returncode}"]
    return lines[-1] if done.returncode else None


COLUMNS = (
    "side",
    "median s (range)",
    "times (range)",
    "times KerasHub",
    "texts/s",
    "of ceiling",
    "load, first call s",
    "shapes",
    "MB",
    "difference",
)


def as_markdown(table):
    cells = [
        [row["side"], row["error"], *[""] * (len(COLUMNS) - 2)] if row["error"] else cells_of(row)
        for row in table["rows"]
    ]
    lines = [f"### {table['title']}", "", as_table(COLUMNS, cells)]
    if table.get("discarded"):
        lines += ["", f"{table['discarded']} rounds were discarded, the machine being busy."]
    if not table.get("trusted", True):
        lines += ["", "The machine stayed busy with other work: do not trust these rounds."]
    return "\n".join([*lines, ""])


def cells_of(row):
    return [
        row["side"],
        spread(row["seconds"], ".3f"),
        ratio_of(row, "times"),
        ratio_of(row, "times_keras_hub"),
        f"{row['texts_a_second']:.0f}" if row.get("texts_a_second") else "",
        f"{row['of_ceiling']:.0%}" if row.get("of_ceiling") else "",
        f"{row['load_s']:.1f}, {row['first_s']:.1f}" if row.get("first_s") else "",
        f"{row['shapes']}" if row.get("shapes") else "",
        f"{row['megabytes']:.0f}" if row.get("megabytes") else "",
        f"{row['difference']:.1e}" if row.get("difference") is not None else "",
    ]


def ratio_of(row, name):
    return spread(row[name], ".2f") if name in row else ""


def ratio_table(tables):
    """Returns the speed of each backend relative to transformers, a row for each job."""
    unit, lines = "processor" if FLAGS.by_cpu else "wall", []
    for table in tables:
        rows = {row["side"]: row for row in table["rows"]}
        lines.append([table["title"], *(ratio_of(rows.get(side, {}), "times") for side in OURS)])
    title = f"### {processor()}, {FLAGS.threads} threads, {unit} seconds"
    return "\n".join([title, "", as_table(["", *OURS], lines), ""])


def write(tables, ceilings):
    """Writes results.json and results.md."""
    versions = {}
    for name in VERSIONS:
        if importlib.util.find_spec(name.replace("-", "_")):
            versions[name] = importlib.metadata.version(name)
    machine = {"processor": processor(), "threads": FLAGS.threads, "python": sys.version.split()[0]}
    results = {"machine": machine, "versions": versions, "ceilings": ceilings, "tables": tables}
    with open(os.path.join(FLAGS.output_dir, "results.json"), "w", encoding="utf-8") as file:
        json.dump(results, file, indent=1)
    speeds = [
        f"Matrix product {dtype}, GFLOP/s: "
        + ", ".join(f"{backend} {speed:.0f}" for backend, speed in speeds.items())
        for dtype, speeds in ceilings.items()
    ]
    lines = [json.dumps(machine), json.dumps(versions), *speeds, "", *map(as_markdown, tables)]
    with open(os.path.join(FLAGS.output_dir, "results.md"), "w", encoding="utf-8") as file:
        file.write("\n".join(lines))


def processor():
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            names = [line.partition(":")[2].strip() for line in file if "model name" in line]
        return names[0]
    except (FileNotFoundError, IndexError):
        return platform.processor()


if __name__ == "__main__":
    app.run(main)
