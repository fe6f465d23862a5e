"""What the recipes share: the flags, several seeds, the pictures and the last line.

Each script reads as data, model, compile, fit, evaluate; this file keeps the rest out of its way.
"""

import importlib.util
import json
import logging
import math
import os

from absl import flags

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # TensorFlow's words at its start.

import bert_keras
from bert_keras.files import writing

FLAGS = flags.FLAGS
bert_keras.keep_freed_memory()  # Saves time on JAX and PyTorch; nothing else runs in the process.

# JAX tells of accelerators that are not there in words that look like errors.
logging.getLogger("jax").setLevel(logging.WARNING)

flags.DEFINE_string("preset", "minilm_l6_en_uncased", "Registered name, folder or hf:// address.")
flags.DEFINE_string("data_dir", None, "Folder with the dataset's original files.")
flags.DEFINE_string("train_file", None, "File to train on, instead of --data_dir.")
flags.DEFINE_string("dev_file", None, "File to measure on; else a part of --train_file is.")
flags.DEFINE_string("test_file", None, "File to predict; measured too where it has labels.")
flags.DEFINE_string("output_dir", "output", "Folder for the model and the metrics.")
flags.DEFINE_integer("epochs", 3, "Times to go through the training set.", lower_bound=0)
flags.DEFINE_integer("batch_size", 32, "Examples a step.", lower_bound=1)
flags.DEFINE_float("learning_rate", 5e-5, "Peak learning rate, after a warm-up of 10 %.")
flags.DEFINE_integer("max_length", 128, "Longest sequence in tokens.", lower_bound=3)
flags.DEFINE_string(
    "dtype",
    "float32",
    "float32, or mixed_bfloat16 or mixed_float16 on hardware that is made for it.",
)
flags.DEFINE_integer("seed", 0, "Seed of the weights, the dropout and the order of examples.")
flags.DEFINE_integer("seeds", 1, "Runs, with seeds from --seed on; the best one is saved.", 1)
flags.DEFINE_integer(
    "sample",
    None,
    "Train on this many examples, drawn by --seed. What is measured on stays whole, but for the "
    "recipes where that takes hours, of long texts and of questions: there it is cut likewise.",
    lower_bound=1,
)
flags.DEFINE_integer(
    "sort_window",
    None,
    "Batches that are sorted by length together, which saves padding; 1 keeps them random. By "
    "default a twentieth of an epoch, at least 4 and at most 100.",
    lower_bound=1,
)
flags.DEFINE_string("plot_dir", None, "Folder for pictures (needs matplotlib).")
flags.register_validator(
    "plot_dir",
    lambda folder: folder is None or importlib.util.find_spec("matplotlib"),
    "needs matplotlib: pip install matplotlib",
)


# A vocabulary that knows less of a text was made from another language or case.
MOST_UNKNOWN = 0.1


@flags.multi_flags_validator(["data_dir", "train_file", "dev_file", "test_file"])
def check_paths(given):
    """Refuses paths that are not there, and flags that would change nothing."""
    for name, path in given.items():
        if path is not None and not os.path.exists(path):
            raise flags.ValidationError(f"--{name} names {path!r}, which is not there.")
    if given["dev_file"] and not (given["train_file"] or given["data_dir"]):
        raise flags.ValidationError("--dev_file needs --train_file.")
    if given["data_dir"]:
        for name in ("train_file", "dev_file"):
            if given[name]:
                raise flags.ValidationError(
                    f"--data_dir finds its files by their names, so --{name} would not be read. "
                    "Pass --data_dir, or --train_file and --dev_file."
                )
    return True


def given(*names):
    """Returns the flags of these names that have a value, as arguments."""
    return {name: FLAGS[name].value for name in names if FLAGS[name].value is not None}


def keep_compiled_programs():
    """Lets JAX keep what it compiles, so that the same recipe starts sooner the next time.

    JAX_COMPILATION_CACHE_DIR names another folder than ~/.cache/bert_keras/jax.
    """
    import jax

    if jax.config.jax_compilation_cache_dir is None:
        folder = os.path.join(os.path.expanduser("~"), ".cache", "bert_keras", "jax")
        jax.config.update("jax_compilation_cache_dir", folder)


