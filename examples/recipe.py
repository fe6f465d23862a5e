"""What the recipes share: the flags, several seeds, the pictures and the last line.

Each script reads as data, model, compile, fit, evaluate; this file keeps the rest out of its way.
"""

import json
import logging
import os
import statistics

from absl import flags

FLAGS = flags.FLAGS

# JAX tells of accelerators that are not there in words that look like errors.
logging.getLogger("jax").setLevel(logging.WARNING)

flags.DEFINE_string("preset", "minilm_l6_en_uncased", "Registered name, folder or hf:// address.")
flags.DEFINE_string("data_dir", None, "Folder with the dataset's original files.")
flags.DEFINE_string("train_file", None, "File to train on, instead of --data_dir.")
flags.DEFINE_string("dev_file", None, "File to measure on; without it a tenth of --train_file.")
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
flags.DEFINE_string("plot_dir", None, "Folder for pictures (needs matplotlib).")


def sampled(examples):
    """Returns `examples`, or the first `--sample` of them after a shuffle by `--seed`."""
    import numpy as np

    if FLAGS.sample is None or FLAGS.sample >= len(examples):
        return examples
    order = np.random.default_rng(FLAGS.seed).permutation(len(examples))
    return examples.take(order[: FLAGS.sample])


def label_numbers(path, values, label_names=None):
    """Returns labels as numbers, int32 `(n,)`, and their names; by default those that occur.

    Raises:
        ValueError: there are none, or one is empty or no name. The message names file and row.
    """
    import numpy as np

    if not values:
        raise ValueError(f"{path} holds a header and no rows.")
    label_names = label_names or tuple(sorted({*values} - {""}))
    numbers = {name: number for number, name in enumerate(label_names)}
    for row, value in enumerate(values, start=1):
        if value not in numbers:
            raise ValueError(
                f"{path}, row {row} after the header: a label must be one of "
                f"{list(label_names)[:20]}. Received: {value!r}"
            )
    return np.array([numbers[value] for value in values], "int32"), label_names


def check_labelled(**parts):
    """Raises `ValueError` unless each part, `train` or `dev`, has examples, all with labels."""
    for name, examples in parts.items():
        if not len(examples) or examples.labels is None:
            raise ValueError(
                f"The {name} examples must have labels. Received: {len(examples)} examples without "
                "any, as in GLUE's test sets. Pass such a file by --test_file."
            )


def run_seeds(run):
    """Runs `run(seed)` for each seed, prints mean and spread, returns the best run and all metrics.

    Args:
        run: function of a seed that returns `(model, metrics)`, the main metric first.
    """
    import keras

    best, rows = None, []
    for seed in range(FLAGS.seed, FLAGS.seed + FLAGS.seeds):
        keras.utils.set_random_seed(seed)
        model, metrics = run(seed)
        main = next(iter(metrics))
        rows.append(metrics)
        if best is None or metrics[main] > best[1][main]:
            best = model, metrics
    if FLAGS.seeds > 1:
        for name in rows[0]:
            values = [row[name] for row in rows]
            print(
                f"{name}: mean {statistics.mean(values):.4f}, standard deviation "
                f"{statistics.stdev(values):.4f}, from {min(values):.4f} to {max(values):.4f} over "
                f"{len(values)} seeds"
            )
    return best[0], rows


def save_and_load(model, name="model.keras"):
    """Saves a model into `--output_dir` and returns what is loaded from there."""
    import keras

    os.makedirs(FLAGS.output_dir, exist_ok=True)
    path = os.path.join(FLAGS.output_dir, name)
    model.compile()  # A new optimizer: the old one's moments are twice the size of the model.
    model.save(path)
    print(f"Saved {path}, {os.path.getsize(path) / 1e6:.0f} MB.")
    return keras.models.load_model(path)


def finish(metrics):
    """Writes the metrics into `--output_dir` and prints them as the last line: one JSON object."""
    os.makedirs(FLAGS.output_dir, exist_ok=True)
    line = json.dumps(metrics)
    with open(os.path.join(FLAGS.output_dir, "metrics.json"), "w", encoding="utf-8") as file:
        file.write(line + "\n")
    print(line, flush=True)


def plot_learning_curves(history, name="learning_curves.png"):
    """Draws every value of a Keras `History` over the epochs into `--plot_dir`."""
    import pictures

    save_pictures(lambda: [(name, pictures.learning_curves(history))])


def plot_confusion_matrix(matrix, label_names, name="confusion_matrix.png"):
    """Draws a confusion matrix, rows the true classes, into `--plot_dir`."""
    import pictures

    save_pictures(lambda: [(name, pictures.confusion_matrix(matrix, label_names))])


def save_pictures(draw):
    """Writes pictures into `--plot_dir`, where there is one.

    Args:
        draw: function without arguments that gives pairs of a file's name and a figure. It is not
            called without `--plot_dir`.
    """
    if not FLAGS.plot_dir:
        return
    os.makedirs(FLAGS.plot_dir, exist_ok=True)
    for name, figure in draw():
        path = os.path.join(FLAGS.plot_dir, name)
        figure.savefig(path, dpi=120)
        print(f"Drew {path}")