if os.environ.get("KERAS_BACKEND") == "jax":
    keep_compiled_programs()


def sampled(examples):
    """Returns `examples`, or the first `--sample` of them after a shuffle by `--seed`."""
    import numpy as np

    if FLAGS.sample is None or FLAGS.sample >= len(examples):
        return examples
    order = np.random.default_rng(FLAGS.seed).permutation(len(examples))
    return examples.take(order[: FLAGS.sample])


def data_files(find_files):
    """Returns the files that the flags name: a dict from `train`, `dev`, `test` to path or None.

    Args:
        find_files: function of `--data_dir` that returns such a dict.

    Raises:
        SystemExit: neither `--train_file` nor `--data_dir` is given.
    """
    if FLAGS.train_file:
        return {"train": FLAGS.train_file, "dev": FLAGS.dev_file, "test": FLAGS.test_file}
    if FLAGS.data_dir:
        check_folder()
        files = find_files(FLAGS.data_dir)
        return {**files, "test": FLAGS.test_file or files.get("test")}
    raise SystemExit("Pass --data_dir, or --train_file and --dev_file.")


def check_folder():
    """Raises `SystemExit` where `--data_dir` is a file."""
    if not os.path.isdir(FLAGS.data_dir):
        raise SystemExit(
            f"--data_dir is a folder, and {FLAGS.data_dir!r} is none. Pass a file by --train_file."
        )


def make_folders():
    """Makes the folders that the flags name, while nothing is lost yet where that fails."""
    for name in ("output_dir", "plot_dir"):
        folder = FLAGS[name].value
        try:
            if folder is not None:
                os.makedirs(folder, exist_ok=True)
        except OSError as error:
            raise SystemExit(f"--{name} must be a folder that can be made: {error}") from error


def check_labelled(**parts):
    """Raises `ValueError` unless each part, `train` or `dev`, has examples, all with labels."""
    for name, examples in parts.items():
        if not len(examples) or examples.labels is None:
            raise ValueError(
                f"The {name} examples must have labels. Received: {len(examples)} examples without "
                "any, as in GLUE's test sets. Pass such a file by --test_file."
            )


def check_vocabulary(model, texts):
    """Says so where the model's vocabulary knows too little of its training texts.

    Args:
        model: task with a preprocessor.
        texts: list of str, or a tuple of such.
    """
    tokenizer = model.preprocessor.tokenizer
    if tokenizer.unknown_token is None:
        return  # It spells every text.
    few = list((texts[0] if isinstance(texts, tuple) else texts)[:1000])
    ids = [token for row in tokenizer(few) for token in row]
    share = ids.count(tokenizer.unknown_token_id) / max(len(ids), 1)
    if share > MOST_UNKNOWN:
        print(
            f"Beware: {share:.0%} of the tokens to train on are unknown to the vocabulary of "
            f"{FLAGS.preset}. Pass a --preset for their language: bert_base_zh for Chinese, "
            "bert_base_multi_cased for many others."
        )


def run_seeds(run):
    """Runs `run(seed)` for each seed, prints mean and spread, returns the best run and all metrics.

    Args:
        run: function of a seed that returns `(model, metrics)`, the main metric first. The best
            has the highest; NaN, such as a correlation with constant predictions, is the lowest.
    """
    import keras
    import numpy as np

    make_folders()
    best, rows = None, []
    for seed in range(FLAGS.seed, FLAGS.seed + FLAGS.seeds):
        keras.utils.set_random_seed(seed)
        model, metrics = run(seed)
        main = next(iter(metrics))
        rows.append(metrics)
        rank = -math.inf if math.isnan(metrics[main]) else metrics[main]
        if best is None or rank > best[0]:
            best = rank, model
    if FLAGS.seeds > 1:
        for name in rows[0]:
            values = [row[name] for row in rows]
            print(
                f"{name}: mean {np.mean(values):.4f}, standard deviation "
                f"{np.std(values, ddof=1):.4f}, from {min(values):.4f} to {max(values):.4f} over "
                f"{len(values)} seeds"
            )
        save_pictures(lambda: [("seeds.png", drawn_seeds(rows))])
    return best[1], rows


def over_seeds(rows):
    """Returns the means of metrics over seeds, and with several their standard deviations.

    Args:
        rows: list of dicts of floats, as `run_seeds` returns.

    Returns:
        Dict of floats: `name`, and for several seeds `name_std`.
    """
    import numpy as np

    means = {name: float(np.mean([row[name] for row in rows])) for name in rows[0]}
    if len(rows) == 1:
        return means
    spread = {f"{name}_std": float(np.std([row[name] for row in rows], ddof=1)) for name in means}
    return {**means, **spread}


def drawn_seeds(rows):
    """Returns a picture of the metrics of all seeds."""
    import pictures

    return pictures.seeds(rows, FLAGS.seed)


def save_and_load(model, name="model.keras"):
    """Saves a model into `--output_dir` and returns what is loaded from there."""
    import keras

    path = os.path.join(FLAGS.output_dir, name)
    if os.path.exists(path):
        print(f"Replaces {path}.")
    model.compile()  # A new optimizer: the old one's moments are twice the size of the model.
    model.save(path)
    print(f"Saved {path}, {os.path.getsize(path) / 1e6:.0f} MB.")
    return keras.models.load_model(path)


def finish(metrics):
    """Writes the metrics into `--output_dir` and prints them as the last line: one JSON object.

    JSON has no NaN: a metric that is not defined is null there.
    """
    for name, value in metrics.items():
        if isinstance(value, float) and not math.isfinite(value):
            print(
                f"{name} is not defined, as a correlation is not where all predictions are equal."
            )
            metrics = {**metrics, name: None}
    line = json.dumps(metrics, allow_nan=False)
    with writing(os.path.join(FLAGS.output_dir, "metrics.json")) as file:
        file.write(line + "\n")
    print(line, flush=True)


def plot_learning_curves(history, seed, name="learning_curves"):
    """Draws every value of a Keras `History` over the epochs into `--plot_dir`, a file a seed."""
    import pictures

    name = f"{name}_seed_{seed}.png" if FLAGS.seeds > 1 else f"{name}.png"
    save_pictures(lambda: [(name, pictures.learning_curves(history))])


def plot_confusion_matrix(labels, outputs, label_names, name="confusion_matrix.png"):
    """Draws a confusion matrix, rows the true classes, into `--plot_dir`."""
    import pictures
    from sklearn.metrics import confusion_matrix

    classes = range(outputs.shape[1])
    matrix = confusion_matrix(labels, outputs.argmax(-1), labels=classes)
    save_pictures(lambda: [(name, pictures.confusion_matrix(matrix, label_names))])


def accuracy_and_f1(labels, outputs):
    """Returns accuracy, and the F1 of the second class or, of more than two, the mean of theirs.

    Args:
        labels: int `(num_examples,)`.
        outputs: float `(num_examples, num_classes)`, logits.
    """
    chosen = outputs.argmax(-1)
    average = "binary" if outputs.shape[1] == 2 else "macro"
    return {"accuracy": float((chosen == labels).mean()), "f1": f1(labels, chosen, average)}


def f1(labels, chosen, average):
    """Returns scikit-learn's F1, 0 where nothing is chosen and nothing is right."""
    from sklearn.metrics import f1_score

    return float(f1_score(labels, chosen, average=average, zero_division=0.0))


def save_pictures(draw):
    """Writes pictures into `--plot_dir`, where there is one.

    Args:
        draw: function without arguments that gives pairs of a file's name and a figure. It is not
            called without `--plot_dir`.
    """
    if FLAGS.plot_dir is None:
        return
    for name, figure in draw():
        path = os.path.join(FLAGS.plot_dir, name)
        figure.savefig(path, dpi=120)
        print(f"Drew {path}")
